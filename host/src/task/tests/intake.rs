//! Batches and offsets: what is cut, put back, accepted, excluded and read again.

use super::script::{Scripted, Seen};
use crate::delivery::Attempts;
use crate::model::log::{Committed, FetchLimit};
use crate::model::{Batch, Failure};
use crate::task::Input;
use crate::task::intake::{Intake, Next};
use crate::task::work::Moment;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FIVE: FetchLimit = FetchLimit { records: 5, bytes: usize::MAX };

/// One input of the offsets `0..10`, which begins at its start with nothing committed.
fn ten() -> Intake {
    of(&(0..10).collect::<Vec<_>>(), 10, (0, -1)).0
}

fn of(offsets: &[i64], end: i64, (start, committed): (i64, i64)) -> (Intake, Arc<Mutex<Seen>>) {
    let (source, seen) = Scripted::new("in", offsets, end);
    (Intake::new(vec![Input::new(source, start, committed)]), seen)
}

fn next(intake: &mut Intake) -> Next {
    at(intake, FIVE, 0)
}

/// The next at so many seconds of the monotonic clock.
fn at(intake: &mut Intake, limit: FetchLimit, seconds: u64) -> Next {
    intake.next(limit, Moment { wall_ms: 77, monotonic: Duration::from_secs(seconds) }).unwrap()
}

fn call(intake: &mut Intake) -> Batch {
    match next(intake) {
        Next::Call(batch) => batch,
        other => panic!("not a call: {other:?}"),
    }
}

fn why() -> Failure {
    Failure::new("output-refused", "why")
}

/// Takes and accepts what there is; the offsets of each batch, a failed one marked.
fn drain(intake: &mut Intake) -> Vec<(bool, Vec<i64>)> {
    let mut batches = Vec::new();
    loop {
        let (failed, batch) = match next(intake) {
            Next::Nothing | Next::Wait(_) => return batches,
            Next::Call(batch) => (false, batch),
            Next::Failed(batch, failure) => {
                assert_eq!(failure, why());
                (true, batch)
            }
        };
        batches.push((failed, batch.offsets.clone()));
        let all = batch.len();
        intake.accept(batch, all);
    }
}

fn position(intake: &Intake) -> i64 {
    intake.positions()[0].1
}

#[test]
fn a_batch_knows_its_input_and_partition_and_hour() {
    let batch = call(&mut ten());
    assert_eq!((batch.input, batch.partition, batch.now), (0, 3, 77));
    assert_eq!(batch.offsets, [0, 1, 2, 3, 4]);
}

#[test]
fn batches_end_before_an_excluded_record_which_is_met_alone() {
    let mut intake = ten();
    assert!(intake.exclude(0, 3, why()) && intake.exclude(0, 4, why()));
    let expected = [(false, vec![0, 1, 2]), (true, vec![3]), (true, vec![4]), (false, vec![5, 6, 7, 8, 9])];
    assert_eq!(drain(&mut intake), expected);
    assert_eq!(position(&intake), 10);
}

#[test]
fn an_exclusion_outlives_its_dead_letter_until_the_commit() {
    let mut intake = ten();
    assert!(intake.exclude(0, 2, why()));
    assert!(drain(&mut intake).contains(&(true, vec![2])));
    intake.rewind();
    assert!(drain(&mut intake).contains(&(true, vec![2])), "not shown to the plugin after another abort");
    assert!(!intake.exclude(0, 2, why()), "its dead letter is refused: that is told");
    intake.settle();
    assert!(intake.exclude(0, 2, why()), "forgotten with the commit");
}

#[test]
fn a_commit_before_an_excluded_record_keeps_the_exclusion() {
    let mut intake = ten();
    assert!(intake.exclude(0, 2, why()));
    let batch = call(&mut intake);
    intake.accept(batch, 2);
    intake.settle();
    assert!(!intake.exclude(0, 2, why()));
    assert!(matches!(next(&mut intake), Next::Failed(batch, _) if batch.offsets == [2]));
}

