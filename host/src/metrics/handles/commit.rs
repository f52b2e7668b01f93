//! What the commits of a worker count.

use super::{GONE, counter, gauge, histogram};
use crate::metrics::names;
use metrics::{Counter, Gauge, Histogram};
use std::collections::BTreeMap;
use std::time::Duration;

/// The numbers of a worker's commits. But for since when it has something open, all workers add to the same ones.
#[derive(Clone)]
pub struct CommitMetrics {
    transactions: Counter,
    rebuilds: Counter,
    fencings: Counter,
    phases: BTreeMap<&'static str, Histogram>,
    lateness: Histogram,
    open_since: Gauge,
}

impl CommitMetrics {
    pub fn new(worker: usize) -> Self {
        let phase = |&name: &&'static str| (name, histogram(names::COMMIT_SECONDS, &[(names::PHASE, name)]));
        let metrics = CommitMetrics {
            transactions: counter(names::COMMIT_TRANSACTIONS, &[]),
            rebuilds: counter(names::PRODUCER_REBUILDS, &[]),
            fencings: counter(names::PRODUCER_FENCINGS, &[]),
            phases: names::PHASES.iter().map(phase).collect(),
            lateness: histogram(names::COMMIT_LATENESS_SECONDS, &[]),
            open_since: gauge(names::COMMIT_OPEN_SINCE, &[(names::WORKER, &worker.to_string())]),
        };
        metrics.settled();
        metrics
    }

    pub fn committed(&self) {
        self.transactions.increment(1);
    }

    /// Time of one of [`names::PHASES`]; others are not counted.
    pub fn phase(&self, name: &str, took: Duration) {
        if let Some(histogram) = self.phases.get(name) {
            histogram.record(took.as_secs_f64());
        }
    }

    /// A commit began so much later than it was due.
    pub fn late(&self, by: Duration) {
        self.lateness.record(by.as_secs_f64());
    }

    /// Something is uncommitted since then, in milliseconds since the epoch.
    pub fn open(&self, since_ms: i64) {
        self.open_since.set(since_ms as f64 / 1e3);
    }

    /// Nothing is uncommitted.
    pub fn settled(&self) {
        self.open_since.set(GONE);
    }

    /// An abort, by the code of its fault.
    pub fn aborted(&self, reason: &'static str) {
        counter(names::COMMIT_ABORTS, &[(names::REASON, reason)]).increment(1);
    }

    pub fn producer_rebuilt(&self) {
        self.rebuilds.increment(1);
    }

    /// The producer has lost its identity.
    pub fn producer_fenced(&self) {
        self.fencings.increment(1);
    }
}
