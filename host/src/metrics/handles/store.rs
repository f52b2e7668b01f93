//! What a store's changelog counts, and how large the store is.

use super::{counter, gauge};
use crate::metrics::names;
use metrics::{Counter, Gauge};

/// The numbers of a store, over the tasks of this host. Clones add to the same ones.
#[derive(Clone)]
pub struct StoreMetrics {
    records_out: Counter,
    restored: Counter,
    sst_bytes: Gauge,
    keys: Gauge,
}

/// How large a store of one task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Files on disk.
    pub sst_bytes: u64,
    /// An estimate.
    pub keys: u64,
}

impl StoreMetrics {
    pub fn new(processor: &str, store: &str) -> Self {
        let labels = &[(names::PROCESSOR, processor), (names::STORE, store)];
        StoreMetrics {
            records_out: counter(names::CHANGELOG_RECORDS_OUT, labels),
            restored: counter(names::CHANGELOG_RECORDS_RESTORED, labels),
            sst_bytes: gauge(names::STATE_SST_BYTES, labels),
            keys: gauge(names::STATE_KEYS, labels),
        }
    }

    /// Changelog records that a commit made visible.
    pub fn committed(&self, records: u64) {
        if records > 0 {
            self.records_out.increment(records);
        }
    }

    pub fn restored(&self, records: u64) {
        self.restored.increment(records);
    }

    /// A task's store is so large now, and was so large when it was looked at last.
    pub fn resized(&self, before: StoreSize, now: StoreSize) {
        if before != now {
            self.sst_bytes.increment(now.sst_bytes as f64 - before.sst_bytes as f64);
            self.keys.increment(now.keys as f64 - before.keys as f64);
        }
    }
}
