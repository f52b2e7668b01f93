//! How many dead letters are too many: a window that slides over the last minute, or over the time that the limit names.

use crate::config::LetterLimit;
use std::collections::VecDeque;
use std::time::Duration;

/// A share is judged over this time, once there are so many records in it.
const SHARE_WINDOW: Duration = Duration::from_secs(60);
const SHARE_RECORDS: u64 = 100;
/// The window moves in steps of this part of it.
const STEPS: u32 = 60;

/// Counts records and dead letters of a processor, of all its tasks in this process.
#[derive(Clone, Debug)]
pub struct LetterGate {
    limit: LetterLimit,
    window: Duration,
    /// Oldest first.
    steps: VecDeque<Step>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Since the beginning of time, in steps.
    number: u128,
    records: u64,
    letters: u64,
}

impl LetterGate {
    pub fn new(limit: LetterLimit) -> LetterGate {
        let window = match limit {
            LetterLimit::Share(_) => SHARE_WINDOW,
            LetterLimit::Rate { per, .. } => per,
        };
        LetterGate { limit, window, steps: VecDeque::new() }
    }

    /// Counts `records` that are done, `letters` of them dead letters, at `now` of a monotonic clock. False where that is more than the
    /// limit allows: then none of these letters may be written. Without letters it is always true.
    pub fn admit(&mut self, now: Duration, records: u64, letters: u64) -> bool {
        self.count(now, records, letters);
        letters == 0 || !self.is_passed()
    }

    /// Takes back what was admitted and then aborted: it is counted when it is done again.
    pub fn take_back(&mut self, mut records: u64, mut letters: u64) {
        for step in self.steps.iter_mut().rev() {
            let (r, l) = (step.records.min(records), step.letters.min(letters));
            (step.records, step.letters) = (step.records - r, step.letters - l);
            (records, letters) = (records - r, letters - l);
        }
    }

    fn count(&mut self, now: Duration, records: u64, letters: u64) {
        let number = now.as_nanos() / (self.window / STEPS).as_nanos().max(1);
        while self.steps.front().is_some_and(|step| step.number + u128::from(STEPS) <= number) {
            self.steps.pop_front();
        }
        match self.steps.back_mut() {
            // clocks of several workers may be read in one order and counted in another
            Some(step) if step.number >= number => {
                step.records = step.records.saturating_add(records);
                step.letters = step.letters.saturating_add(letters);
            }
            _ => self.steps.push_back(Step { number, records, letters }),
        }
    }

    fn is_passed(&self) -> bool {
        let sum = |of: fn(&Step) -> u64| self.steps.iter().map(of).fold(0, u64::saturating_add);
        let (records, letters) = (sum(|step| step.records), sum(|step| step.letters));
        match self.limit {
            LetterLimit::Share(share) => records >= SHARE_RECORDS && letters as f64 > records as f64 * share,
            LetterLimit::Rate { count, .. } => letters > count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn share() -> LetterGate {
        LetterGate::new(LetterLimit::Share(0.2))
    }

    fn rate(count: u64) -> LetterGate {
        LetterGate::new(LetterLimit::Rate { count, per: secs(1) })
    }

    #[test]
    fn a_share_is_judged_over_a_hundred_records() {
        let mut gate = share();
        assert!(gate.admit(secs(1), 99, 99), "too few to judge");
        let mut gate = share();
        assert!(gate.admit(secs(1), 100, 20), "as many as allowed");
        assert!(!gate.admit(secs(1), 1, 1));
        let mut gate = share();
        assert!(!gate.admit(secs(1), 100, 21));
        assert!(gate.admit(secs(1), 10, 0), "what makes no letters is not to blame");
    }

    #[test]
    fn the_window_slides() {
        let mut gate = share();
        assert!(gate.admit(secs(0), 100, 20));
        assert!(gate.admit(secs(30), 1000, 0));
        assert!(gate.admit(secs(59), 100, 60), "the good ones of half a minute ago still count");
        assert!(!gate.admit(secs(91), 100, 60), "and now they do not");
        let mut gate = rate(5);
        assert!(gate.admit(secs(1), 5, 5));
        assert!(!gate.admit(secs(1), 1, 1));
        assert!(gate.admit(secs(2), 5, 5));
    }

    #[test]
    fn a_rate_of_none_stops_at_the_first() {
        let mut gate = rate(0);
        assert!(gate.admit(secs(1), 10, 0));
        assert!(!gate.admit(secs(1), 1, 1));
    }

    #[test]
    fn what_was_aborted_does_not_count_twice() {
        let mut gate = rate(5);
        for second in 1..100 {
            let now = Duration::from_millis(10 * second);
            assert!(gate.admit(now, 3, 3) && gate.admit(now, 2, 2));
            gate.take_back(5, 5);
        }
        gate.take_back(u64::MAX, u64::MAX);
        assert!(gate.admit(secs(1), 5, 5));
    }

    #[test]
    fn time_that_goes_back_a_little_is_no_new_window() {
        let mut gate = rate(5);
        assert!(gate.admit(secs(10), 3, 3) && gate.admit(Duration::from_millis(9990), 2, 2));
        assert!(!gate.admit(secs(10), 1, 1));
        assert_eq!(gate.steps.len(), 1);
    }

    proptest! {
        /// Against a list of everything: within the window's whole steps nothing is forgotten, and nothing older is remembered.
        #[test]
        fn a_rate_counts_what_the_window_holds(
            count in 0u64..20, calls in prop::collection::vec((0u64..400, 0u64..4), 1..60)
        ) {
            let (mut gate, mut now, mut all) = (rate(count), 0u64, Vec::new());
            for (passed, letters) in calls {
                now += passed;
                all.push((now, letters));
                let within = |window: u64| all.iter().filter(|(at, _)| now - at < window).map(|(_, n)| n).sum::<u64>();
                let admitted = gate.admit(Duration::from_millis(now), letters, letters);
                if letters > 0 && within(980) > count {
                    prop_assert!(!admitted, "{} within a second", within(980));
                }
                if within(1001) <= count {
                    prop_assert!(admitted);
                }
                prop_assert!(gate.steps.len() <= STEPS as usize);
            }
        }
    }
}
