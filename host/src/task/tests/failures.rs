//! Records that fail in every way: each ends as one dead letter, its neighbours are done once and in order.

use super::rig::{DEAD_BYTES, DEADLINE, INPUTS, OUT_BYTES, Rig, actor, fresh_actor, id};
use super::ticks::{Ticks, until_in_flight};
use crate::delivery::{Example, jitter};
use crate::model::log::TopicInfo;
use crate::model::{Clock, Verdict};
use crate::task::{State, Step};
use std::collections::BTreeMap;
use std::time::Duration;

fn buried(letters: &[(i64, &str)]) -> Vec<(String, String)> {
    letters.iter().map(|(offset, code)| (offset.to_string(), (*code).to_owned())).collect()
}

fn counts(counts: &[(&str, u8)]) -> BTreeMap<String, u8> {
    counts.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect()
}

/// How long the record at `offset` waits after so many failures, with this bound in milliseconds.
fn wait(offset: i64, attempts: u32, bound: u64) -> Duration {
    let bound = Duration::from_millis(bound).as_secs_f64();
    Duration::from_secs_f64(bound * jitter((&id(), 0u32, offset, attempts))).max(Duration::from_millis(1))
}

#[test]
fn a_reject_becomes_a_dead_letter_that_says_where_from_and_why() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "No"), ("k", "b")]);
    rig.settle(0);
    assert_eq!(rig.read("out"), [("k".into(), "a1".into()), ("k".into(), "b2".to_owned())]);
    assert_eq!(rig.read("dead"), [("k".into(), "No".to_owned())], "byte for byte");
    let digest = rig.task().version().component.digest.clone();
    let expected = [
        ("pelton-source-topic", "in"),
        ("pelton-source-partition", "0"),
        ("pelton-source-offset", "1"),
        ("pelton-source-timestamp", "5"),
        ("pelton-processor", "proc"),
        ("pelton-plugin", "actor-"),
        ("pelton-plugin-version", "0"),
        ("pelton-plugin-digest", &digest),
        ("pelton-verdict", "rejected"),
        ("pelton-code", "bad"),
        ("pelton-message", "why"),
        ("pelton-attempts", "1"),
        ("pelton-first-failure", "1000000"),
        ("pelton-last-failure", "1000000"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(rig.letters(), [expected]);
    assert_eq!((rig.counts(), rig.committed()), (counts(&[("k", 2)]), Some(3)));
}

#[test]
fn a_null_key_at_keyed_state_is_a_dead_letter() {
    let mut rig = Rig::new(&[("k", "a"), ("", "b"), ("k", "c")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "c2"]);
    assert_eq!(rig.buried(), buried(&[(1, "null-key")]));
    assert_eq!(rig.counts(), counts(&[("k", 2)]));
}

#[test]
fn a_trap_costs_its_record_alone() {
    let mut rig = Rig::new(&[("k", "a"), ("l", "b"), ("k", "Trap"), ("k", "c"), ("l", "d")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b1", "c2", "d2"], "once each, in order");
    assert_eq!(rig.buried(), buried(&[(2, "trap")]));
    assert_eq!((rig.counts(), rig.committed()), (counts(&[("k", 2), ("l", 2)]), Some(5)));
}

#[test]
fn two_traps_of_one_batch_are_both_found() {
    let mut rig = Rig::new(&[("k", "Trap"), ("k", "a"), ("k", "Trap"), ("k", "b")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2"]);
    assert_eq!(rig.buried(), buried(&[(0, "trap"), (2, "trap")]));
}

#[test]
fn a_loop_misses_its_deadline_and_its_neighbours_do_not() {
    let mut rig = Rig::with(&[("k", "a"), ("k", "Loop"), ("k", "b")], fresh_actor(), |_| ());
    let ticks = Ticks::start(&rig);
    let start = rig.now();
    loop {
        match rig.step() {
            // a thousandth of the deadline: calls that end are ticked far less often than that
            Step::Yielded => rig.clock.pass(DEADLINE / 1000),
            Step::Worked => {}
            Step::Idle | Step::Until(_) => break,
        }
    }
    drop(ticks);
    let deadlines = (rig.now() - start).as_secs_f64() / DEADLINE.as_secs_f64();
    assert!((2.0..3.0).contains(&deadlines), "the batch's and the record's own, not {deadlines}");
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2"]);
    assert_eq!(rig.buried(), buried(&[(1, "deadline")]));
}

#[test]
fn an_output_too_large_takes_its_records_effects_with_it() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "Big"), ("k", "c")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "c2"], "the big record was not counted, the others once");
    assert_eq!(rig.buried(), buried(&[(1, "output-too-large")]));
    assert_eq!((rig.counts(), rig.committed()), (counts(&[("k", 2)]), Some(3)));
    assert!(!rig.calls.lock().unwrap().contains(&"abort".to_owned()), "found before it was sent");
}

#[test]
fn a_dead_letter_too_large_for_its_topic_is_cut_and_says_so() {
    let big = "N".repeat(DEAD_BYTES as usize);
    let mut rig = Rig::new(&[("k", &big)]);
    rig.settle(0);
    assert_eq!(rig.letters()[0]["pelton-truncated-from-bytes"], (big.len() + 1).to_string());
    let kept = rig.values("dead")[0].len() as u64;
    assert!((DEAD_BYTES - 1000..DEAD_BYTES).contains(&kept), "{kept} bytes are left");
}

#[test]
fn an_output_of_no_time_is_its_records_failure() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "Date"), ("k", "c")]);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "c2"]);
    assert_eq!(rig.buried(), buried(&[(1, "output-timestamp-refused")]));
}

