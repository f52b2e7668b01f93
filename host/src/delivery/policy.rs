//! From a failure to what is done about it. No clock, no I/O, no source of randomness: tables of cases are its tests.

use crate::config::{Action, Retry};
use crate::model::Failure;
use std::hash::{DefaultHasher, Hash, Hasher};
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
    /// The process died with this record, alone, again and again.
    Crashed(Failure),
}

/// What is done about a failed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    DeadLetter(Verdict, Failure),
    /// The same record again, this much later.
    Retry(Duration),
    /// The processor halts and says why.
    Stop(Failure),
}

/// Why a record was given up, in one word of its dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The plugin rejected it, or policy gives up its code at once.
    Rejected,
    /// Its call broke.
    Broke,
    /// The log refuses what it made.
    Refused,
    /// It was tried as often as policy allows.
    Exhausted,
    /// It killed its process.
    HostCrash,
}

/// The shortest wait of a retry.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);
/// A plugin's wish is granted up to this: beyond it is more likely a mistake of units.
const LONGEST_WISH: Duration = Duration::from_secs(3600);

impl Cause {
    pub fn failure(&self) -> &Failure {
        match self {
            Cause::Rejected(f)
            | Cause::Retry(f)
            | Cause::Stop(f)
            | Cause::Broke(f)
            | Cause::Refused(f)
            | Cause::Crashed(f) => f,
        }
    }

    fn into_failure(self) -> Failure {
        match self {
            Cause::Rejected(f)
            | Cause::Retry(f)
            | Cause::Stop(f)
            | Cause::Broke(f)
            | Cause::Refused(f)
            | Cause::Crashed(f) => f,
        }
    }

    /// What is done where policy says nothing of the code.
    fn rule(&self) -> Action {
        match self {
            Cause::Retry(_) => Action::Retry,
            Cause::Stop(_) => Action::Stop,
            Cause::Rejected(_) | Cause::Broke(_) | Cause::Refused(_) | Cause::Crashed(_) => Action::DeadLetter,
        }
    }

    /// Whether it would fail in the same way for ever: to try it again is no choice.
    fn is_final(&self) -> bool {
        matches!(self, Cause::Refused(_) | Cause::Crashed(_))
    }

    fn verdict(&self) -> Verdict {
        match self {
            Cause::Rejected(_) | Cause::Retry(_) | Cause::Stop(_) => Verdict::Rejected,
            Cause::Broke(_) => Verdict::Broke,
            Cause::Refused(_) => Verdict::Refused,
            Cause::Crashed(_) => Verdict::HostCrash,
        }
    }
}

impl Verdict {
    /// The word in the header `pelton-verdict`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Rejected => "rejected",
            Verdict::Broke => "broke",
            Verdict::Refused => "refused",
            Verdict::Exhausted => "exhausted",
            Verdict::HostCrash => "host-crash",
        }
    }
}

/// What is done about a record that failed so. `attempts` counts the failures before this one; `random` is in 0..1.
///
/// Only a plugin's `retry` is temporary; everything else is permanent and becomes a dead letter at once. What policy says of the code
/// goes before that.
pub fn decide(policy: &Retry, cause: Cause, attempts: u32, random: f64) -> Decision {
    match action(policy, &cause) {
        Action::Stop => Decision::Stop(cause.into_failure()),
        Action::DeadLetter => Decision::DeadLetter(cause.verdict(), cause.into_failure()),
        Action::Retry if attempts.saturating_add(1) >= policy.max_attempts => {
            Decision::DeadLetter(Verdict::Exhausted, cause.into_failure())
        }
        Action::Retry => Decision::Retry(match cause.failure().retry_after_ms {
            Some(ms) => Duration::from_millis(ms).min(LONGEST_WISH),
            None => delay(policy, attempts, random),
        }),
    }
}

/// A number in 0..1 that `seed` alone decides, evenly spread over seeds: what failed together does not come back together, and a
/// second run does as the first.
pub fn jitter(seed: impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    // as many bits as a float has behind the point
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}

/// The code under which metrics count a dead letter: ours by name, whatever plugins make up as `plugin`, so that labels stay bounded.
pub fn counted_as(code: &str) -> &'static str {
    OURS.into_iter().find(|ours| *ours == code).unwrap_or("plugin")
}

/// The codes of a dead letter that are the host's or the SDK's.
const OURS: [&str; 20] = [
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
    "output-refused",
    "state-too-large",
    "host-crash",
    "null-value",
    "invalid-json",
    "invalid-utf8",
    "state-codec",
    "error",
];

fn action(policy: &Retry, cause: &Cause) -> Action {
    match policy.codes.get(&cause.failure().code) {
        Some(Action::Retry) if cause.is_final() => cause.rule(),
        Some(action) => *action,
        None => cause.rule(),
    }
}

