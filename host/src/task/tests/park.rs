//! Records that wait by key: only their keys wait, in order, through commits, aborts, restarts and refusals.

use super::recorder::Loss;
use super::rig::{INPUTS, PARKED, Restart, Rig, actor, by_key, fresh_actor, input};
use super::ticks::until_in_flight;
use crate::config::{Action, Ordering};
use crate::model::Verdict;
use crate::model::log::{Delivery, TopicInfo};
use crate::task::pacing::Pacing;
use crate::task::{CommitError, ProcessorSpec, State, Step};
use std::time::Duration;

/// The first record works at the third call of an instance; the third is of the same key.
const RECORDS: [(&str, &str); 4] = [("k", "R3"), ("l", "a"), ("k", "b"), ("l", "c")];

fn keyed(records: &[(&str, &str)]) -> Rig {
    Rig::set(records, by_key)
}

fn with(records: &[(&str, &str)], settings: impl FnOnce(&mut ProcessorSpec)) -> Rig {
    Rig::set(records, |spec| {
        by_key(spec);
        settings(spec);
    })
}

fn most(records: usize) -> impl FnOnce(&mut ProcessorSpec) {
    move |spec| spec.parking.records = records
}

/// Waits for every retry, works everything off and commits; nothing may be left.
fn work_off(rig: &mut Rig) {
    rig.wait_out();
    rig.settle(3);
    rig.wait_out();
    rig.settle(3);
    assert_eq!((rig.parked(), rig.parked_in_changelog()), (0, 0));
    assert!(rig.task().is_idle());
}

#[test]
fn only_the_failed_records_key_waits_and_its_order_holds() {
    let mut rig = keyed(&RECORDS);
    rig.settle(0);
    assert_eq!(
        (rig.values("out"), rig.committed()),
        (vec!["a1".into(), "c2".to_owned()], Some(4)),
        "the offset moves on"
    );
    assert_eq!((rig.parked(), rig.task().is_idle(), rig.task().state()), (2, false, &State::Running));
    work_off(&mut rig);
    assert_eq!(rig.values("out"), ["a1", "c2", "R31", "b2"]);
    assert_eq!(rig.counts(), [("k".to_owned(), 2), ("l".to_owned(), 2)].into());
    assert_eq!((rig.committed(), rig.metadata()), (Some(4), String::new()));
}

#[test]
fn nothing_is_parked_before_what_it_goes_with_is_accepted() {
    let mut rig = Rig::made(&[("k", "R9"), ("l", "Loop"), ("k", "b")], fresh_actor(), |_| (), by_key);
    rig.step();
    rig.commit().unwrap();
    assert_eq!((rig.parked(), rig.committed()), (1, Some(1)));
    until_in_flight(&mut rig);
    rig.commit().unwrap();
    assert_eq!((rig.parked(), rig.committed()), (1, Some(1)), "a call in flight at a commit moves nothing");
    rig.task().interrupt();
    rig.commit().unwrap();
    rig.restart(Restart::Lost);
    assert_eq!((rig.parked(), rig.committed()), (1, Some(1)));
}

#[test]
fn a_parked_record_that_dies_says_where_it_was_read_and_how_often_it_was_tried() {
    let mut rig = with(&[("l", "a"), ("k", "R9"), ("k", "b")], |spec| spec.retry.max_attempts = 3);
    let start = rig.now().as_millis().to_string();
    rig.settle(0);
    rig.restart(Restart::Lost);
    work_off(&mut rig);
    let letter = rig.letters().remove(0);
    let of = |name: &str| letter[&format!("pelton-{name}")].clone();
    assert_eq!([of("source-topic"), of("source-offset"), of("source-timestamp")], ["in", "1", "5"]);
    assert_eq!([of("verdict"), of("code"), of("attempts"), of("first-failure")], ["exhausted", "later", "3", &start]);
    assert_eq!(
        (rig.read("dead"), rig.values("out")),
        (vec![("k".into(), "R9".into())], vec!["a1".into(), "b1".to_owned()])
    );
}

