//! A record that failed and is tried again: what is remembered of it, and when it is due.

use super::work::Moment;
use crate::delivery::Attempts;
use std::time::Duration;

/// What an input remembers of the record that it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) attempts: Attempts,
    /// On the monotonic clock.
    pub(super) due: Duration,
    /// The attempts as the metadata of a committed offset.
    pub(super) note: String,
}

impl Retry {
    pub(super) fn new(attempts: Attempts, due: Duration) -> Retry {
        Retry { attempts, due, note: attempts.encode() }
    }

    /// What another life of the task remembered, perhaps on another host.
    pub(super) fn recalled(attempts: Attempts, now: Moment) -> Retry {
        Retry::new(attempts, due(&attempts, now))
    }
}

/// When an attempt is due on the monotonic clock. Nothing waits longer than it was set to, whatever has become of the wall clock.
pub(super) fn due(attempts: &Attempts, now: Moment) -> Duration {
    let longest = attempts.due_ms.saturating_sub(attempts.last_ms).max(0);
    let left = attempts.due_ms.saturating_sub(now.wall_ms).clamp(0, longest);
    now.monotonic.saturating_add(Duration::from_millis(left as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_wait_is_the_same_on_any_clock() {
        let attempts = Attempts { offset: 7, count: 1, first_ms: 900, last_ms: 1000, due_ms: 1500 };
        let waits = |wall_ms: i64| {
            let now = Moment { wall_ms, monotonic: Duration::from_secs(9) };
            (due(&attempts, now) - now.monotonic).as_millis()
        };
        assert_eq!([1000, 1200, 1500, 9999].map(waits), [500, 300, 0, 0]);
        assert_eq!([0, i64::MIN].map(waits), [500, 500], "a clock that was set back");
        let odd = Attempts { due_ms: i64::MAX, last_ms: i64::MIN, ..attempts };
        assert!(due(&odd, Moment::default()) > Duration::from_secs(1), "no overflow");
    }
}