/// Full jitter: anything up to the bound, which grows with every attempt.
fn delay(policy: &Retry, attempts: u32, random: f64) -> Duration {
    let grown = policy.first_delay.as_secs_f64() * policy.factor.powf(f64::from(attempts));
    let bound = grown.min(policy.max_delay.as_secs_f64());
    let delay = Duration::try_from_secs_f64(bound * random).unwrap_or(policy.max_delay);
    delay.min(policy.max_delay).max(SHORTEST_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failure() -> Failure {
        Failure::new("code", "why")
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn policy(action: Action) -> Retry {
        Retry { codes: [("code".to_owned(), action)].into(), ..Retry::default() }
    }

    type Make = fn(Failure) -> Cause;
    const CAUSES: [Make; 6] =
        [Cause::Rejected, Cause::Retry, Cause::Stop, Cause::Broke, Cause::Refused, Cause::Crashed];

    #[test]
    fn every_cause_has_its_decision() {
        use Verdict::*;
        let given_up = |verdict| Decision::DeadLetter(verdict, failure());
        let table = [
            (Cause::Rejected(failure()), given_up(Rejected)),
            (Cause::Retry(failure()), Decision::Retry(ms(100))),
            (Cause::Stop(failure()), Decision::Stop(failure())),
            (Cause::Broke(failure()), given_up(Broke)),
            (Cause::Refused(failure()), given_up(Refused)),
            (Cause::Crashed(failure()), given_up(HostCrash)),
        ];
        for (cause, expected) in table {
            assert_eq!(decide(&Retry::default(), cause.clone(), 0, 1.0), expected, "{cause:?}");
        }
    }

    #[test]
    fn what_policy_says_of_a_code_goes_first() {
        for make in CAUSES {
            let cause = make(failure());
            assert_eq!(decide(&policy(Action::Stop), cause.clone(), 0, 1.0), Decision::Stop(failure()), "{cause:?}");
            let given_up = decide(&policy(Action::DeadLetter), cause.clone(), 0, 1.0);
            assert_eq!(given_up, Decision::DeadLetter(cause.verdict(), failure()), "{cause:?}");
            let again = decide(&policy(Action::Retry), cause.clone(), 0, 1.0);
            let never = matches!(cause, Cause::Refused(_) | Cause::Crashed(_));
            assert_eq!(again != Decision::Retry(ms(100)), never, "{cause:?}");
        }
        let other = Retry { codes: [("other".to_owned(), Action::Stop)].into(), ..Retry::default() };
        assert_eq!(decide(&other, Cause::Retry(failure()), 0, 1.0), Decision::Retry(ms(100)));
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let retry = |max_attempts, attempts| {
            decide(&Retry { max_attempts, ..Retry::default() }, Cause::Retry(failure()), attempts, 1.0)
        };
        let exhausted = Decision::DeadLetter(Verdict::Exhausted, failure());
        assert_eq!(retry(1, 0), exhausted, "one call in all");
        assert_eq!((retry(3, 1), retry(3, 2)), (Decision::Retry(ms(200)), exhausted.clone()));
        assert_eq!(retry(3, u32::MAX), exhausted);
    }

    #[test]
    fn waits_grow_to_their_bound_and_are_a_share_of_it() {
        let wait = |attempts, random| {
            let policy = Retry { max_attempts: u32::MAX, ..Retry::default() };
            decide(&policy, Cause::Retry(failure()), attempts, random)
        };
        for (attempts, random, expected) in
            [(0, 1.0, 100), (3, 1.0, 800), (3, 0.25, 200), (7, 1.0, 10_000), (u32::MAX - 2, 0.5, 5_000), (9, 0.0, 1)]
        {
            assert_eq!(wait(attempts, random), Decision::Retry(ms(expected)), "after {attempts} with {random}");
        }
    }

    #[test]
    fn a_plugins_wish_is_granted_without_jitter_up_to_an_hour() {
        let wish = |ms| Cause::Retry(Failure { retry_after_ms: Some(ms), ..failure() });
        for (asked, granted) in [(5, 5), (0, 0), (u64::MAX, 3_600_000)] {
            assert_eq!(decide(&Retry::default(), wish(asked), 3, 0.1), Decision::Retry(ms(granted)));
        }
        let exhausted = decide(&Retry::default(), wish(5), 9, 0.1);
        assert!(matches!(exhausted, Decision::DeadLetter(Verdict::Exhausted, _)), "a wish is no way around the limit");
    }

    #[test]
    fn jitter_is_spread_evenly_and_repeats() {
        let numbers: Vec<f64> = (0..10_000i64).map(|offset| jitter(("task", offset, 1u32))).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        let low = numbers.iter().filter(|n| **n < 0.1).count();
        assert!((800..1200).contains(&low), "{low} in the lowest tenth");
        assert_eq!(jitter(("task", 7i64, 1u32)), numbers[7]);
    }

    #[test]
    fn labels_are_bounded() {
        assert_eq!(counted_as("host-crash"), "host-crash");
        assert_eq!(counted_as("made-up-by-a-plugin"), "plugin");
    }

    #[test]
    fn the_page_names_every_code_and_verdict() {
        let page = include_str!("../../../docs/dead-letters.md");
        for code in OURS {
            assert!(page.contains(&format!("| `{code}` |")), "{code}");
        }
        for make in CAUSES {
            let word = make(failure()).verdict().as_str();
            assert!(page.contains(&format!("| `{word}` |")), "{word}");
        }
        assert!(page.contains("| `exhausted` |"));
    }

    proptest! {
        #[test]
        fn no_setting_makes_a_wait_longer_than_allowed(
            first in 0u64..1 << 40, max in 0u64..1 << 40, factor in 1.0f64..1e9, attempts: u32, random in 0.0f64..1.0
        ) {
            let (first_delay, max_delay) = (ms(first), ms(max));
            let policy = Retry { first_delay, factor, max_delay, max_attempts: u32::MAX, ..Retry::default() };
            match decide(&policy, Cause::Retry(failure()), attempts.min(u32::MAX - 2), random) {
                Decision::Retry(delay) => prop_assert!(delay >= SHORTEST_DELAY && delay <= max_delay.max(SHORTEST_DELAY)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
