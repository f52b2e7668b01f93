//! What a processor's plugin costs and does.

use super::levels::Levels;
use super::{GONE, counter, gauge, histogram};
use crate::metrics::names::{self, Metric};
use metrics::{Counter, Gauge, Histogram};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest version that is shown, in characters: plugins choose theirs.
const VERSION_LENGTH: usize = 64;

/// The numbers of a plugin. Clones add to the same ones.
#[derive(Clone)]
pub struct PluginMetrics {
    processor: String,
    calls: Counter,
    call_seconds: Histogram,
    batch_records: Histogram,
    log_lines_dropped: Counter,
    instances: Counter,
    memory: (Levels, Gauge),
    swap_pause: Histogram,
    /// The one that is shown.
    version: Arc<Mutex<Option<Gauge>>>,
}

impl PluginMetrics {
    pub fn new(processor: &str) -> Self {
        let labels = &[(names::PROCESSOR, processor)];
        PluginMetrics {
            processor: processor.to_owned(),
            calls: counter(names::PLUGIN_CALLS, labels),
            call_seconds: histogram(names::PLUGIN_CALL_SECONDS, labels),
            batch_records: histogram(names::PLUGIN_BATCH_RECORDS, labels),
            log_lines_dropped: counter(names::PLUGIN_LOG_LINES_DROPPED, labels),
            instances: counter(names::PLUGIN_INSTANCES, labels),
            memory: (Levels::default(), gauge(names::PLUGIN_MEMORY_BYTES, labels)),
            swap_pause: histogram(names::PLUGIN_SWAP_PAUSE_SECONDS, labels),
            version: Arc::default(),
        }
    }

    /// A call with so many records that came back.
    pub fn called(&self, records: usize, took: Duration) {
        self.calls.increment(1);
        self.call_seconds.record(took.as_secs_f64());
        self.batch_records.record(records as f64);
    }

    /// A call that did not.
    pub fn fault(&self, code: &'static str) {
        self.by_label(names::PLUGIN_FAULTS, names::CODE, code).increment(1);
    }

    /// Log lines beyond the limit.
    pub fn log_lines_dropped(&self, count: u64) {
        self.log_lines_dropped.increment(count);
    }

    /// So many more instances were made.
    pub fn instances(&self, count: u64) {
        if count > 0 {
            self.instances.increment(count);
        }
    }

    /// Bytes of linear memory that the instance of the task of `partition` has; `None` once the task is gone.
    pub fn memory(&self, partition: i32, bytes: Option<u64>) {
        let (levels, gauge) = &self.memory;
        let show = |all: &std::collections::BTreeMap<i32, f64>| {
            gauge.set(all.values().copied().max_by(f64::total_cmp).unwrap_or_default());
        };
        levels.change(partition, bytes.map(|bytes| bytes as f64), show);
    }

    /// A change to another version, by what it came to.
    pub fn swapped(&self, result: &'static str) {
        self.by_label(names::PLUGIN_SWAPS, names::RESULT, result).increment(1);
    }

    /// How long one task stood still for it.
    pub fn paused_for_swap(&self, pause: Duration) {
        self.swap_pause.record(pause.as_secs_f64());
    }

    /// Shows which version runs here, in place of the one that was shown before.
    pub fn version(&self, digest: &str, version: &str) {
        let version: String = version.chars().take(VERSION_LENGTH).collect();
        let labels = [(names::PROCESSOR, &*self.processor), (names::DIGEST, digest), (names::VERSION, &*version)];
        let mut shown = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = shown.take() {
            old.set(GONE);
        }
        let new = gauge(names::PLUGIN_VERSION_INFO, &labels);
        new.set(1.0);
        *shown = Some(new);
    }

    fn by_label(&self, metric: Metric, label: &'static str, value: &'static str) -> Counter {
        counter(metric, &[(names::PROCESSOR, &self.processor), (label, value)])
    }
}
