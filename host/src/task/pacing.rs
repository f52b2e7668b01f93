//! How many records the next call gets: a call should take about ten milliseconds, and after a fault the culprit must be found.

use std::time::Duration;

/// A call that takes longer than this gets fewer records next time; one that takes less than a quarter of it gets more.
const TARGET: Duration = Duration::from_millis(10);
/// So many clean records end the caution after two culprits running.
const CLEAN: u32 = 100;

/// The size of the next batch. Pure: no clock, no I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pacing {
    most: usize,
    bytes: usize,
    size: usize,
    /// Records still to be run one by one, because a call over them broke.
    alone: usize,
    culprits_running: u32,
    /// Clean records still wanted before batches grow again.
    cautious: u32,
}

impl Pacing {
    pub(super) fn new(most: usize, bytes: usize) -> Pacing {
        Pacing { most, bytes, size: most, alone: 0, culprits_running: 0, cautious: 0 }
    }

    /// Most records of the next batch.
    pub(super) fn records(&self) -> usize {
        if self.alone > 0 || self.cautious > 0 { 1 } else { self.size }
    }

    /// Whether records are run again one by one to find a culprit.
    pub(super) fn is_hunting(&self) -> bool {
        self.alone > 0
    }

    /// Most bytes of the next batch.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A call over `records` came back after `took`.
    pub(super) fn clean(&mut self, records: usize, took: Duration) {
        self.alone = self.alone.saturating_sub(records);
        self.cautious = self.cautious.saturating_sub(records.min(u32::MAX as usize) as u32);
        if records > 0 {
            self.culprits_running = 0;
        }
        if took > TARGET * 2 {
            self.size = (self.size / 2).max(1);
        } else if took < TARGET / 4 && records >= self.size {
            self.size = (self.size * 2).min(self.most);
        }
    }

    /// A call over `records` broke, and nothing says which of them did it: they are run again one by one.
    pub(super) fn isolate(&mut self, records: usize) {
        self.alone = self.alone.max(records);
    }

    /// A call over `records` broke a limit that a smaller batch may keep.
    pub(super) fn halve(&mut self, records: usize) {
        self.size = (records / 2).max(1);
    }

    /// A record was found guilty, alone.
    pub(super) fn culprit(&mut self) {
        self.alone = self.alone.saturating_sub(1);
        self.culprits_running += 1;
        if self.culprits_running >= 2 {
            self.cautious = CLEAN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_millis(1);

    #[test]
    fn slow_calls_shrink_and_fast_ones_grow() {
        let mut pacing = Pacing::new(512, 1 << 20);
        pacing.clean(512, Duration::from_millis(50));
        assert_eq!(pacing.records(), 256);
        pacing.clean(10, FAST);
        assert_eq!(pacing.records(), 256, "a batch that was not full proves nothing");
        pacing.clean(256, FAST);
        assert_eq!(pacing.records(), 512);
        (0..20).for_each(|_| pacing.clean(1, Duration::from_secs(1)));
        assert_eq!(pacing.records(), 1);
    }

    #[test]
    fn a_broken_batch_is_run_one_by_one_to_its_end() {
        let mut pacing = Pacing::new(512, 1 << 20);
        pacing.isolate(3);
        pacing.clean(1, FAST);
        pacing.culprit();
        assert_eq!(pacing.records(), 1);
        pacing.clean(1, FAST);
        assert_eq!(pacing.records(), 512);
    }

    #[test]
    fn two_culprits_running_keep_it_at_one_until_a_hundred_are_clean() {
        let mut pacing = Pacing::new(512, 1 << 20);
        pacing.isolate(2);
        pacing.culprit();
        pacing.culprit();
        (0..99).for_each(|_| pacing.clean(1, FAST));
        assert_eq!(pacing.records(), 1);
        pacing.clean(1, FAST);
        assert_eq!(pacing.records(), 512);
    }
}
