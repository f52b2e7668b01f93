//! How large a task's stores are, and whether they keep up: asked of RocksDB now and then, never per commit.

use super::Stores;
use crate::metrics::StoreSize;
use rocksdb::properties::{
    ACTUAL_DELAYED_WRITE_RATE, ESTIMATE_NUM_KEYS, IS_WRITE_STOPPED, LIVE_SST_FILES_SIZE, PropName,
};

/// What RocksDB says of a task's stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// By the store's number.
    pub sizes: Vec<StoreSize>,
    /// Whether writes are slowed down, as compaction lags behind.
    pub delayed: bool,
    /// Whether none are taken until it has caught up.
    pub stopped: bool,
}

impl Stores {
    /// A few numbers that RocksDB keeps anyway: microseconds, whatever the stores hold.
    pub fn load(&self) -> Load {
        let ask = |store, property| self.property(store, property);
        let size =
            |store| StoreSize { sst_bytes: ask(store, LIVE_SST_FILES_SIZE), keys: ask(store, ESTIMATE_NUM_KEYS) };
        let any = |property| (0..self.families.len()).any(|store| ask(store, property) > 0);
        Load {
            sizes: (0..self.families.len()).map(size).collect(),
            delayed: any(ACTUAL_DELAYED_WRITE_RATE),
            stopped: any(IS_WRITE_STOPPED),
        }
    }

    /// How many keys of a store the open commit has changed.
    pub fn changes(&self, store: usize) -> usize {
        self.overlays.get(store).map_or(0, |overlay| overlay.len())
    }

    fn property(&self, store: usize, property: &PropName) -> u64 {
        let asked = self.family(store).ok().map(|family| self.db.property_int_value_cf(family, property));
        asked.and_then(Result::ok).flatten().unwrap_or_default()
    }
}
