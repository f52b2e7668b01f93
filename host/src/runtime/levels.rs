//! Levels for metrics that nobody else sees change: lag, restores, the memory of stores. The supervisor brings them up to date.

use super::Shared;
use super::assignment::Assignment;
use super::lag::{PartitionLag, ProcessorLag};
use super::opener::Tools;
use crate::metrics::MemoryMetrics;
use crate::model::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was shown last.
#[derive(Default)]
pub(super) struct Levels {
    memory: Option<(MemoryMetrics, Arc<Tools>)>,
    lags: Arc<Vec<ProcessorLag>>,
    /// Partitions whose lag is shown, by the number of their processor.
    shown: BTreeSet<(usize, i32)>,
}

impl Levels {
    /// From now on the stores' memory is shown too.
    pub(super) fn of_stores(&mut self, tools: Arc<Tools>) {
        let (cache, memtables) = tools.stores.limits();
        self.memory = Some((MemoryMetrics::new(cache, memtables), tools));
    }

    pub(super) fn show(&mut self, shared: &Shared, assignments: &[Arc<Assignment>]) {
        for spec in assignments.iter().map(|assignment| assignment.spec()) {
            let (tasks, left) = shared.restores.left(&spec.name);
            spec.metrics.restoring(tasks, left);
        }
        if let Some((memory, tools)) = &self.memory {
            memory.used(tools.stores.cache_usage(), tools.stores.write_buffer_usage());
        }
        self.show_lags(shared.lags.read(shared.clock.monotonic()), assignments);
    }

    /// A look at lags is shown once, for the partitions that this host works on by then.
    fn show_lags(&mut self, lags: Arc<Vec<ProcessorLag>>, assignments: &[Arc<Assignment>]) {
        if Arc::ptr_eq(&self.lags, &lags) || (self.lags.is_empty() && lags.is_empty()) {
            return;
        }
        let mut shown = BTreeSet::new();
        for (number, assignment) in assignments.iter().enumerate() {
            let (spec, own) = (assignment.spec(), assignment.partitions());
            let found = lags.iter().find(|(name, _)| *name == spec.name).map_or(&[][..], |(_, found)| found);
            for partition in own {
                let lag = of_partition(found, partition);
                spec.metrics.group.lag(partition, lag);
                shown.extend(lag.map(|_| (number, partition)));
            }
        }
        for (number, partition) in self.shown.difference(&shown) {
            assignments[*number].spec().metrics.group.lag(*partition, None);
        }
        (self.lags, self.shown) = (lags, shown);
    }
}

/// The lag of a partition number over all inputs; `None` where that of one is not known.
fn of_partition(found: &[PartitionLag], partition: i32) -> Option<u64> {
    let mut own = found.iter().filter(|lag| lag.place.partition == partition).peekable();
    own.peek()?;
    own.map(|lag| lag.lag.and_then(|lag| u64::try_from(lag).ok())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TopicPartition;

    #[test]
    fn a_lag_is_known_where_that_of_each_input_is() {
        let lag = |topic: &str, partition, lag| {
            let place = TopicPartition::new(topic, partition);
            PartitionLag { place, committed: Some(0), end: Some(9), lag, parked: 0 }
        };
        let found =
            [lag("a", 0, Some(3)), lag("b", 0, Some(4)), lag("a", 1, Some(0)), lag("a", 2, Some(1)), lag("b", 2, None)];
        assert_eq!([0, 1, 2, 3].map(|partition| of_partition(&found, partition)), [Some(7), Some(0), None, None]);
    }
}
