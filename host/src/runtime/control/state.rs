//! Reading stores from outside: committed state only.

use super::Control;
use crate::model::Fault;
use crate::model::state::ScanRange;

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    pub processor: String,
    pub store: String,
    pub key: Vec<u8>,
    /// `None`: the partition that Kafka's default partitioner gives the key.
    pub partition: Option<i32>,
}

/// A range of keys of one partition, or of all partitions of this host one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub processor: String,
    pub store: String,
    pub partition: Option<i32>,
    pub range: ScanRange,
}

/// What a question about state comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    Here(T),
    /// Another host holds the partition; its address where it is known.
    Elsewhere {
        partition: i32,
        instance: Option<String>,
        address: Option<String>,
    },
}

/// A value and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub partition: i32,
    /// `None`: the store has no such key.
    pub value: Option<Vec<u8>>,
}

/// Entries in key order within a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Where to go on: the partition and the first key that is not in this page.
    pub next: Option<(i32, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub partition: i32,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Control {
    /// The committed value of a key. `Fatal`: `processor-unknown`, `store-unknown`, `partition-unknown`. `Transient`: `state-not-here-yet`.
    pub fn get(&self, _ask: &Get) -> Result<Answer<Value>, Fault> {
        self.running().and_then(|_| Err(Fault::transient("state-not-here-yet", "stores cannot be read yet")))
    }

    /// Committed entries, a page at a time. Faults as of [`Control::get`].
    pub fn scan(&self, _ask: &Scan) -> Result<Answer<Page>, Fault> {
        self.running().and_then(|_| Err(Fault::transient("state-not-here-yet", "stores cannot be read yet")))
    }
}
