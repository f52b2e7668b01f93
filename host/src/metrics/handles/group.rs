//! A host's part in a processor's group.

use super::{GONE, counter, gauge};
use crate::metrics::names;
use metrics::{Counter, Gauge};

/// The numbers of a membership. Clones add to the same ones.
#[derive(Clone)]
pub struct GroupMetrics {
    processor: String,
    assigned: Gauge,
    member: Gauge,
    rebalances: Counter,
    lost: Counter,
    fencings: Counter,
}

impl GroupMetrics {
    pub fn new(processor: &str) -> Self {
        let labels = &[(names::PROCESSOR, processor)];
        GroupMetrics {
            processor: processor.to_owned(),
            assigned: gauge(names::TASK_ASSIGNED, labels),
            member: gauge(names::GROUP_MEMBER, labels),
            rebalances: counter(names::GROUP_REBALANCES, labels),
            lost: counter(names::GROUP_PARTITIONS_LOST, labels),
            fencings: counter(names::GROUP_FENCINGS, labels),
        }
    }

    /// How many tasks this host owns now.
    pub fn owns(&self, tasks: usize) {
        self.assigned.set(tasks as f64);
    }

    /// The group gave partitions to this host, or took some.
    pub fn rebalanced(&self) {
        self.rebalances.increment(1);
    }

    pub fn lost(&self, partitions: usize) {
        self.lost.increment(partitions as u64);
    }

    /// Whether this host takes part in the group.
    pub fn member(&self, is_member: bool) {
        self.member.set(f64::from(u8::from(is_member)));
    }

    /// The group took this host for another.
    pub fn fenced(&self) {
        self.fencings.increment(1);
    }

    /// How many records of a partition are still to be worked off; `None` where that is not known, or not this host's any more.
    pub fn lag(&self, partition: i32, records: Option<u64>) {
        let labels = [(names::PROCESSOR, &*self.processor), (names::PARTITION, &*partition.to_string())];
        gauge(names::GROUP_LAG_RECORDS, &labels).set(records.map_or(GONE, |records| records as f64));
    }
}