#[test]
fn what_is_put_back_comes_before_what_is_pending() {
    let mut intake = ten();
    assert!(intake.exclude(0, 2, why()));
    let head = call(&mut intake);
    assert_eq!(head.offsets, [0, 1]);
    // 2, 3 and 4 are pending; the head goes back in two parts, the later one first
    intake.put_back(head.slice(1..2));
    intake.put_back(head.slice(0..1));
    let all: Vec<i64> = drain(&mut intake).into_iter().flat_map(|(_, offsets)| offsets).collect();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_part_that_is_accepted_moves_the_offset_and_leaves_the_rest() {
    let mut intake = ten();
    let batch = call(&mut intake);
    intake.accept(batch, 2);
    assert_eq!((position(&intake), intake.has_progress()), (2, true));
    let rest = call(&mut intake);
    assert_eq!(rest.offsets, [2, 3, 4]);
    assert_eq!(rest.values.iter().flatten().collect::<Vec<_>>(), [b"2", b"3", b"4"]);
    intake.accept(rest, 0);
    assert_eq!((position(&intake), call(&mut intake).offsets), (2, vec![2, 3, 4]));
}

#[test]
fn smaller_limits_cut_what_is_pending() {
    let mut intake = ten();
    let batch = call(&mut intake);
    intake.put_back(batch);
    let one = FetchLimit { records: 1, bytes: usize::MAX };
    let Next::Call(batch) = at(&mut intake, one, 0) else { panic!("nothing") };
    assert_eq!((batch.offsets, batch.now), (vec![0], 77), "the hour of a batch stays when it is run again");
}

#[test]
fn a_rewind_goes_to_the_commit_or_else_to_the_start() {
    let (mut intake, seen) = of(&(0..10).collect::<Vec<_>>(), 10, (4, -1));
    let batch = call(&mut intake);
    intake.accept(batch, 3);
    intake.rewind();
    assert_eq!((position(&intake), call(&mut intake).offsets[0]), (4, 4), "nothing was committed");
    intake.rewind();
    let batch = call(&mut intake);
    intake.accept(batch, 3);
    intake.settle();
    assert!(!intake.has_progress());
    let batch = call(&mut intake);
    intake.accept(batch, 1);
    intake.rewind();
    assert_eq!((position(&intake), call(&mut intake).offsets[0]), (7, 7));
    assert_eq!(seen.lock().unwrap().seeks, [4, 4, 4, 7]);
}

#[test]
fn a_source_that_is_not_ready_is_sought_again() {
    let (mut intake, seen) = of(&[0, 1], 2, (0, -1));
    seen.lock().unwrap().refusals = 2;
    assert!(matches!(next(&mut intake), Next::Nothing));
    assert!(!intake.at_end(), "what was never read is not at its end");
    assert!(matches!(next(&mut intake), Next::Nothing));
    assert_eq!(call(&mut intake).offsets, [0, 1]);
}

#[test]
fn gaps_are_passed_once_everything_fetched_is_accepted() {
    // the transaction's marker lies at 2, another at 5
    let (mut intake, _) = of(&[0, 1, 3, 4], 6, (0, -1));
    let batch = call(&mut intake);
    intake.accept(batch, 3);
    assert_eq!(position(&intake), 4, "one past the record, not past the end");
    let rest = call(&mut intake);
    assert_eq!((rest.offsets.clone(), intake.at_end()), (vec![4], true));
    assert!(matches!(next(&mut intake), Next::Nothing));
    assert_eq!(position(&intake), 4, "offset 4 is out with the plugin");
    intake.put_back(rest);
    assert!(!intake.at_end());
    let rest = call(&mut intake);
    intake.accept(rest, 1);
    assert_eq!(position(&intake), 5);
    assert!(matches!(next(&mut intake), Next::Nothing));
    assert_eq!(position(&intake), 6);
}

#[test]
fn gaps_are_not_passed_by_a_source_that_must_go_back() {
    let (mut intake, seen) = of(&[0, 1], 6, (0, -1));
    drain(&mut intake);
    assert_eq!(position(&intake), 6);
    intake.rewind();
    seen.lock().unwrap().refusals = 1;
    assert!(matches!(next(&mut intake), Next::Nothing));
    assert_eq!(position(&intake), 0);
    assert_eq!(drain(&mut intake), [(false, vec![0, 1])]);
}

#[test]
fn two_inputs_take_turns() {
    let inputs = ["a", "b"].map(|topic| Input::new(Scripted::new(topic, &[0, 1, 2, 3], 4).0, 0, -1));
    let mut intake = Intake::new(inputs.into());
    let two = FetchLimit { records: 2, bytes: usize::MAX };
    let mut seen = Vec::new();
    while let Next::Call(batch) = at(&mut intake, two, 0) {
        seen.push((intake.topic(batch.input).to_owned(), batch.offsets.clone()));
        let all = batch.len();
        intake.accept(batch, all);
    }
    let expected = [("a", vec![0, 1]), ("b", vec![0, 1]), ("a", vec![2, 3]), ("b", vec![2, 3])];
    assert_eq!(seen, expected.map(|(topic, offsets)| (topic.to_owned(), offsets)));
}

#[test]
fn an_input_with_nothing_does_not_hold_up_the_other() {
    let inputs = [("a", &[][..]), ("b", &[0, 1, 2][..])];
    let inputs = inputs.map(|(topic, offsets)| Input::new(Scripted::new(topic, offsets, 3).0, 0, -1));
    let mut intake = Intake::new(inputs.into());
    let one = FetchLimit { records: 1, bytes: usize::MAX };
    for offset in 0..3 {
        let Next::Call(batch) = at(&mut intake, one, 0) else { panic!("nothing") };
        assert_eq!((batch.input, &batch.offsets[..]), (1, &[offset][..]));
        intake.accept(batch, 1);
    }
    assert!(matches!(at(&mut intake, one, 0), Next::Nothing));
    assert!(intake.at_end());
}

#[test]
fn an_unknown_commit_is_told_from_the_groups_offsets() {
    let found = |offset: Option<i64>| Committed { offset, metadata: String::new() };
    // of the two inputs, the first went from 4 to 9, the second did not move from 3
    let moved = Input::new(Scripted::new("a", &[4, 5, 6, 7, 8], 9).0, 4, 4);
    let still = Input::new(Scripted::new("b", &[], 3).0, 3, 3);
    let mut intake = Intake::new(vec![moved, still]);
    drain(&mut intake);
    let cases = [(Some(9), Some(true)), (Some(4), Some(false)), (Some(6), None), (None, None)];
    for (first, expected) in cases {
        assert_eq!(intake.resolve(&[found(first), found(Some(3))]), expected, "{first:?}");
    }
    assert_eq!(
        intake.resolve(&[found(Some(9)), found(Some(1))]),
        Some(true),
        "an input that sent nothing says nothing"
    );
}

#[test]
fn a_first_commit_that_was_aborted_left_no_offset() {
    let mut intake = ten();
    drain(&mut intake);
    let found = |offset: Option<i64>| [Committed { offset, metadata: String::new() }];
    assert_eq!(intake.resolve(&found(None)), Some(false));
    assert_eq!(intake.resolve(&found(Some(10))), Some(true));
    assert_eq!(intake.resolve(&found(Some(0))), None);
}

#[test]
fn one_input_committed_and_the_other_not_is_neither() {
    let inputs = ["a", "b"].map(|topic| Input::new(Scripted::new(topic, &[0, 1], 2).0, 0, -1));
    let mut intake = Intake::new(inputs.into());
    drain(&mut intake);
    let found = |offset: Option<i64>| Committed { offset, metadata: String::new() };
    assert_eq!(intake.resolve(&[found(Some(2)), found(None)]), None);
    assert_eq!(intake.resolve(&[found(Some(2)), found(Some(2))]), Some(true));
}

#[test]
fn only_inputs_that_moved_send_offsets() {
    let moved = Input::new(Scripted::new("a", &[4, 5], 6).0, 4, 4);
    let still = Input::new(Scripted::new("b", &[], 3).0, 3, 3);
    let mut intake = Intake::new(vec![moved, still]);
    assert!(!intake.has_progress());
    drain(&mut intake);
    let sent: Vec<_> = intake.offsets().map(|commit| (commit.partition.topic.to_string(), commit.offset)).collect();
    assert_eq!(sent, [("a".to_owned(), 6)]);
    intake.settle();
    assert_eq!(intake.offsets().count(), 0);
}

/// One failure of the record at `offset`, which is tried again at the fifth second.
fn fail(intake: &mut Intake, input: u32, offset: i64) {
    let attempts = Attempts { offset, count: 2, first_ms: 1, last_ms: 2, due_ms: 3 };
    intake.remember(input, attempts, Duration::from_secs(5));
}

/// The first three of the ten are done, and the fourth failed.
fn failed() -> Intake {
    let mut intake = ten();
    let batch = call(&mut intake);
    intake.accept(batch, 3);
    fail(&mut intake, 0, 3);
    intake
}

fn waits(intake: &mut Intake, seconds: u64) -> bool {
    match at(intake, FIVE, seconds) {
        Next::Wait(due) => due == Duration::from_secs(5),
        other => panic!("it does not wait: {other:?}"),
    }
}

#[test]
fn a_retry_is_met_first_and_at_its_time() {
    let mut intake = failed();
    assert!(waits(&mut intake, 0) && waits(&mut intake, 4) && !intake.at_end());
    let Next::Call(batch) = at(&mut intake, FIVE, 5) else { panic!("not called") };
    assert_eq!((batch.offsets.clone(), batch.attempt), (vec![3, 4], 2), "with what follows");
    assert_eq!(intake.retried(0, 3).map(|attempts| attempts.count), Some(2));
    intake.accept(batch, 1);
    assert_eq!(intake.retrying(), None, "done");
    assert_eq!(call(&mut intake).attempt, 0);
}

#[test]
fn an_abort_runs_what_came_before_without_waiting_and_keeps_the_retry() {
    let mut intake = failed();
    intake.rewind();
    let before = call(&mut intake);
    assert_eq!((before.offsets.clone(), before.attempt), (vec![0, 1, 2], 0), "ends before the one that waits");
    assert_eq!(intake.offsets().next().map(|commit| commit.metadata), Some(String::new()));
    intake.accept(before, 3);
    assert!(waits(&mut intake, 0));
    let commit = intake.offsets().next().unwrap();
    assert_eq!((commit.offset, Attempts::decode(&commit.metadata).map(|attempts| attempts.count)), (3, Some(2)));
}

#[test]
fn what_is_said_beside_an_offset_is_progress_too() {
    let mut intake = failed();
    intake.settle();
    assert!(!intake.has_progress());
    fail(&mut intake, 0, 3);
    assert!(!intake.has_progress(), "the same again");
    let Next::Call(batch) = at(&mut intake, FIVE, 5) else { panic!("not called") };
    intake.put_back(batch);
    let attempts = Attempts { offset: 3, count: 3, first_ms: 1, last_ms: 2, due_ms: 3 };
    intake.remember(0, attempts, Duration::from_secs(9));
    assert!(intake.has_progress());
    let commit = intake.offsets().next().unwrap();
    assert_eq!((commit.offset, commit.metadata), (3, attempts.encode()));
    let found = |count: u32| Attempts { count, ..attempts }.encode();
    let found = |count: u32| [Committed { offset: Some(3), metadata: found(count) }];
    assert_eq!([3, 2, 9].map(|count| intake.resolve(&found(count))), [Some(true), Some(false), None]);
    intake.settle();
    assert_eq!(intake.resolve(&found(3)), None, "nothing was sent that would tell");
}

#[test]
fn a_retry_of_a_record_that_is_gone_ends() {
    let (mut intake, _) = of(&[0, 1, 2, 7, 8], 9, (0, -1));
    let batch = call(&mut intake);
    intake.accept(batch, 3);
    fail(&mut intake, 0, 4);
    let Next::Call(batch) = at(&mut intake, FIVE, 6) else { panic!("not called") };
    assert_eq!((batch.offsets.clone(), batch.attempt), (vec![7, 8], 0));
    intake.accept(batch, 1);
    assert_eq!(intake.retrying(), None);
}

#[test]
fn an_abort_after_a_retry_that_worked_does_not_forget_it() {
    let mut intake = failed();
    intake.settle();
    let Next::Call(batch) = at(&mut intake, FIVE, 5) else { panic!("not called") };
    intake.accept(batch, 2);
    assert_eq!(intake.retrying(), None);
    intake.rewind();
    assert!(!intake.has_progress(), "what is said beside the offset still holds");
    let Next::Call(batch) = at(&mut intake, FIVE, 6) else { panic!("not called") };
    assert_eq!((batch.offsets[0], batch.attempt), (3, 2));
    intake.accept(batch, 2);
    intake.settle();
    assert_eq!(intake.retried(0, 3), None);
}

#[test]
fn a_gap_before_the_retry_is_passed() {
    let (mut intake, _) = of(&[0, 4, 5], 6, (0, -1));
    let batch = call(&mut intake);
    intake.accept(batch, 1);
    fail(&mut intake, 0, 4);
    assert_eq!(position(&intake), 4, "what is remembered belongs to the offset that is committed");
    intake.rewind();
    let before = call(&mut intake);
    intake.accept(before, 1);
    assert!(waits(&mut intake, 0));
    assert_eq!(position(&intake), 4);
}

#[test]
fn every_input_waits_with_the_one_that_does() {
    let inputs = ["a", "b"].map(|topic| Input::new(Scripted::new(topic, &[0, 1, 2, 3], 4).0, 0, -1));
    let mut intake = Intake::new(inputs.into());
    let batch = call(&mut intake);
    intake.accept(batch, 0);
    fail(&mut intake, 0, 0);
    assert!(waits(&mut intake, 0) && waits(&mut intake, 0));
    let Next::Call(batch) = at(&mut intake, FIVE, 5) else { panic!("not called") };
    assert_eq!((batch.input, batch.attempt), (0, 2));
}

#[test]
fn what_another_life_remembered_holds_for_its_offset_only() {
    let clock = crate::model::SystemClock::default();
    let noted = Attempts { offset: 4, count: 7, first_ms: 1, last_ms: 2, due_ms: 3 };
    let intake = |metadata: &str| {
        Intake::new(vec![Input::new(Scripted::new("in", &[4, 5], 6).0, 4, 4).recall(metadata, &clock)])
    };
    let recalled = intake(&noted.encode());
    assert_eq!((recalled.retrying(), recalled.has_progress()), (Some(noted), false));
    let other = intake(&Attempts { offset: 5, ..noted }.encode());
    assert_eq!((other.retrying(), other.has_progress()), (None, true), "what is not true is taken back");
    assert_eq!(intake("somebody else's").retrying(), None);
}

#[test]
fn suspects_are_met_one_by_one() {
    let mut intake = ten();
    intake.suspect(0, 2..=3);
    intake.suspect(0, 6..=6);
    let sizes: Vec<Vec<i64>> = drain(&mut intake).into_iter().map(|(_, offsets)| offsets).collect();
    assert_eq!(sizes, [vec![0, 1], vec![2], vec![3], vec![4], vec![5], vec![6], vec![7, 8, 9]]);
}
