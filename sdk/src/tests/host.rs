//! A host in memory, which counts what it is asked.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::column::{self, Column};
use crate::host::{Host, ScanRequest};

/// Stores by number, and how many calls were made.
#[derive(Default)]
pub(crate) struct MemoryHost {
    pub(crate) stores: BTreeMap<u32, BTreeMap<Vec<u8>, Vec<u8>>>,
    pub(crate) reads: Cell<usize>,
    pub(crate) keys_read: Cell<usize>,
    pub(crate) scans: Cell<usize>,
}

impl MemoryHost {
    pub(crate) fn with(store: u32, entries: &[(&str, &str)]) -> Self {
        let table = entries.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()));
        Self { stores: BTreeMap::from([(store, table.collect())]), ..Self::default() }
    }
}

impl Host for MemoryHost {
    fn get_many(&self, store: u32, keys: &Column) -> Column {
        self.reads.set(self.reads.get() + 1);
        self.keys_read.set(self.keys_read.get() + keys.lengths.len());
        let mut values = column::with_capacity(0, 0);
        for key in column::fields(keys).map(Option::unwrap) {
            let value = self.stores.get(&store).and_then(|table| table.get(key));
            column::push(&mut values, value.map(Vec::as_slice));
        }
        values
    }

    fn scan(&self, request: &ScanRequest<'_>) -> (Column, bool) {
        self.scans.set(self.scans.get() + 1);
        let empty = BTreeMap::new();
        let table = self.stores.get(&request.store).unwrap_or(&empty);
        let inside = |key: &[u8]| key >= request.start && request.end.is_none_or(|end| key < end);
        let mut found: Vec<_> = table.iter().filter(|(key, _)| inside(key)).collect();
        if request.reverse {
            found.reverse();
        }
        let mut page = column::with_capacity(0, 0);
        for (index, (key, value)) in found.iter().enumerate() {
            if index >= request.limit as usize || page.bytes.len() >= request.max_bytes as usize {
                return (page, true);
            }
            column::push(&mut page, Some(key));
            column::push(&mut page, Some(value));
        }
        (page, false)
    }
}
