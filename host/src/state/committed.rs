//! Reading stores from outside: what the last commit left, without what lies over it.

use super::faults;
use super::scan::bounds;
use super::stores::Stores;
use crate::model::state::ScanRange;
use crate::model::{Column, Fault};

/// Entries of a store in scan order, up to the bounds of their range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommittedPage {
    /// Alternating key and value.
    pub entries: Column,
    /// The first key that had no room.
    pub next: Option<Vec<u8>>,
}

impl Stores {
    /// One value. `None`: the store has no such key.
    pub fn committed_value(&self, store: usize, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let family = self.family(store)?;
        if let Some(known) = self.recent[store].get(key) {
            return Ok(known.map(<[u8]>::to_vec));
        }
        self.db.get_cf(family, key).map_err(|error| faults::rocks("reading a store", &error))
    }

    /// One entry is returned even when it is larger than the range's bytes, unless the range's limit is 0.
    pub fn committed_page(&self, store: usize, range: &ScanRange) -> Result<CommittedPage, Fault> {
        let mut page = CommittedPage::default();
        if range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Ok(page);
        }
        let mut options = bounds(range);
        // whoever reads a whole store must not push out what the stream needs
        options.fill_cache(false);
        let mut iterator = self.db.raw_iterator_cf_opt(self.family(store)?, options);
        if range.reverse {
            iterator.seek_to_last()
        } else {
            iterator.seek_to_first()
        }
        while let Some((key, value)) = iterator.item() {
            if !page.take((key, value), range) {
                return Ok(page);
            }
            if range.reverse { iterator.prev() } else { iterator.next() }
        }
        iterator.status().map_err(|error| faults::rocks("scanning a store", &error))?;
        Ok(page)
    }
}

impl CommittedPage {
    /// Takes an entry, or notes that it has no room.
    fn take(&mut self, (key, value): (&[u8], &[u8]), range: &ScanRange) -> bool {
        let (count, bytes) = (self.entries.len() / 2, self.entries.bytes.len() + key.len() + value.len());
        if count >= range.limit as usize || (count > 0 && bytes > range.max_bytes as usize) {
            self.next = Some(key.to_vec());
            return false;
        }
        self.entries.push(Some(key));
        self.entries.push(Some(value));
        true
    }
}