#[test]
fn a_key_that_is_worked_off_waits_until_that_is_committed() {
    let mut rig = keyed(&[("k", "R2")]);
    rig.wait_out();
    rig.feed("in", &[("k", "b"), ("l", "c")]);
    rig.wait_out();
    assert!(!rig.task().is_idle());
    rig.commit().unwrap();
    assert_eq!(rig.values("out"), ["R21", "c1", "b2"], "b went through the park");
    rig.feed("in", &[("k", "d")]);
    rig.settle(0);
    assert_eq!((rig.values("out").last().cloned(), rig.parked_in_changelog()), (Some("d3".into()), 0));
}

#[test]
fn an_abort_takes_back_what_was_parked_and_what_was_released() {
    let mut rig = keyed(&RECORDS);
    rig.work();
    rig.abort();
    assert_eq!((rig.parked(), rig.committed()), (0, None));
    rig.settle(0);
    rig.wait_out();
    rig.abort();
    assert_eq!((rig.parked(), rig.task().is_idle()), (2, false), "the released ones are parked again");
    work_off(&mut rig);
    assert_eq!(rig.values("out"), ["a1", "c2", "R31", "b2"]);
    assert_eq!(rig.counts(), [("k".to_owned(), 2), ("l".to_owned(), 2)].into());
}

#[test]
fn another_host_finds_what_is_parked_and_so_does_an_older_store() {
    for how in [Restart::Closed, Restart::Lost, Restart::Older] {
        let mut rig = keyed(&RECORDS);
        rig.keep_stores();
        rig.settle(0);
        rig.restart(how);
        assert_eq!(rig.parked(), 2, "{how:?}");
        rig.wait_out();
        rig.restart(how);
        assert_eq!(rig.parked(), 2, "{how:?}: the release was not committed");
        work_off(&mut rig);
        rig.restart(how);
        assert_eq!(
            (rig.values("out"), rig.parked()),
            (["a1", "c2", "R31", "b2"].map(str::to_owned).into(), 0),
            "{how:?}"
        );
    }
}

#[test]
fn a_release_whose_commit_has_no_answer_is_not_guessed() {
    for committed in [true, false] {
        let mut rig = keyed(&RECORDS);
        rig.settle(0);
        rig.wait_out();
        assert_eq!(rig.committed(), Some(4));
        *rig.loss.lock().unwrap() = Some(Loss { committed });
        assert!(matches!(rig.commit(), Err(CommitError::Unknown(_))));
        assert!(rig.resolve(), "no offset moved, and the number of parked records beside it tells");
        assert_eq!(rig.parked(), if committed { 0 } else { 2 });
        work_off(&mut rig);
        assert_eq!(rig.values("out"), ["a1", "c2", "R31", "b2"], "once");
        assert_eq!(rig.counts(), [("k".to_owned(), 2), ("l".to_owned(), 2)].into());
    }
}

#[test]
fn every_commit_is_the_groups_to_refuse() {
    let mut rig = keyed(&RECORDS);
    rig.settle(0);
    rig.wait_out();
    rig.calls.lock().unwrap().clear();
    rig.commit().unwrap();
    assert!(rig.calls.lock().unwrap().contains(&"offsets".to_owned()), "a release sends offsets that did not move");
}

#[test]
fn no_new_input_is_taken_at_the_bound() {
    let records = [("k", "R9"), ("k", "b"), ("l", "c"), ("k", "d"), ("l", "e")];
    let mut rig = with(&records, most(2));
    rig.settle(0);
    assert_eq!((rig.parked(), rig.committed()), (2, Some(3)), "c goes with what fits");
    assert_eq!(rig.values("out"), ["c1"]);
    assert!(matches!(rig.work(), Step::Until(_)));
    rig.restart(Restart::Closed);
    assert!(matches!(rig.work(), Step::Until(_)));
    rig.commit().unwrap();
    assert_eq!(rig.committed(), Some(3));
    work_off(&mut rig);
    assert_eq!(
        (rig.values("out"), rig.committed()),
        (["c1", "R91", "e2", "b2", "d3"].map(str::to_owned).into(), Some(5))
    );
}