#[test]
fn state_too_large_for_its_changelog_is_its_last_writers_failure() {
    let small = |info: &mut TopicInfo| {
        if info.name.ends_with("-changelog") {
            info.limits.max_message_bytes = OUT_BYTES;
        }
    };
    let mut rig = Rig::with(&[("k", "a"), ("l", "Wide"), ("k", "c")], actor(), small);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "c2"]);
    assert_eq!(rig.buried(), buried(&[(1, "state-too-large")]));
    assert_eq!(rig.counts(), counts(&[("k", 2)]));
}

#[test]
fn a_retry_waits_its_time_and_recovers() {
    // the first two calls that meet it are told to wait
    let mut rig = Rig::new(&[("k", "a"), ("k", "R3"), ("k", "b")]);
    assert_eq!(rig.step(), Step::Worked);
    assert_eq!(rig.task().state(), &State::BackingOff("offset 1: why (later)".into()));
    let first = rig.now() + wait(1, 0, 100);
    assert_eq!(rig.step(), Step::Until(first));
    rig.commit().unwrap();
    assert_eq!((rig.values("out"), rig.committed()), (vec!["a1".to_owned()], Some(1)), "what came before is done");
    assert!(!rig.task().is_idle());
    rig.clock.pass(first - rig.now() - Duration::from_millis(1));
    assert_eq!(rig.step(), Step::Until(first));
    rig.clock.pass(Duration::from_millis(2));
    assert_eq!(rig.step(), Step::Worked);
    let second = rig.now() + wait(1, 1, 200);
    assert_eq!(rig.step(), Step::Until(second), "of a bound twice as long the second time");
    rig.wait_out();
    assert_eq!(rig.task().state(), &State::Running);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "R32", "b3"]);
    assert_eq!((rig.buried(), rig.counts()), (vec![], counts(&[("k", 3)])));
    assert!(rig.task().is_idle());
}

#[test]
fn attempts_are_counted_anew_after_a_recovery() {
    let mut rig = Rig::new(&[("k", "R2"), ("k", "R4")]);
    let expected = [wait(0, 0, 100), wait(1, 0, 100), wait(1, 1, 200)];
    assert_eq!(rig.wait_out(), expected, "of the second record the bound of the first wait is short again");
    rig.settle(0);
    assert_eq!(rig.values("out"), ["R21", "R42"]);
}

#[test]
fn a_stop_halts_before_its_record_and_keeps_what_came_before() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "Stop"), ("k", "b")]);
    assert_eq!(rig.work(), Step::Idle);
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted") };
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "plugin-stop"));
    assert!(fault.message.contains("offset 1: why (halt)"), "{fault}");
    rig.commit().unwrap();
    assert_eq!((rig.values("out"), rig.buried(), rig.committed()), (vec!["a1".to_owned()], vec![], Some(1)));
    assert_eq!(rig.work(), Step::Idle);
    assert!(rig.task().is_idle() && rig.task().is_stopped());
}

#[test]
fn a_stopped_processor_stands_still() {
    let mut rig = Rig::new(&[("k", "a")]);
    assert!(rig.task().spec.stop());
    assert_eq!(rig.step(), Step::Idle);
    assert!(!rig.task().spec.stop(), "told once");
    assert_eq!(rig.calls.lock().unwrap().len(), 0);
}

#[test]
fn a_call_that_is_interrupted_is_not_accepted() {
    let mut rig = Rig::with(&[("k", "a"), ("k", "Loop")], fresh_actor(), |_| ());
    until_in_flight(&mut rig);
    assert!(!rig.task().is_idle());
    rig.task().interrupt();
    rig.commit().unwrap();
    assert_eq!((rig.values("out").len(), rig.committed(), rig.counts().len()), (0, Some(0), 0));
}

#[test]
fn traffic_counts_each_record_once_however_often_it_was_tried() {
    let records = [("k", "a"), ("k", "R3"), ("k", "No"), ("k", "Trap"), ("k", "b")];
    let mut rig = Rig::new(&records);
    rig.wait_out();
    let bytes: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
    let traffic = rig.task().tally.traffic;
    assert_eq!((traffic.records_in, traffic.bytes_in), (5, bytes as u64));
    assert_eq!((traffic.records_out, traffic.bytes_out), (3, "ka1kR32kb3".len() as u64));
    let letters = rig.task().tally.dead_letters.iter().map(|(code, (count, _))| (*code, *count));
    assert_eq!(letters.collect::<Vec<_>>(), [("plugin", 1), ("trap", 1)]);
}

#[test]
fn only_letters_that_are_committed_are_news() {
    let news = |rig: &mut Rig| {
        let due = rig.task().spec.news.lock().unwrap().due(Duration::ZERO, true);
        due.into_iter().map(|news| (news.code, news.count, news.example)).collect::<Vec<_>>()
    };
    let mut rig = Rig::new(&[("k", "a"), ("k", "No"), ("k", "No")]);
    rig.work();
    rig.task().rewind();
    assert_eq!(news(&mut rig), []);
    rig.wait_out();
    assert_eq!(news(&mut rig), []);
    rig.commit().unwrap();
    let place = format!("{}/0@1", INPUTS[0]);
    let first = Example { place, message: "why (bad)".into(), time_ms: rig.clock.wall_ms() };
    assert_eq!(news(&mut rig), [("plugin", 2, first)]);
}

/// A start is tried before the host runs, and may still fail later: no record is blamed.
#[test]
fn a_plugin_that_stops_starting_stands_still() {
    let mut rig = Rig::set(&[("k", "a")], |spec| spec.limits.init_deadline = Duration::ZERO);
    rig.work();
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted: {:?}", rig.task().state()) };
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "plugin-init-failed"));
    assert_eq!((rig.buried(), rig.committed()), (buried(&[]), None));
}
