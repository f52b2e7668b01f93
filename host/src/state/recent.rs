//! What commits have written lately, in front of RocksDB: a hash lookup instead of a walk through memtable and tables, which
//! costs ten times as much. Streams mostly read what they have just written.

use super::overlay::Overlay;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Committed values of one store, in two generations: when the young one is full, the old one goes.
#[derive(Debug, Default)]
pub(super) struct Recent {
    young: Overlay,
    old: Overlay,
}

/// The part of the process's memory that one task's stores may use for this.
#[derive(Debug)]
pub(super) struct Tenant {
    budget: u64,
    /// Stores open in the process.
    all: Arc<AtomicU64>,
    own: u64,
}

impl Recent {
    /// `None`: ask the store; `Some(None)`: the store has no such key.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// Takes what a commit has just written to the store.
    pub(super) fn absorb(&mut self, written: &Overlay, most_bytes: u64) {
        written.iter().for_each(|change| self.young.put(change.key, change.value, change.origin));
        if self.young.bytes() > most_bytes / 2 {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

impl Tenant {
    pub(super) fn new(budget: u64, all: &Arc<AtomicU64>, stores: usize) -> Tenant {
        all.fetch_add(stores as u64, Ordering::Relaxed);
        Tenant { budget, all: all.clone(), own: stores as u64 }
    }

    /// Bytes for one store, now.
    pub(super) fn share(&self) -> u64 {
        self.budget / self.all.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::log::Origin;

    const ORIGIN: Origin = Origin { slot: 0, input: 0, offset: 0 };

    #[test]
    fn the_latest_value_wins_across_generations_and_memory_is_bounded() {
        let mut recent = Recent::default();
        for round in 0..2000u32 {
            let mut written = Overlay::default();
            written.put(b"hot", Some(&round.to_le_bytes()), ORIGIN);
            written.put(&round.to_le_bytes(), None, ORIGIN);
            recent.absorb(&written, 10_000);
            assert_eq!(recent.get(b"hot"), Some(Some(&round.to_le_bytes()[..])));
            assert_eq!(recent.get(&round.to_le_bytes()), Some(None));
            assert!(recent.young.bytes() + recent.old.bytes() < 11_000);
        }
        assert_eq!(recent.get(&0u32.to_le_bytes()), None);
    }

    #[test]
    fn stores_share_the_budget() {
        let all = Arc::default();
        let one = Tenant::new(1000, &all, 1);
        assert_eq!(one.share(), 1000);
        let two = Tenant::new(1000, &all, 4);
        assert_eq!((one.share(), two.share()), (200, 200));
        drop(two);
        assert_eq!(one.share(), 1000);
    }
}
