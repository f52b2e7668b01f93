//! The validator against results of every shape: it never panics, and what it lets through keeps every promise.

use crate::model::{Column, Progress};
use crate::plugin::bindings::pelton::plugin::types::{
    ColumnResult, Effects, Emits, Ending, Failure, HeadersResult, Progress as Lifted, Rejection, Writes,
};
use crate::plugin::validate::{self, Bounds};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::HashSet;

const BOUNDS: Bounds = Bounds { entries: 4, outputs: 2, stores: 2, effects: 3, bytes: 400 };

/// Small numbers, mostly sensible, sometimes at the edges.
fn index() -> impl Strategy<Value = u32> {
    prop_oneof![60 => 0..2u32, 1 => 2..6u32, 1 => Just(u32::MAX)]
}

fn length() -> impl Strategy<Value = i32> {
    prop_oneof![90 => 0..3i32, 9 => Just(-1), 1 => Just(-2), 1 => Just(i32::MAX), 1 => Just(i32::MIN)]
}

/// `count` entries, mostly; their bytes mostly add up.
fn column(count: usize) -> impl Strategy<Value = ColumnResult> {
    let count = prop_oneof![30 => Just(count), 1 => 0..4usize];
    count.prop_flat_map(|count| (vec(length(), count), prop_oneof![30 => Just(0usize), 1 => 1..200usize])).prop_map(
        |(lengths, extra)| {
            let sum = lengths.iter().map(|&n| n.max(0) as u64).sum::<u64>().min(1000) as usize;
            ColumnResult { bytes: vec![7; sum + extra], lengths }
        },
    )
}

fn headers(count: usize) -> impl Strategy<Value = HeadersResult> {
    let counts = vec(prop_oneof![30 => 0..2u32, 1 => Just(u32::MAX)], count);
    counts.prop_flat_map(|counts| {
        let total = counts.iter().map(|&n| n as u64).sum::<u64>().min(8) as usize;
        (Just(counts), column(total), column(total)).prop_map(|(counts, names, values)| HeadersResult {
            counts,
            names,
            values,
        })
    })
}

fn emits() -> impl Strategy<Value = Emits> {
    prop_oneof![9 => 0..4usize, 1 => Just(4usize)].prop_flat_map(|n| {
        let heads = (vec(index(), n), vec(index(), n), vec(any::<i64>(), n..n + 1 + n / 4), any::<bool>());
        (heads, column(n), column(n), headers(n)).prop_map(
            |((mut entries, outputs, timestamps, sort), keys, values, headers)| {
                if sort {
                    entries.sort_unstable();
                }
                Emits { entries, outputs, timestamps, keys, values, headers }
            },
        )
    })
}

fn writes() -> impl Strategy<Value = Writes> {
    (0..4usize).prop_flat_map(|n| {
        (vec(index(), n), vec(index(), n), column(n), column(n)).prop_map(|(entries, stores, keys, values)| Writes {
            entries,
            stores,
            keys,
            values,
        })
    })
}

fn failure() -> Failure {
    Failure { code: "c".to_owned(), message: "m".to_owned(), retry_after_ms: None, details: Vec::new() }
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![3 => Just(Ending::Complete), 1 => Just(Ending::Retry(failure())), 1 => Just(Ending::Stop(failure()))]
}

fn lifted() -> impl Strategy<Value = Lifted> {
    let done = prop_oneof![4 => Just(4u32), 2 => 0..6u32, 1 => Just(u32::MAX)];
    (
        done,
        emits(),
        writes(),
        prop_oneof![3 => Just(Vec::new()), 2 => vec(2..4u32, 1), 1 => vec(index(), 0..3)],
        ending(),
    )
        .prop_map(|(done, emits, writes, rejected, ending)| Lifted {
            done,
            effects: Effects { emits, writes },
            rejected: rejected.into_iter().map(|entry| Rejection { entry, failure: failure() }).collect(),
            ending,
        })
}

/// Every promise of `wit/plugin.wit` about a progress, said again in another way.
pub(super) fn holds(progress: &Progress, bounds: &Bounds) {
    let complete = progress.ending == crate::model::Ending::Complete;
    assert_eq!(complete, progress.done == bounds.entries);
    let rejected: HashSet<u32> = progress.rejected.iter().map(|rejection| rejection.entry).collect();
    assert_eq!(rejected.len(), progress.rejected.len());
    let (emits, writes) = (&progress.effects.emits, &progress.effects.writes);
    for entry in emits.entries.iter().chain(&writes.entries).chain(&rejected) {
        assert!(*entry < progress.done);
    }
    assert!(emits.entries.iter().chain(&writes.entries).all(|entry| !rejected.contains(entry)));
    assert!(emits.len() <= bounds.effects && writes.len() <= bounds.effects && emits.entries.is_sorted());
    assert_eq!(emits.iter().count(), emits.len());
    assert!(emits.iter().all(|emit| emit.output < bounds.outputs));
    assert_eq!(emits.iter().map(|emit| emit.record.headers.iter().count()).sum::<usize>(), emits.headers.names.len());
    assert_eq!(writes.iter().count(), writes.len());
    assert!(writes.iter().all(|write| write.store < bounds.stores));
    assert!(writes.keys.iter().all(|key| key.is_some()));
    for column in
        [&emits.keys, &emits.values, &emits.headers.names, &emits.headers.values, &writes.keys, &writes.values]
    {
        reads_to_its_end(column);
    }
}

