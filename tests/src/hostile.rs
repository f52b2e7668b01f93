//! Input for the plugin `bad`, with a known end for every record: which verb ends as an output, and which as a dead letter of what
//! verdict and code.

use crate::app::{App, Draft, Log, Processor};
use crate::letter::Letter;
use crate::record::Rec;
use crate::rng::Rng;

/// Calls with a record before it is given up.
pub const ATTEMPTS: u32 = 4;
pub const PARTITIONS: i32 = 4;

/// What a record of this kind asks for, and how it ends.
#[derive(Debug)]
pub struct Kind {
    /// The first words of the value.
    pub verb: &'static str,
    /// How many there are, in proportion: those that take a deadline are few.
    weight: u64,
    /// Verdict, and the codes that it may have; `None`: an output.
    death: Option<(&'static str, &'static [&'static str])>,
}

pub const KINDS: &[Kind] = &[
    dead("reject", 4, "rejected", &["asked-to-reject"]),
    dead("retry", 2, "exhausted", &["asked-to-retry"]),
    dead("panic", 4, "broke", &["panic"]),
    dead("trap", 4, "broke", &["trap"]),
    dead("loop", 1, "broke", &["deadline"]),
    dead("recurse", 4, "broke", &["limit-stack"]),
    dead("alloc 64", 2, "broke", &["limit-memory"]),
    dead("records 5000", 3, "broke", &["limit-emits", "limit-output"]),
    dead("bytes 3000000", 3, "broke", &["limit-output", "limit-memory"]),
    dead("lie lengths", 3, "broke", &["malformed-result"]),
    dead("lie counts", 3, "broke", &["malformed-result"]),
    dead("lie indices", 3, "broke", &["malformed-result"]),
    alive("flaky 3", 2),
    alive("busy 3", 2),
    alive("alloc 1", 1),
    alive("log 150", 1),
];

const fn dead(verb: &'static str, weight: u64, verdict: &'static str, codes: &'static [&'static str]) -> Kind {
    Kind { verb, weight, death: Some((verdict, codes)) }
}

const fn alive(verb: &'static str, weight: u64) -> Kind {
    Kind { verb, weight, death: None }
}

/// A processor `bad` whose limits the kinds break, with quick retries.
pub fn processor(ordering: &str) -> Processor {
    let bad =
        Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead").put("ordering", ordering);
    quick_retries(bad)
        .limit("record_deadline", "1s")
        .limit("memory", "16MiB")
        .limit("emits", 2000)
        .limit("output_bytes", "1MiB")
}

/// [`ATTEMPTS`] within a fraction of a second.
pub fn quick_retries(processor: Processor) -> Processor {
    processor.section("retry", "first_delay", "10ms").section("retry", "max_delay", "50ms").section(
        "retry",
        "max_attempts",
        ATTEMPTS,
    )
}

pub fn application(log: Log, name: &str, ordering: &str) -> Draft {
    let topics = [("in", PARTITIONS), ("out", PARTITIONS), ("dead", 1)];
    let draft = topics.iter().fold(App::draft(log, name), |draft, (topic, partitions)| draft.topic(topic, *partitions));
    draft.processor(processor(ordering))
}

/// `n` records over `keys` keys, numbered from `from` on, `percent` of them odd.
pub fn records(rng: &mut Rng, keys: u64, numbers: std::ops::Range<usize>, percent: u64) -> Vec<Rec> {
    let mut record = |number: usize| {
        let verb = if rng.below(100) < percent { pick(rng, KINDS.iter()).verb } else { "ok" };
        Rec {
            timestamp: 1 + number as i64,
            ..Rec::new(format!("k{}", rng.below(keys)), format!("{verb} #{number:06}"))
        }
    };
    numbers.map(&mut record).collect()
}

/// Records that all end as dead letters.
pub fn doomed(rng: &mut Rng, keys: u64, numbers: std::ops::Range<usize>) -> Vec<Rec> {
    let mut record = |number: usize| {
        let verb = pick(rng, KINDS.iter().filter(|kind| kind.death.is_some())).verb;
        Rec::new(format!("k{}", rng.below(keys)), format!("{verb} #{number:06}"))
    };
    numbers.map(&mut record).collect()
}

/// Whether every record ended as its kind does: verdict, code and number of attempts.
pub fn judge(output: &[Rec], dead: &[Rec]) {
    let wrong = output.iter().find(|r| kind(r).is_some_and(|kind| kind.death.is_some()));
    assert!(wrong.is_none(), "an output that should be a dead letter: {wrong:?}");
    for record in dead {
        let letter = Letter::of(record);
        let Some((verdict, codes)) = kind(record).and_then(|kind| kind.death) else {
            panic!("a dead letter that should be an output: {record:?}");
        };
        assert!(letter.verdict == verdict && codes.contains(&&*letter.code), "{verdict}, {codes:?}: {letter:?}");
        let attempts = if verdict == "exhausted" { ATTEMPTS } else { 1 };
        assert_eq!(letter.attempts, attempts, "{letter:?}");
    }
}

/// `None` for `ok`.
fn kind(record: &Rec) -> Option<&'static Kind> {
    let value = record.value_text();
    let (verb, _) = value.rsplit_once(" #").unwrap_or_else(|| panic!("no record of ours: {record:?}"));
    let kind = KINDS.iter().find(|kind| kind.verb == verb);
    assert!(kind.is_some() || verb == "ok", "an unknown verb: {record:?}");
    kind
}

fn pick<'k>(rng: &mut Rng, kinds: impl Iterator<Item = &'k Kind> + Clone) -> &'k Kind {
    let mut at = rng.below(kinds.clone().map(|kind| kind.weight).sum());
    let mut kinds = kinds;
    loop {
        let kind = kinds.next().expect("a kind within the sum of weights");
        if at < kind.weight {
            return kind;
        }
        at -= kind.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_comes_up_and_is_known_again() {
        let records = records(&mut Rng::new(1), 5, 0..5000, 50);
        let seen: BTreeSet<&str> = records.iter().filter_map(kind).map(|kind| kind.verb).collect();
        assert_eq!(seen.len(), KINDS.len());
        assert!(doomed(&mut Rng::new(1), 5, 0..1000).iter().all(|r| kind(r).is_some_and(|k| k.death.is_some())));
    }
}
