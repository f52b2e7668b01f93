//! Bounded scans: the overlay and the store merged in key order, either way.

use super::faults;
use super::overlay::Change;
use super::stores::Stores;
use crate::model::state::ScanRange;
use crate::model::{Column, Fault};
use rocksdb::{DB, DBRawIteratorWithThreadMode, ReadOptions};
use std::cmp::Ordering;

/// What a scan has found, up to its bounds.
struct Found<'r> {
    range: &'r ScanRange,
    entries: Column,
    /// There is more than the bounds allow.
    more: bool,
}

/// A store's committed entries in scan order.
struct Committed<'d> {
    iterator: DBRawIteratorWithThreadMode<'d, DB>,
    reverse: bool,
}

impl Stores {
    pub(super) fn merged_scan(&mut self, store: usize, range: &ScanRange) -> Result<(Column, bool), Fault> {
        let mut found = Found { range, entries: Column::default(), more: false };
        if range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Ok((found.entries, false));
        }
        if let Some(overlay) = self.overlays.get_mut(store) {
            overlay.sort();
        }
        let mut committed =
            Committed::new(self.db.raw_iterator_cf_opt(self.family(store)?, bounds(range)), range.reverse);
        let overlay = &self.overlays[store];
        let staged = overlay.range(&range.start, range.end.as_deref()).iter().map(|&at| overlay.change(at));
        if range.reverse {
            merge(&mut committed, staged.rev(), &mut found);
        } else {
            merge(&mut committed, staged, &mut found);
        }
        committed.iterator.status().map_err(|error| faults::rocks("scanning a store", &error))?;
        Ok((found.entries, found.more))
    }
}

impl<'d> Committed<'d> {
    fn new(mut iterator: DBRawIteratorWithThreadMode<'d, DB>, reverse: bool) -> Self {
        if reverse {
            iterator.seek_to_last();
        } else {
            iterator.seek_to_first();
        }
        Committed { iterator, reverse }
    }

    fn advance(&mut self) {
        if self.reverse {
            self.iterator.prev();
        } else {
            self.iterator.next();
        }
    }

    /// Which comes first in scan order: this one's entry (`Less`), `key`, or both at once.
    fn compare(&self, key: &[u8]) -> Ordering {
        match self.iterator.key() {
            None => Ordering::Greater,
            Some(own) if self.reverse => key.cmp(own),
            Some(own) => own.cmp(key),
        }
    }
}

impl Found<'_> {
    /// Takes an entry; false when it is over the bounds, which ends the scan. One entry is taken however large.
    fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        let count = self.entries.len() / 2;
        let bytes = self.entries.bytes.len() + key.len() + value.len();
        self.more = count >= self.range.limit as usize || (count > 0 && bytes > self.range.max_bytes as usize);
        if !self.more {
            self.entries.push(Some(key));
            self.entries.push(Some(value));
        }
        !self.more
    }

    fn take_committed(&mut self, committed: &mut Committed<'_>) -> bool {
        let taken = committed.iterator.item().is_some_and(|(key, value)| self.take(key, value));
        committed.advance();
        taken
    }
}

fn merge<'a>(committed: &mut Committed<'_>, staged: impl Iterator<Item = Change<'a>>, found: &mut Found<'_>) {
    for change in staged {
        while committed.compare(change.key) == Ordering::Less {
            if !found.take_committed(committed) {
                return;
            }
        }
        if committed.compare(change.key) == Ordering::Equal {
            committed.advance();
        }
        if change.value.is_some_and(|value| !found.take(change.key, value)) {
            return;
        }
    }
    while committed.iterator.valid() && found.take_committed(committed) {}
}

pub(super) fn bounds(range: &ScanRange) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(range.start.clone());
    if let Some(end) = &range.end {
        options.set_iterate_upper_bound(end.clone());
    }
    options
}
