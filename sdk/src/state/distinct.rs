//! The distinct keys of a batch: each record's key becomes a small number, once per call, so that the stores need no
//! hashing of their own and one bulk read serves the whole batch.

use std::hash::Hasher;

use pelton_bindings_transform::pelton::plugin::types::Batch;
use rustc_hash::FxHasher;

use crate::column::{self, Column};

/// The slot of a null key.
pub(crate) const NULL: u32 = u32::MAX;

/// A hash table with linear probing over the batch's keys. It is built at the first use in a call; its buffers are kept.
pub(crate) struct Distinct {
    slots: Vec<u32>,
    keys: Column,
    /// Where each distinct key starts in `keys`.
    starts: Vec<usize>,
    hashes: Vec<u32>,
    /// Slot + 1; 0 is free. A power of two, at most half full.
    table: Vec<u32>,
}

impl Default for Distinct {
    fn default() -> Self {
        let keys = column::with_capacity(0, 0);
        Self { slots: Vec::new(), keys, starts: Vec::new(), hashes: Vec::new(), table: Vec::new() }
    }
}

impl Distinct {
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.keys.bytes.clear();
        self.keys.lengths.clear();
        self.starts.clear();
        self.hashes.clear();
    }

    /// The slot of an entry's key, or [`NULL`].
    #[inline]
    pub(crate) fn slot(&mut self, batch: &Batch, entry: u32) -> u32 {
        if self.slots.is_empty() {
            self.build(batch);
        }
        self.slots[entry as usize]
    }

    /// The distinct keys; a key's place is its slot.
    pub(crate) fn keys(&self) -> &Column {
        &self.keys
    }

    /// How many distinct keys there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn key(&self, slot: usize) -> &[u8] {
        let end = self.starts.get(slot + 1).copied().unwrap_or(self.keys.bytes.len());
        &self.keys.bytes[self.starts[slot]..end]
    }

    fn build(&mut self, batch: &Batch) {
        let size = (2 * batch.keys.lengths.len()).next_power_of_two();
        self.table.clear();
        self.table.resize(size, 0);
        self.slots.reserve(batch.keys.lengths.len());
        for key in column::fields(&batch.keys) {
            let slot = key.map_or(NULL, |key| self.intern(key));
            self.slots.push(slot);
        }
    }

    #[inline]
    fn intern(&mut self, key: &[u8]) -> u32 {
        let hash = hash(key);
        let mask = self.table.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.table[place] {
                0 => return self.add(key, hash, place),
                slot if self.is(slot as usize - 1, key, hash) => return slot - 1,
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[inline]
    fn is(&self, slot: usize, key: &[u8], hash: u32) -> bool {
        self.hashes[slot] == hash && self.key(slot) == key
    }

    fn add(&mut self, key: &[u8], hash: u32, place: usize) -> u32 {
        self.starts.push(self.keys.bytes.len());
        self.hashes.push(hash);
        column::push(&mut self.keys, Some(key));
        // A batch has fewer entries than this type has numbers.
        self.table[place] = self.starts.len() as u32;
        self.table[place] - 1
    }
}

#[inline]
fn hash(key: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(key);
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}
