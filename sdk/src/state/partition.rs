//! A store over the whole partition: any key, read ahead or on demand and kept for the call; written keys in key order.

use std::collections::BTreeMap;

use pelton_bindings_transform::pelton::plugin::types::Writes;
use rustc_hash::FxHashMap;

use super::scan::{self, RawPage, Scan};
use crate::column;
use crate::error::Error;
use crate::host::Host;

/// What the call wrote to a key (`None`: it was deleted), and the entry that did.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) value: Option<Vec<u8>>,
    writer: u32,
}

/// One store during a call.
pub(crate) struct Partition {
    store: u32,
    read: FxHashMap<Vec<u8>, Option<Vec<u8>>>,
    over: BTreeMap<Vec<u8>, Written>,
    undo: Vec<(Vec<u8>, Option<Written>)>,
}

impl Partition {
    pub(crate) fn new(store: u32) -> Self {
        Self { store, read: FxHashMap::default(), over: BTreeMap::new(), undo: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.read.clear();
        self.over.clear();
        self.undo.clear();
    }

    pub(crate) fn get(&mut self, host: &dyn Host, key: &[u8]) -> Option<&[u8]> {
        if !self.knows(key) {
            self.read_ahead(host, [key]);
        }
        match self.over.get(key) {
            Some(written) => written.value.as_deref(),
            None => self.read.get(key)?.as_deref(),
        }
    }

    /// Reads those of `keys` that the call does not know yet, in one go.
    pub(crate) fn read_ahead<'k>(&mut self, host: &dyn Host, keys: impl IntoIterator<Item = &'k [u8]>) {
        let mut missing = column::with_capacity(0, 0);
        for key in keys {
            if !self.knows(key) {
                self.read.insert(key.to_vec(), None);
                column::push(&mut missing, Some(key));
            }
        }
        if missing.lengths.is_empty() {
            return;
        }
        let values = host.get_many(self.store, &missing);
        for (key, value) in column::fields(&missing).flatten().zip(column::fields(&values)) {
            self.read.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    pub(crate) fn set(&mut self, key: &[u8], writer: u32, value: Option<Vec<u8>>) {
        let before = self.over.insert(key.to_vec(), Written { value, writer });
        self.undo.push((key.to_vec(), before));
    }

    pub(crate) fn scan(&self, host: &dyn Host, scan: &Scan) -> Result<RawPage, Error> {
        scan::run(host, self.store, &self.over, scan)
    }

    #[inline]
    pub(crate) fn keep(&mut self) {
        self.undo.clear();
    }

    pub(crate) fn undo(&mut self) {
        while let Some((key, before)) = self.undo.pop() {
            match before {
                Some(written) => self.over.insert(key, written),
                None => self.over.remove(&key),
            };
        }
    }

    pub(crate) fn written(&self) -> usize {
        self.over.len()
    }

    pub(crate) fn drain_into(&self, writes: &mut Writes) {
        for (key, written) in &self.over {
            writes.entries.push(written.writer);
            writes.stores.push(self.store);
            column::push(&mut writes.keys, Some(key));
            column::push(&mut writes.values, written.value.as_deref());
        }
    }

    fn knows(&self, key: &[u8]) -> bool {
        self.over.contains_key(key) || self.read.contains_key(key)
    }
}
