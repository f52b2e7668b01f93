//! What policy makes of failures: the last attempt, codes with a rule of their own, too many or too large dead letters.

use super::rig::{DEAD_BYTES, Rig};
use crate::config::{Action, LetterLimit, Oversize, Retry};
use crate::delivery::LetterGate;
use crate::model::Verdict;
use crate::task::{ProcessorSpec, State, Step, stops_processor};
use std::sync::Mutex;
use std::time::Duration;

fn codes(codes: &[(&str, Action)], max_attempts: u32) -> impl FnOnce(&mut ProcessorSpec) {
    let codes = codes.iter().map(|(code, action)| ((*code).to_owned(), *action)).collect();
    move |spec| spec.retry = Retry { codes, max_attempts, ..Retry::default() }
}

fn at_most(count: u64) -> impl FnOnce(&mut ProcessorSpec) {
    let limit = LetterLimit::Rate { count, per: Duration::from_secs(3600) };
    move |spec| spec.letters = Some(Mutex::new(LetterGate::new(limit)))
}

/// Offset, verdict, code and attempts of each dead letter.
fn deaths(rig: &Rig) -> Vec<String> {
    let all = ["pelton-source-offset", "pelton-verdict", "pelton-code", "pelton-attempts"];
    rig.letters().iter().map(|letter| all.map(|name| letter[name].clone()).join(" ")).collect()
}

#[track_caller]
fn halted(rig: &mut Rig, code: &str, says: &str) {
    assert_eq!(rig.work(), Step::Idle);
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted: {:?}", rig.task().state()) };
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, code));
    assert!(fault.message.contains(says), "{fault}");
    assert!(stops_processor(&fault));
}

#[track_caller]
fn nothing_done(rig: &mut Rig) {
    assert_eq!(rig.task().overlay_bytes(), 0);
    rig.commit().unwrap();
    assert_eq!((rig.values("out").len(), rig.values("dead").len(), rig.committed()), (0, 0, Some(0)));
}

#[test]
fn the_last_attempt_ends_in_a_dead_letter_that_tells_all_of_them() {
    let mut rig = Rig::set(&[("k", "a"), ("k", "R9"), ("k", "b")], codes(&[], 3));
    let start = rig.now();
    assert_eq!(rig.wait_out().len(), 2, "three calls, two waits");
    let last = rig.now();
    rig.settle(0);
    assert_eq!(deaths(&rig), ["1 exhausted later 3"]);
    let letter = rig.letters().remove(0);
    assert_eq!(letter["pelton-first-failure"], start.as_millis().to_string());
    assert_eq!(letter["pelton-last-failure"], last.as_millis().to_string());
    assert_eq!((rig.values("out"), rig.committed()), (vec!["a1".to_owned(), "b2".to_owned()], Some(3)));
}

#[test]
fn a_rejection_that_is_to_be_retried_is_decided_alone() {
    let records = [("k", "a"), ("l", "b"), ("k", "No"), ("k", "c"), ("k", "No"), ("l", "d")];
    let mut rig = Rig::set(&records, codes(&[("bad", Action::Retry)], 2));
    assert_eq!(rig.wait_out().len(), 2, "one wait for each");
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b1", "c2", "d2"], "once each, in order");
    assert_eq!(deaths(&rig), ["2 exhausted bad 2", "4 exhausted bad 2"]);
    assert_eq!(rig.counts(), [("k".to_owned(), 2), ("l".to_owned(), 2)].into());
}

#[test]
fn a_rejection_may_stop_and_a_stop_may_be_a_dead_letter() {
    let mut rig = Rig::set(&[("k", "a"), ("k", "No"), ("k", "b")], codes(&[("bad", Action::Stop)], 9));
    halted(&mut rig, "policy-stop", "offset 1: why (bad)");
    rig.commit().unwrap();
    assert_eq!((rig.values("out"), rig.committed()), (vec!["a1".to_owned()], Some(1)), "what came before is done");
    let mut rig = Rig::set(&[("k", "Stop"), ("k", "b")], codes(&[("halt", Action::DeadLetter)], 9));
    rig.settle(0);
    assert_eq!((deaths(&rig), rig.values("out")), (vec!["0 rejected halt 1".to_owned()], vec!["b1".to_owned()]));
}

#[test]
fn a_trap_may_be_retried() {
    let mut rig = Rig::set(&[("k", "a"), ("k", "Trap"), ("k", "b")], codes(&[("trap", Action::Retry)], 3));
    assert_eq!(rig.wait_out().len(), 2);
    rig.settle(0);
    assert_eq!(
        (deaths(&rig), rig.values("out")),
        (vec!["1 exhausted trap 3".to_owned()], vec!["a1".into(), "b2".into()])
    );
}

#[test]
fn too_many_letters_stop_the_processor_before_they_are_written() {
    let records = [("k", "No"), ("k", "Trap"), ("k", "a"), ("k", "No"), ("k", "b")];
    let mut rig = Rig::set(&records, at_most(2));
    halted(&mut rig, "dead-letter-limit", "offset 3");
    rig.commit().unwrap();
    assert_eq!((deaths(&rig).len(), rig.values("out"), rig.committed()), (2, vec!["a1".to_owned()], Some(3)));
}

#[test]
fn a_call_with_one_letter_too_many_is_not_accepted_at_all() {
    let mut rig = Rig::set(&[("k", "a"), ("k", "No"), ("k", "No")], at_most(1));
    halted(&mut rig, "dead-letter-limit", "offset 1");
    nothing_done(&mut rig);
}

#[test]
fn letters_of_aborted_transactions_do_not_count() {
    let mut rig = Rig::set(&[("k", "No"), ("k", "No")], at_most(2));
    for _ in 0..10 {
        rig.work();
        rig.abort();
    }
    rig.settle(0);
    assert_eq!(deaths(&rig).len(), 2);
}

#[test]
fn records_that_make_no_letters_are_counted_at_the_commit() {
    // three of 202 are more than a hundredth; three of three would be too few to judge
    let share = LetterGate::new(LetterLimit::Share(0.01));
    let good = [("k", "a"); 199];
    let with_share = |spec: &mut ProcessorSpec| spec.letters = Some(Mutex::new(share));
    let mut rig = Rig::set(&[&good[..], &[("k", "No"); 3]].concat(), with_share);
    rig.task().pacing = crate::task::pacing::Pacing::new(199, 1 << 20);
    assert_eq!(rig.step(), Step::Worked);
    rig.commit().unwrap();
    halted(&mut rig, "dead-letter-limit", "offset 199");
}

#[test]
fn a_letter_too_large_stops_the_processor_where_the_setting_says_so() {
    let big = "N".repeat(DEAD_BYTES as usize);
    let stop = |spec: &mut ProcessorSpec| spec.dead_letter.oversize = Oversize::Stop;
    let mut rig = Rig::set(&[("k", "a"), ("k", "No"), ("k", &big)], stop);
    halted(&mut rig, "dead-letter-too-large", "offset 2");
    nothing_done(&mut rig);
    let mut rig = Rig::set(&[("k", "a"), ("k", "No")], stop);
    rig.settle(0);
    assert_eq!(deaths(&rig).len(), 1);
}
