//! Writes of one store that are not committed yet. Keys and values lie in one arena, so that a write costs no allocation.

use crate::model::log::Origin;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::ops::Range;

/// What a store's overlay may keep allocated between commits, bytes.
const KEEP_BYTES: usize = 4 << 20;

/// The writes of the open commit, the last one of each key.
///
/// Keys come from records, so their hash is seeded: nobody outside can aim at one bucket.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    table: HashTable<u32>,
    hasher: RandomState,
    /// Entries in key order, as far as a scan has asked for; those made since follow in no order.
    sorted: Vec<u32>,
}

/// A changed key: what the changelog gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub key: &'a [u8],
    /// `None` deletes.
    pub value: Option<&'a [u8]>,
    /// The input record that wrote last.
    pub origin: Origin,
}

#[derive(Clone, Debug)]
struct Entry {
    hash: u64,
    key: Range<usize>,
    value: Option<Range<usize>>,
    origin: Origin,
}

impl Overlay {
    pub(super) fn put(&mut self, key: &[u8], value: Option<&[u8]>, origin: Origin) {
        let hash = self.hasher.hash_one(key);
        match self.find(hash, key) {
            Some(at) => self.replace(at, value, origin),
            None => self.insert(hash, key, value, origin),
        }
    }

    /// `None`: not changed here; `Some(None)`: deleted here.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        if self.entries.is_empty() {
            return None;
        }
        let at = self.find(self.hasher.hash_one(key), key)?;
        Some(self.change(at as u32).value)
    }

    /// Once per changed key, in the order of first writing.
    pub(super) fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        (0..self.entries.len() as u32).map(|at| self.change(at))
    }

    /// How many keys are changed.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Readies [`Overlay::range`]. The standard sort finds the part that is in order already, so that scans between writes stay cheap.
    pub(super) fn sort(&mut self) {
        if self.sorted.len() < self.entries.len() {
            self.sorted.extend(self.sorted.len() as u32..self.entries.len() as u32);
            let key = |at: u32| &self.arena[self.entries[at as usize].key.clone()];
            self.sorted.sort_by(|&a, &b| key(a).cmp(key(b)));
        }
    }

    /// Entries in key order within `start <= key < end`, by index for [`Overlay::change`]. [`Overlay::sort`] comes first.
    pub(super) fn range(&self, start: &[u8], end: Option<&[u8]>) -> &[u32] {
        let key = |&at: &u32| &self.arena[self.entries[at as usize].key.clone()];
        let from = self.sorted.partition_point(|at| key(at) < start);
        let to = end.map_or(self.sorted.len(), |end| self.sorted.partition_point(|at| key(at) < end));
        &self.sorted[from..to.max(from)]
    }

    pub(super) fn change(&self, at: u32) -> Change<'_> {
        let entry = &self.entries[at as usize];
        Change {
            key: &self.arena[entry.key.clone()],
            value: entry.value.clone().map(|range| &self.arena[range]),
            origin: entry.origin,
        }
    }

    /// Memory in use: what the commit's byte cap counts. Values that were replaced by longer ones count until the commit.
    pub(super) fn bytes(&self) -> u64 {
        (self.arena.len() + self.entries.len() * (size_of::<Entry>() + 2 * size_of::<u32>())) as u64
    }

    /// Forgets the writes. Buffers are kept, unless an unusual commit has made them large.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
        self.sorted.clear();
        self.arena.clear();
        self.arena.shrink_to(KEEP_BYTES);
        self.entries.shrink_to(KEEP_BYTES / size_of::<Entry>());
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        let same = |&at: &u32| self.arena[self.entries[at as usize].key.clone()] == *key;
        self.table.find(hash, same).map(|&at| at as usize)
    }

    fn insert(&mut self, hash: u64, key: &[u8], value: Option<&[u8]>, origin: Origin) {
        let key = append(&mut self.arena, key);
        let value = value.map(|value| append(&mut self.arena, value));
        let at = self.entries.len() as u32;
        self.entries.push(Entry { hash, key, value, origin });
        let entries = &self.entries;
        self.table.insert_unique(hash, at, |&at| entries[at as usize].hash);
    }

    fn replace(&mut self, at: usize, value: Option<&[u8]>, origin: Origin) {
        let entry = &mut self.entries[at];
        entry.origin = origin;
        entry.value = match (entry.value.take(), value) {
            (_, None) => None,
            (Some(old), Some(value)) if value.len() <= old.len() => {
                let place = old.start..old.start + value.len();
                self.arena[place.clone()].copy_from_slice(value);
                Some(place)
            }
            (_, Some(value)) => Some(append(&mut self.arena, value)),
        };
    }
}

fn append(arena: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = arena.len();
    arena.extend_from_slice(bytes);
    start..arena.len()
}
