//! What a processor's tasks count.

use super::levels::Levels;
use super::{CustomMetrics, GONE, GroupMetrics, PluginMetrics, counter, gauge};
use crate::metrics::names;
use metrics::{Counter, Gauge};

/// The numbers of a processor. Clones add to the same ones.
#[derive(Clone)]
pub struct ProcessorMetrics {
    pub plugin: PluginMetrics,
    pub group: GroupMetrics,
    /// What the plugin counts itself.
    pub custom: CustomMetrics,
    processor: String,
    records_in: Counter,
    bytes_in: Counter,
    records_out: Counter,
    bytes_out: Counter,
    timestamps_rewritten: Counter,
    retries: Counter,
    overlay_bytes: Gauge,
    parked_records: Gauge,
    backing_off: (Levels, Gauge, Gauge),
    halted: (Levels, Gauge),
    delayed: (Levels, Gauge),
    unwritable: (Levels, Gauge),
    restoring: Gauge,
    restore_left: Gauge,
    stopped: Gauge,
}

/// What became visible with a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub records_in: u64,
    pub bytes_in: u64,
    pub records_out: u64,
    pub bytes_out: u64,
    /// Outputs whose timestamp 0 was written as 1.
    pub timestamps_rewritten: u64,
}

impl ProcessorMetrics {
    pub fn new(processor: &str) -> Self {
        let labels = &[(names::PROCESSOR, processor)];
        let (own, level) = (|metric| counter(metric, labels), |metric| gauge(metric, labels));
        let since = level(names::TASK_BACKING_OFF_SINCE);
        since.set(GONE);
        ProcessorMetrics {
            plugin: PluginMetrics::new(processor),
            group: GroupMetrics::new(processor),
            custom: CustomMetrics::new(processor),
            processor: processor.to_owned(),
            records_in: own(names::TASK_RECORDS_IN),
            bytes_in: own(names::TASK_BYTES_IN),
            records_out: own(names::TASK_RECORDS_OUT),
            bytes_out: own(names::TASK_BYTES_OUT),
            timestamps_rewritten: own(names::TASK_TIMESTAMPS_REWRITTEN),
            retries: own(names::DELIVERY_RETRIES),
            overlay_bytes: level(names::TASK_OVERLAY_BYTES),
            parked_records: level(names::TASK_PARKED_RECORDS),
            backing_off: (Levels::default(), level(names::TASK_BACKING_OFF), since),
            halted: (Levels::default(), level(names::TASK_HALTED)),
            delayed: (Levels::default(), level(names::STATE_DELAYED_TASKS)),
            unwritable: (Levels::default(), level(names::STATE_STOPPED_TASKS)),
            restoring: level(names::CHANGELOG_RESTORING_TASKS),
            restore_left: level(names::CHANGELOG_RESTORE_LEFT),
            stopped: level(names::PROCESSOR_STOPPED),
        }
    }

    /// After a commit: what it made visible.
    pub fn committed(&self, traffic: Traffic) {
        self.records_in.increment(traffic.records_in);
        self.bytes_in.increment(traffic.bytes_in);
        self.records_out.increment(traffic.records_out);
        self.bytes_out.increment(traffic.bytes_out);
        if traffic.timestamps_rewritten > 0 {
            self.timestamps_rewritten.increment(traffic.timestamps_rewritten);
        }
    }

    /// Dead letters that a commit made visible. Codes from plugins are not bounded by us: pass `plugin` for those.
    pub fn dead_letters(&self, code: &'static str, count: u64) {
        let labels = [(names::PROCESSOR, &*self.processor), (names::CODE, code)];
        counter(names::DELIVERY_DEAD_LETTERS, &labels).increment(count);
    }

    pub fn retried(&self) {
        self.retries.increment(1);
    }

    /// The overlay of a task grew (or shrank) by so many bytes.
    pub fn overlay_changed(&self, bytes: i64) {
        if bytes != 0 {
            self.overlay_bytes.increment(bytes as f64);
        }
    }

    /// A task has so many more (or, negative, fewer) records parked.
    pub fn parked(&self, records: i64) {
        if records != 0 {
            self.parked_records.increment(records as f64);
        }
    }

    /// The task of `partition` waits for a retry since then, in milliseconds since the epoch, or (`None`) does not.
    pub fn backing_off(&self, partition: i32, since_ms: Option<i64>) {
        let (levels, tasks, since) = &self.backing_off;
        let seconds = since_ms.map(|ms| ms as f64 / 1e3);
        levels.change(partition, seconds, |all| {
            tasks.set(all.len() as f64);
            since.set(all.values().copied().min_by(f64::total_cmp).unwrap_or(GONE));
        });
    }

    /// Whether the task of `partition` does nothing any more.
    pub fn halted(&self, partition: i32, is_halted: bool) {
        mark(&self.halted, partition, is_halted);
    }

    /// Whether the stores of the task of `partition` slow writes down, and whether they take none.
    pub fn stalls(&self, partition: i32, delayed: bool, stopped: bool) {
        mark(&self.delayed, partition, delayed);
        mark(&self.unwritable, partition, stopped);
    }

    /// How many tasks read their stores back, and how many offsets they have still to pass.
    pub fn restoring(&self, tasks: usize, left: u64) {
        self.restoring.set(tasks as f64);
        self.restore_left.set(left as f64);
    }

    /// Whether the processor stands still on this host.
    pub fn stopped(&self, is_stopped: bool) {
        self.stopped.set(f64::from(u8::from(is_stopped)));
    }
}

/// Counts the task of `partition` among those of which `is` holds, or not.
fn mark((levels, gauge): &(Levels, Gauge), partition: i32, is: bool) {
    levels.change(partition, is.then_some(1.0), |all| gauge.set(all.len() as f64));
}
