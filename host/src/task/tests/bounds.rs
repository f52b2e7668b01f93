//! The look at a whole call that spares the look at each record never lets through what that one would not.

use super::rig::{Rig, actor};
use crate::model::log::TopicInfo;
use crate::model::{Batch, Column, HeadersRef, Progress, RecordRef};
use proptest::prelude::*;
use std::cell::RefCell;

/// What every topic takes here.
const BYTES: u64 = 400;
const NOW: i64 = 1000;

/// Sizes of key and value (absent: null), sizes of headers, and the emit's own time.
type Emit = (Option<usize>, Option<usize>, Vec<usize>, i64);

fn strict(info: &mut TopicInfo) {
    info.limits.max_message_bytes = BYTES;
    info.limits.timestamp_before_ms = 100;
    info.limits.timestamp_after_ms = 10;
}

fn emit() -> impl Strategy<Value = Emit> {
    let size = || prop_oneof![Just(None), (0usize..90).prop_map(Some), (60usize..400).prop_map(Some)];
    (size(), size(), prop::collection::vec(0usize..40, 0..4), time())
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![4 => Just(-1i64), 4 => NOW - 5..NOW + 5, 1 => NOW - 102..NOW - 98, 1 => NOW + 8..NOW + 13, 1 => -3i64..2, 1 => any::<i64>()]
}

/// A batch of one record per emit, with these times, and a call that made the emits and wrote `writes`.
fn call(emits: &[Emit], times: &[i64], writes: &[(usize, Option<usize>)]) -> (Batch, Progress) {
    let (mut batch, mut progress) = (Batch::default(), Progress::default());
    let bytes = [b'x'; 400];
    for (entry, (key, value, headers, own)) in emits.iter().enumerate() {
        let bare = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: times[entry] };
        batch.push(entry as i64, bare);
        let column: Column = headers.iter().map(|&size| Some(&bytes[..size])).collect();
        let headers = HeadersRef::new(column.view(), column.view());
        let record =
            RecordRef { key: key.map(|n| &bytes[..n]), value: value.map(|n| &bytes[..n]), headers, timestamp: *own };
        progress.effects.emits.push(entry as u32, 0, record);
    }
    for (key, value) in writes {
        progress.effects.writes.entries.push(0);
        progress.effects.writes.stores.push(0);
        progress.effects.writes.keys.push(Some(&bytes[..*key]));
        progress.effects.writes.values.push(value.map(|n| &bytes[..n]));
    }
    progress.done = emits.len() as u32;
    (batch, progress)
}

thread_local! {
    static RIG: RefCell<Option<Rig>> = const { RefCell::new(None) };
}

fn with_rig<T>(test: impl FnOnce(&Rig) -> T) -> T {
    RIG.with(|rig| test(rig.borrow_mut().get_or_insert_with(|| Rig::with(&[], actor(), strict))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_harmless_call_has_no_breach(
        emits in prop::collection::vec(emit(), 1..4),
        times in prop::collection::vec(time(), 4),
        writes in prop::collection::vec((0usize..200, prop::option::of(0usize..300)), 0..3),
    ) {
        let (batch, progress) = call(&emits, &times, &writes);
        with_rig(|rig| {
            let (task, out) = (&rig.tasks[0], &rig.out);
            let exact = task.first_breach(&batch, &progress, out, NOW);
            if task.is_harmless(&batch, &progress, out, NOW) {
                prop_assert_eq!(&exact, &None);
            }
            prop_assert_eq!(task.breach(&batch, &progress, out, NOW), exact);
            Ok(())
        })?;
    }
}

#[test]
fn an_ordinary_call_is_seen_to_be_harmless() {
    let (batch, progress) = call(&[(Some(10), Some(100), vec![5], -1)], &[NOW], &[(10, Some(8))]);
    with_rig(|rig| assert!(rig.tasks[0].is_harmless(&batch, &progress, &rig.out, NOW)));
}

#[test]
fn the_bounds_are_those_of_the_topics() {
    let breach = |emit: Emit, time: i64| {
        let (batch, progress) = call(&[emit], &[time], &[]);
        with_rig(|rig| rig.tasks[0].breach(&batch, &progress, &rig.out, NOW)).map(|(_, failure)| failure.code)
    };
    // 61 bytes of a batch, 10 of the record: body's, key's and value's lengths, null key, no headers, three fields of one byte
    let largest = BYTES as usize - 61 - 2 - 3 - 1 - 2 - 1;
    assert_eq!(breach((None, Some(largest), vec![], -1), NOW), None);
    assert_eq!(breach((None, Some(largest + 1), vec![], -1), NOW).as_deref(), Some("output-too-large"));
    let at = |own, inherited| breach((None, None, vec![], own), inherited);
    for (own, inherited, refused) in [
        (NOW - 100, 0, false),
        (NOW - 101, 0, true),
        (NOW + 10, 0, false),
        (NOW + 11, 0, true),
        (-1, NOW - 101, true),
        (-1, -1, false),
        (-1, -2, false),
        (-2, NOW, true),
    ] {
        assert_eq!(at(own, inherited).is_some(), refused, "{own} or {inherited}");
    }
}