#[test]
fn bytes_bound_the_park_too() {
    // key and value of the first have three bytes, of the second two
    for (bytes, parked) in [(2, 0), (3, 1), (4, 1), (5, 2), (6, 2)] {
        let mut rig = with(&[("k", "R9"), ("k", "b"), ("l", "c")], |spec| spec.parking.bytes = bytes);
        rig.settle(0);
        assert_eq!(rig.parked(), parked, "{bytes} bytes");
        work_off(&mut rig);
        assert_eq!(rig.values("out").len(), 3);
    }
}

#[test]
fn a_record_without_room_waits_by_partition() {
    let mut rig = with(&[("k", "R9"), ("l", "R5"), ("m", "c")], most(1));
    rig.settle(0);
    assert_eq!((rig.parked(), rig.committed(), rig.values("out").len()), (1, Some(1), 0));
    rig.feed("in", &[]);
    work_off(&mut rig);
    assert_eq!((rig.values("out").len(), rig.committed()), (3, Some(3)));
}

#[test]
fn an_input_without_room_keeps_no_other_from_its_turn() {
    let mut rig = Rig::set(&[("k", "R9"), ("k", "longer than what is left")], |spec| {
        by_key(spec);
        spec.inputs.push(input("side", INPUTS[1]));
        spec.parking.bytes = 9;
        spec.limits.batch_records = 1;
    });
    rig.settle(0);
    assert_eq!((rig.parked(), rig.committed_of("in").offset), (1, Some(1)));
    rig.feed("side", &[("l", "a"), ("l", "b"), ("l", "c")]);
    rig.work();
    rig.commit().unwrap();
    assert_eq!(rig.committed_of("side").offset, Some(3), "three batches, without a pause between them");
    work_off(&mut rig);
    assert_eq!(rig.committed_of("in").offset, Some(2));
}

#[test]
fn a_null_key_waits_by_partition_and_parked_records_do_not_wait_for_it() {
    let null_retries = |spec: &mut ProcessorSpec| {
        spec.retry.codes = [("null-key".to_owned(), Action::Retry)].into();
        spec.retry.max_attempts = 1000;
    };
    let mut rig = with(&[("k", "R2"), ("", "b"), ("l", "c")], null_retries);
    rig.work();
    assert!(matches!(rig.task().state(), State::BackingOff(reason) if reason.contains("offset 1")));
    rig.commit().unwrap();
    assert_eq!((rig.parked(), rig.committed(), rig.values("out").len()), (1, Some(1), 0));
    while rig.values("out").is_empty() {
        let Step::Until(due) = rig.work() else { panic!("nothing waits") };
        rig.clock.pass(due - rig.now());
        rig.work();
        rig.commit().unwrap();
    }
    assert_eq!((rig.values("out"), rig.parked(), rig.committed()), (vec!["R21".to_owned()], 0, Some(1)));
    assert!(rig.metadata().starts_with("pelton1;o=1;"), "what waits at its input is remembered there");
}

#[test]
fn a_key_waits_on_every_input() {
    let two = |spec: &mut ProcessorSpec| {
        by_key(spec);
        spec.inputs.push(input("side", INPUTS[1]));
        spec.retry.first_delay = Duration::from_secs(60);
        spec.retry.max_delay = Duration::from_secs(60);
    };
    let mut rig = Rig::set(&[("k", "R9"), ("l", "a")], two);
    rig.settle(0);
    rig.feed("side", &[("l", "x"), ("k", "y")]);
    rig.feed("in", &[("k", "b")]);
    rig.settle(0);
    assert_eq!((rig.values("out"), rig.parked()), (vec!["a1".into(), "x2".to_owned()], 3));
    assert_eq!((rig.committed_of("in").offset, rig.committed_of("side").offset), (Some(3), Some(2)));
    rig.restart(Restart::Lost);
    work_off(&mut rig);
    let out = rig.values("out");
    assert_eq!((out[2].as_str(), out.len()), ("R91", 5), "the one that failed is first, also after a restart");
    let place = |value: &str| out.iter().position(|out| out.starts_with(value));
    assert!(place("b") > place("R9") && place("y") > place("R9"));
}

