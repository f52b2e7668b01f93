//! Reading stores from outside: committed state only.

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
    /// Bounds of keys, at most 1000 entries and 256 KiB of them; a `limit` or `max_bytes` of 0 stands for these.
    pub range: ScanRange,
    /// Where the page before said to go on.
    pub from: Option<(i32, Vec<u8>)>,
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
    /// Partitions that this page is of, or that had nothing for it; others may be on other hosts.
    pub partitions: Vec<i32>,
    /// Where to go on: the partition and the first key that is not in this page.
    pub next: Option<(i32, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub partition: i32,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}
