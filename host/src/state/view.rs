//! What a running guest sees: the overlay over the store.

use super::faults;
use super::stores::Stores;
use crate::model::state::{ScanRange, StateView};
use crate::model::{Column, Fault};

impl Stores {
    /// One value: what is committed with the overlay on top.
    pub fn get(&mut self, store: usize, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let keys: Column = [Some(key)].into_iter().collect();
        let values = self.get_many(store as u32, &keys)?;
        Ok(values.iter().next().flatten().map(<[u8]>::to_vec))
    }
}

impl StateView for Stores {
    fn get_many(&mut self, store: u32, keys: &Column) -> Result<Column, Fault> {
        let store = store as usize;
        let family = self.family(store)?;
        let (overlay, recent) = (&self.overlays[store], &self.recent[store]);
        let mut misses: Vec<&[u8]> = Vec::with_capacity(keys.len());
        let found: Vec<Option<Option<&[u8]>>> = keys
            .iter()
            .map(|key| {
                // No store has a null key.
                let Some(key) = key else { return Some(None) };
                let hit = overlay.get(key).or_else(|| recent.get(key));
                if hit.is_none() {
                    misses.push(key);
                }
                hit
            })
            .collect();
        let mut read = self.db.batched_multi_get_cf(family, misses, false).into_iter();
        let mut values = Column { bytes: Vec::new(), lengths: Vec::with_capacity(found.len()) };
        for hit in found {
            match hit {
                Some(value) => values.push(value),
                None => {
                    let value = read.next().transpose().map_err(|error| faults::rocks("reading a store", &error))?;
                    values.push(value.flatten().as_deref());
                }
            }
        }
        Ok(values)
    }

    fn scan(&mut self, store: u32, range: &ScanRange) -> Result<(Column, bool), Fault> {
        self.merged_scan(store as usize, range)
    }
}
