//! What concerns the host as a whole.

use super::gauge;
use crate::metrics::names;
use metrics::Gauge;

/// Whether the host is there, live and ready.
#[derive(Clone)]
pub struct HostMetrics {
    up: Gauge,
    live: Gauge,
    ready: Gauge,
}

/// Memory that all stores share.
#[derive(Clone)]
pub struct MemoryMetrics {
    cache: Gauge,
    memtables: Gauge,
}

impl Default for HostMetrics {
    fn default() -> Self {
        let own = |metric| gauge(metric, &[]);
        HostMetrics { up: own(names::HOST_UP), live: own(names::HOST_LIVE), ready: own(names::HOST_READY) }
    }
}

impl HostMetrics {
    /// Says once which host this is.
    pub fn name(application: &str, instance: &str) {
        let release = (names::RELEASE, env!("CARGO_PKG_VERSION"));
        let labels = [(names::APPLICATION, application), (names::INSTANCE, instance), release];
        gauge(names::HOST_INFO, &labels).set(1.0);
    }

    pub fn up(&self, is_up: bool) {
        self.up.set(f64::from(u8::from(is_up)));
    }

    pub fn health(&self, live: bool, ready: bool) {
        self.live.set(f64::from(u8::from(live)));
        self.ready.set(f64::from(u8::from(ready)));
    }
}

impl MemoryMetrics {
    /// What the block cache and the memtables may take, in bytes.
    pub fn new(cache_limit: u64, memtable_limit: u64) -> Self {
        gauge(names::STATE_CACHE_LIMIT_BYTES, &[]).set(cache_limit as f64);
        gauge(names::STATE_MEMTABLE_LIMIT_BYTES, &[]).set(memtable_limit as f64);
        MemoryMetrics {
            cache: gauge(names::STATE_CACHE_BYTES, &[]),
            memtables: gauge(names::STATE_MEMTABLE_BYTES, &[]),
        }
    }

    /// What they take now.
    pub fn used(&self, cache: u64, memtables: u64) {
        self.cache.set(cache as f64);
        self.memtables.set(memtables as f64);
    }
}
