//! From a failure to what is done about it. No clock, no I/O: tables of cases are its tests.

use crate::model::Failure;
use std::time::Duration;

/// How a record failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The plugin says that it will never work.
    Rejected(Failure),
    /// The plugin says that it may work later.
    Retry(Failure),
    /// The plugin says that nothing may go on.
    Stop(Failure),
    /// The call trapped, panicked, broke a limit, missed its deadline or returned nonsense, with this record alone.
    Broke(Failure),
    /// The log refuses an output, or the store's changelog a write, that this record made.
    Refused(Failure),
}

/// What is done about a failed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    DeadLetter(Failure),
    /// The same record again, this much later.
    Retry(Duration),
    /// The processor halts and says why.
    Stop(Failure),
}

/// The first and the longest wait of a retry.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

impl Cause {
    pub fn failure(&self) -> &Failure {
        match self {
            Cause::Rejected(f) | Cause::Retry(f) | Cause::Stop(f) | Cause::Broke(f) | Cause::Refused(f) => f,
        }
    }
}

/// Only a plugin's `retry` is temporary; everything else is permanent and goes to the dead letters at once.
/// `attempts` counts the failures before this one.
pub fn decide(cause: Cause, attempts: u32) -> Decision {
    match cause {
        Cause::Rejected(failure) | Cause::Broke(failure) | Cause::Refused(failure) => Decision::DeadLetter(failure),
        Cause::Stop(failure) => Decision::Stop(failure),
        Cause::Retry(failure) => Decision::Retry(failure.retry_after_ms.map_or_else(|| delay(attempts), wished)),
    }
}

/// The code under which metrics count a dead letter: ours by name, whatever plugins make up as `plugin`, so that labels stay bounded.
pub fn counted_as(code: &str) -> &'static str {
    const OURS: [&str; 13] = [
        "null-key",
        "trap",
        "panic",
        "deadline",
        "malformed-result",
        "limit-memory",
        "limit-table",
        "limit-stack",
        "limit-output",
        "limit-emits",
        "output-too-large",
        "output-timestamp-refused",
        "state-too-large",
    ];
    OURS.into_iter().find(|ours| *ours == code).unwrap_or("plugin")
}

fn delay(attempts: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << attempts.min(16)).min(LONGEST_DELAY)
}

/// A plugin's wish is granted up to an hour: beyond that it is more likely a mistake of units.
fn wished(ms: u64) -> Duration {
    Duration::from_millis(ms).min(Duration::from_secs(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_decision() {
        let failure = || Failure::new("code", "why");
        let after = |ms| Failure { retry_after_ms: Some(ms), ..failure() };
        let table = [
            (Cause::Rejected(failure()), 0, Decision::DeadLetter(failure())),
            (Cause::Broke(failure()), 7, Decision::DeadLetter(failure())),
            (Cause::Refused(failure()), 0, Decision::DeadLetter(failure())),
            (Cause::Stop(failure()), 0, Decision::Stop(failure())),
            (Cause::Retry(failure()), 0, Decision::Retry(Duration::from_millis(100))),
            (Cause::Retry(failure()), 3, Decision::Retry(Duration::from_millis(800))),
            (Cause::Retry(failure()), u32::MAX, Decision::Retry(Duration::from_secs(10))),
            (Cause::Retry(after(5)), 9, Decision::Retry(Duration::from_millis(5))),
            (Cause::Retry(after(u64::MAX)), 0, Decision::Retry(Duration::from_secs(3600))),
        ];
        for (cause, attempts, expected) in table {
            assert_eq!(decide(cause.clone(), attempts), expected, "{cause:?} after {attempts}");
        }
    }
}