fn reads_to_its_end(column: &Column) {
    assert_eq!(column.iter().count(), column.len());
    assert_eq!(column.iter().flatten().map(<[u8]>::len).sum::<usize>(), column.bytes.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_passes_keeps_every_promise(result in lifted()) {
        if let Ok(progress) = validate::progress(result, &BOUNDS) {
            holds(&progress, &BOUNDS);
        }
    }
}

/// The generator above must not only make rubbish, or it shows nothing.
#[test]
fn the_generator_makes_good_results_too() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = lifted();
    let good = (0..5_000)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .filter_map(|result| validate::progress(result, &BOUNDS).ok())
        .filter(|progress| !progress.effects.emits.is_empty() && !progress.effects.writes.is_empty())
        .count();
    assert!(good > 20, "{good}");
}

fn plain() -> Lifted {
    let none = || ColumnResult { bytes: Vec::new(), lengths: Vec::new() };
    let one = |bytes: &[u8]| ColumnResult { bytes: bytes.to_vec(), lengths: vec![bytes.len() as i32] };
    let headers = HeadersResult { counts: vec![0], names: none(), values: none() };
    let emits =
        Emits { entries: vec![1], outputs: vec![0], timestamps: vec![-5], keys: one(b"k"), values: one(b"v"), headers };
    let writes = Writes { entries: vec![1], stores: vec![0], keys: one(b"k"), values: one(b"v") };
    Lifted { done: 4, effects: Effects { emits, writes }, rejected: Vec::new(), ending: Ending::Complete }
}

fn broken(code: &str, change: impl FnOnce(&mut Lifted)) {
    let mut result = plain();
    change(&mut result);
    assert_eq!(validate::progress(result, &BOUNDS).unwrap_err().code(), code);
}

#[test]
fn each_rule_alone_is_enforced() {
    let bad = "malformed-result";
    assert!(validate::progress(plain(), &BOUNDS).is_ok(), "odd timestamps are the task's to judge");
    broken(bad, |r| r.done = 3);
    broken(bad, |r| r.ending = Ending::Retry(failure()));
    broken(bad, |r| r.effects.emits.outputs[0] = 2);
    broken(bad, |r| r.effects.writes.stores[0] = 2);
    broken(bad, |r| r.effects.writes.keys = ColumnResult { bytes: Vec::new(), lengths: vec![-1] });
    broken(bad, |r| r.effects.writes.entries[0] = 4);
    broken(bad, |r| r.effects.emits.timestamps.clear());
    broken(bad, |r| r.effects.emits.headers.counts[0] = 1);
    broken(bad, |r| r.effects.emits.values.lengths[0] = 2);
    broken(bad, |r| r.rejected.push(Rejection { entry: 1, failure: failure() }));
    broken(bad, |r| r.rejected = [2, 2].map(|entry| Rejection { entry, failure: failure() }).into());
    broken(bad, |r| r.rejected = vec![Rejection { entry: 4, failure: failure() }]);
    broken("limit-output", |r| r.effects.emits.values = ColumnResult { bytes: vec![0; 400], lengths: vec![400] });
    broken("limit-emits", |r| r.effects.emits.entries = vec![1; 4]);
    broken("limit-writes", |r| r.effects.writes.entries = vec![1; 4]);
}

#[test]
fn what_is_said_of_a_failure_is_cut() {
    let long = || "é".repeat(20_000);
    let failure =
        Failure { code: long(), message: long(), retry_after_ms: Some(u64::MAX), details: vec![(long(), long()); 65] };
    let bounds = Bounds { bytes: u64::MAX, ..BOUNDS };
    let result = Lifted { done: 3, ending: Ending::Retry(failure), ..plain() };
    let crate::model::Ending::Retry(failure) = validate::progress(result, &bounds).unwrap().ending else {
        panic!("the ending stays what it is")
    };
    assert_eq!((failure.code.len(), failure.message.len(), failure.details.len()), (128, 16 << 10, 64));
    assert!(failure.details.iter().all(|(name, value)| (name.len(), value.len()) == (128, 16 << 10)));
    assert_eq!(failure.retry_after_ms, Some(u64::MAX));
}