#[test]
fn a_stop_halts_the_park_too() {
    let mut rig = with(&[("k", "R9"), ("k", "Stop")], |spec| spec.retry.max_attempts = 2);
    rig.settle(0);
    rig.wait_out();
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted") };
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "plugin-stop"));
    rig.commit().unwrap();
    assert_eq!((rig.parked(), rig.buried().len()), (1, 1), "the record that stops stays parked");
    rig.restart(Restart::Closed);
    rig.wait_out();
    assert!(rig.task().state().is_halted());
}

#[test]
fn traps_in_a_batch_are_found_while_others_are_parked() {
    let records = [("k", "R9"), ("l", "a"), ("k", "Trap"), ("m", "Trap"), ("l", "b"), ("k", "c"), ("m", "d")];
    let mut rig = with(&records, |spec| spec.retry.max_attempts = 2);
    rig.settle(0);
    work_off(&mut rig);
    let mut buried = rig.buried();
    buried.sort();
    assert_eq!(buried, [("0", "later"), ("2", "trap"), ("3", "trap")].map(|(o, c)| (o.to_owned(), c.to_owned())));
    assert_eq!(rig.counts(), [("k".to_owned(), 1), ("l".to_owned(), 2), ("m".to_owned(), 1)].into());
}

#[test]
fn a_trap_that_is_retried_is_parked_like_any_other() {
    let retry = |spec: &mut ProcessorSpec| {
        spec.retry.codes = [("trap".to_owned(), Action::Retry), ("bad".to_owned(), Action::Retry)].into();
        spec.retry.max_attempts = 2;
    };
    let mut rig = with(&[("l", "a"), ("k", "Trap"), ("l", "b"), ("m", "No"), ("k", "c"), ("m", "d")], retry);
    rig.settle(0);
    assert_eq!((rig.values("out"), rig.parked()), (vec!["a1".into(), "b2".to_owned()], 4));
    work_off(&mut rig);
    assert_eq!((rig.values("out").len(), rig.buried().len()), (4, 2));
}

/// What the task believes of the output has become stricter.
fn stale(info: &mut TopicInfo) {
    if info.name == "out" {
        info.limits.max_message_bytes = 1 << 20;
    }
}

#[test]
fn an_output_of_a_parked_record_that_the_log_refuses_is_that_records_failure() {
    let big = format!("R2{}", "x".repeat(3000));
    let records = [("k", big.as_str()), ("k", "b"), ("l", "c")];
    let mut rig = Rig::made(&records, actor(), stale, by_key);
    rig.settle(0);
    rig.wait_out();
    let Err(CommitError::Refused(refusals)) = rig.commit() else { panic!("not refused") };
    assert_eq!(refusals.iter().map(|refusal| refusal.origin.offset).collect::<Vec<_>>(), [0]);
    rig.refuse(refusals);
    assert_eq!((rig.parked(), rig.task().state()), (2, &State::Running));
    work_off(&mut rig);
    assert_eq!(rig.buried(), [("0".to_owned(), "output-too-large".to_owned())]);
    assert_eq!(rig.letters()[0]["pelton-verdict"], "refused");
    assert_eq!((rig.values("out"), rig.counts().get("k")), (vec!["c1".into(), "b1".to_owned()], Some(&1)));
}

#[test]
fn an_output_of_a_parked_record_that_is_known_to_be_refused_never_leaves() {
    let big = format!("R2{}", "x".repeat(3000));
    let mut rig = keyed(&[("k", big.as_str()), ("k", "b")]);
    work_off(&mut rig);
    assert_eq!((rig.buried().len(), rig.values("out")), (1, vec!["b1".to_owned()]));
    assert!(!rig.calls.lock().unwrap().contains(&"abort".to_owned()));
}

#[test]
fn a_record_that_the_parks_changelog_refuses_is_not_lost() {
    let big = format!("R2{}", "x".repeat(3000));
    let small = |info: &mut TopicInfo| {
        if info.name == PARKED {
            info.limits.max_message_bytes = 2000;
        }
    };
    let mut rig = Rig::made(&[("k", big.as_str()), ("k", "b")], actor(), small, by_key);
    rig.settle(0);
    assert_eq!((rig.parked(), rig.committed()), (0, Some(0)), "it waits at its input");
    rig.wait_out();
    rig.settle(1);
    assert_eq!((rig.buried().len(), rig.values("out"), rig.committed()), (1, vec!["b1".to_owned()], Some(2)));
}

