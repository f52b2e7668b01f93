//! Handles of the metrics: made once where work is set up, one atomic addition per batch or commit where it is done.
//!
//! A handle is bound to the recorder that is installed when it is made: install one first ([`super::Registry::install`]).

use super::names::{self, Metric};
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, SharedString};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a processor's tasks count. Clones add to the same numbers.
#[derive(Clone)]
pub struct ProcessorMetrics {
    processor: String,
    records_in: Counter,
    bytes_in: Counter,
    records_out: Counter,
    bytes_out: Counter,
    timestamps_rewritten: Counter,
    calls: Counter,
    call_seconds: Histogram,
    retries: Counter,
    log_lines_dropped: Counter,
    overlay_bytes: Gauge,
    parked_records: Gauge,
    assigned: Gauge,
    rebalances: Counter,
    partitions_lost: Counter,
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

/// What the commits of a worker count.
#[derive(Clone)]
pub struct CommitMetrics {
    transactions: Counter,
    rebuilds: Counter,
    phases: BTreeMap<&'static str, Histogram>,
}

/// What a store's changelog counts.
#[derive(Clone)]
pub struct ChangelogMetrics {
    records_out: Counter,
    restored: Counter,
}

impl ProcessorMetrics {
    pub fn new(processor: &str) -> Self {
        let own = |metric| counter(metric, &[(names::PROCESSOR, processor)]);
        ProcessorMetrics {
            processor: processor.to_owned(),
            records_in: own(names::TASK_RECORDS_IN),
            bytes_in: own(names::TASK_BYTES_IN),
            records_out: own(names::TASK_RECORDS_OUT),
            bytes_out: own(names::TASK_BYTES_OUT),
            timestamps_rewritten: own(names::TASK_TIMESTAMPS_REWRITTEN),
            calls: own(names::PLUGIN_CALLS),
            call_seconds: histogram(names::PLUGIN_CALL_SECONDS, &[(names::PROCESSOR, processor)]),
            retries: own(names::DELIVERY_RETRIES),
            log_lines_dropped: own(names::PLUGIN_LOG_LINES_DROPPED),
            overlay_bytes: gauge(names::TASK_OVERLAY_BYTES, &[(names::PROCESSOR, processor)]),
            parked_records: gauge(names::TASK_PARKED_RECORDS, &[(names::PROCESSOR, processor)]),
            assigned: gauge(names::TASK_ASSIGNED, &[(names::PROCESSOR, processor)]),
            rebalances: own(names::GROUP_REBALANCES),
            partitions_lost: own(names::GROUP_PARTITIONS_LOST),
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

    /// A call of the plugin that came back.
    pub fn called(&self, took: Duration) {
        self.calls.increment(1);
        self.call_seconds.record(took.as_secs_f64());
    }

    /// Dead letters that a commit made visible. Codes from plugins are not bounded by us: pass `plugin` for those.
    pub fn dead_letters(&self, code: &'static str, count: u64) {
        self.by_code(names::DELIVERY_DEAD_LETTERS, names::CODE, code).increment(count);
    }

    pub fn guest_fault(&self, code: &'static str) {
        self.by_code(names::PLUGIN_FAULTS, names::CODE, code).increment(1);
    }

    pub fn skipped(&self, reason: &'static str, count: u64) {
        self.by_code(names::TASK_RECORDS_SKIPPED, names::REASON, reason).increment(count);
    }

    /// A task has changed to another version of the plugin, which has cost it so long.
    pub fn swapped(&self, _pause: Duration) {}

    /// What became of a version: `deployed`, `refused` or `rolled-back`.
    pub fn swap(&self, _result: &'static str) {}

    pub fn retried(&self) {
        self.retries.increment(1);
    }

    pub fn log_lines_dropped(&self, count: u64) {
        self.log_lines_dropped.increment(count);
    }

    /// The overlay of a task grew (or shrank) by so many bytes.
    pub fn overlay_changed(&self, bytes: i64) {
        self.overlay_bytes.increment(bytes as f64);
    }

    /// A task has so many more (or, negative, fewer) records parked.
    pub fn parked(&self, records: i64) {
        if records != 0 {
            self.parked_records.increment(records as f64);
        }
    }

    /// The group gave tasks to this host, or (negative) took some.
    pub fn assigned(&self, tasks: i64) {
        self.rebalances.increment(1);
        self.assigned.increment(tasks as f64);
    }

    pub fn partitions_lost(&self, count: u64) {
        self.partitions_lost.increment(count);
    }

    fn by_code(&self, metric: Metric, label: &'static str, value: &'static str) -> Counter {
        counter(metric, &[(names::PROCESSOR, &self.processor), (label, value)])
    }
}

impl Default for CommitMetrics {
    fn default() -> Self {
        let phase = |&name: &&'static str| (name, histogram(names::COMMIT_SECONDS, &[(names::PHASE, name)]));
        CommitMetrics {
            transactions: counter(names::COMMIT_TRANSACTIONS, &[]),
            rebuilds: counter(names::PRODUCER_REBUILDS, &[]),
            phases: names::PHASES.iter().map(phase).collect(),
        }
    }
}

impl CommitMetrics {
    pub fn committed(&self) {
        self.transactions.increment(1);
    }

    /// Time of one of [`names::PHASES`]; others are not counted.
    pub fn phase(&self, name: &str, took: Duration) {
        if let Some(histogram) = self.phases.get(name) {
            histogram.record(took.as_secs_f64());
        }
    }

    /// An abort, by the code of its fault.
    pub fn aborted(&self, reason: &'static str) {
        counter(names::COMMIT_ABORTS, &[(names::REASON, reason)]).increment(1);
    }

    pub fn producer_rebuilt(&self) {
        self.rebuilds.increment(1);
    }
}

impl ChangelogMetrics {
    pub fn new(processor: &str, store: &str) -> Self {
        let own = |metric| counter(metric, &[(names::PROCESSOR, processor), (names::STORE, store)]);
        ChangelogMetrics {
            records_out: own(names::CHANGELOG_RECORDS_OUT),
            restored: own(names::CHANGELOG_RECORDS_RESTORED),
        }
    }

    pub fn committed(&self, records: u64) {
        self.records_out.increment(records);
    }

    pub fn restored(&self, records: u64) {
        self.restored.increment(records);
    }
}

const METADATA: Metadata<'static> = Metadata::new("pelton", Level::INFO, None);

fn counter(metric: Metric, labels: &[(&'static str, &str)]) -> Counter {
    metrics::with_recorder(|r| r.register_counter(&key(metric, labels), &METADATA))
}

fn gauge(metric: Metric, labels: &[(&'static str, &str)]) -> Gauge {
    metrics::with_recorder(|r| r.register_gauge(&key(metric, labels), &METADATA))
}

fn histogram(metric: Metric, labels: &[(&'static str, &str)]) -> Histogram {
    metrics::with_recorder(|r| r.register_histogram(&key(metric, labels), &METADATA))
}

fn key(metric: Metric, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|&(name, value)| Label::new(name, SharedString::from(value.to_owned()))).collect();
    Key::from_parts(metric.name, labels)
}