#[test]
fn releases_and_new_input_take_turns() {
    let always_due = |spec: &mut ProcessorSpec| {
        spec.retry.max_attempts = 1_000_000;
        (spec.retry.first_delay, spec.retry.max_delay) = (Duration::ZERO, Duration::ZERO);
        spec.limits.batch_records = 2;
    };
    // works at its 78th call
    let records: Vec<(&str, &str)> = std::iter::once(("k", "R~")).chain((0..40).map(|_| ("l", "a"))).collect();
    let mut rig = with(&records, always_due);
    let (mut most_running, mut running, mut last) = (0, 0, 0);
    while rig.task().intake.positions()[0].1 < 41 {
        rig.clock.pass(Duration::from_millis(2));
        rig.step();
        let now = rig.task().intake.positions()[0].1;
        running = if now > last { running + 1 } else { 0 };
        (most_running, last) = (most_running.max(running), now);
    }
    assert!(most_running <= 2, "{most_running} batches of input running, with a record due all the time");
}

#[test]
fn what_is_left_in_the_park_is_worked_off_before_new_input_when_the_ordering_is_by_partition_again() {
    let mut rig = keyed(&RECORDS);
    rig.settle(0);
    rig.restart_with(Restart::Closed, |spec| spec.ordering = Ordering::Partition);
    rig.feed("in", &[("m", "R9"), ("k", "e")]);
    assert!(matches!(rig.work(), Step::Until(_)));
    rig.settle(0);
    assert_eq!((rig.committed(), rig.values("out").len()), (Some(4), 2), "new input waits");
    work_off(&mut rig);
    assert_eq!(rig.values("out"), ["a1", "c2", "R31", "b2", "R91", "e3"]);
}

#[test]
fn parked_records_of_a_topic_that_is_no_input_any_more_are_told() {
    let mut rig = keyed(&RECORDS);
    rig.settle(0);
    rig.restart_with(Restart::Closed, |spec| spec.inputs = vec![input("side", INPUTS[1])]);
    rig.work();
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted") };
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "parked-input-gone"));
    assert!(fault.message.contains("topic in"), "{fault}");
}

#[test]
fn without_transactions_what_was_parked_and_not_committed_is_parked_once() {
    let at_least_once = |spec: &mut ProcessorSpec| spec.delivery = Delivery::AtLeastOnce;
    for how in [Restart::Closed, Restart::Lost] {
        let mut rig = with(&RECORDS, at_least_once);
        rig.work();
        // outputs and changelogs are written, the offsets are not
        *rig.loss.lock().unwrap() = Some(Loss { committed: false });
        assert!(rig.commit().is_err());
        rig.new_producer();
        rig.restart(how);
        assert_eq!((rig.parked(), rig.committed()), (2, None), "the changelog has them");
        work_off(&mut rig);
        let of_k: Vec<String> = rig.values("out").into_iter().filter(|out| !out.starts_with(['a', 'c'])).collect();
        assert_eq!(of_k, ["R31", "b2"], "{how:?}: not processed twice, and in order");
    }
}

#[test]
fn without_transactions_an_abort_leaves_no_ghost_in_the_changelog() {
    let at_least_once = |spec: &mut ProcessorSpec| spec.delivery = Delivery::AtLeastOnce;
    let mut rig = with(&[("l", "a"), ("k", "R2")], at_least_once);
    rig.work();
    *rig.loss.lock().unwrap() = Some(Loss { committed: false });
    assert!(rig.commit().is_err());
    assert!(rig.resolve());
    assert_eq!((rig.parked(), rig.parked_in_changelog()), (0, 1), "written, and not committed");
    // one by one, so that the second record is in the instance's second call, and works
    rig.task().pacing = Pacing::new(1, 1 << 20);
    rig.settle(0);
    assert_eq!(rig.committed(), Some(2));
    rig.restart(Restart::Lost);
    assert_eq!((rig.parked(), rig.parked_in_changelog()), (0, 0));
    assert_eq!(rig.values("out").iter().filter(|out| out.starts_with('R')).count(), 1);
}
