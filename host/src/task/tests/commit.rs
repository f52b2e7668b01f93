//! The order of a commit, what an abort leaves, lost partitions, and records that the log refuses.

use super::recorder::Loss;
use super::rig::{DEAD_BYTES, Rig, actor, id};
use crate::model::log::TopicInfo;
use crate::task::{CommitError, State, Step};
use std::sync::atomic::Ordering;

const CHANGELOG: &str = "app-proc-store-changelog";

/// What the task believes of a topic that has become stricter since it was asked.
fn stale(names: &'static [&'static str]) -> impl Fn(&mut TopicInfo) {
    |info| {
        if names.contains(&info.name.as_str()) {
            info.limits.max_message_bytes = 1 << 20;
        }
    }
}

fn position(rig: &mut Rig) -> Option<i64> {
    rig.tasks[0].stores().unwrap().position(0).map(|position| position.offset)
}

fn inputs(rig: &mut Rig) -> Option<i64> {
    rig.tasks[0].stores().unwrap().applied().inputs.get("in").copied()
}

#[test]
fn a_commit_keeps_its_order() {
    let mut rig = Rig::new(&[("k", "a"), ("l", "b"), ("k", "c")]);
    rig.work();
    assert_eq!(rig.counts().len(), 0, "nothing uncommitted reaches the store");
    assert!(rig.task().overlay_bytes() > 0);
    rig.commit().unwrap();
    let changelog = format!("send {CHANGELOG}");
    let expected = ["send out", "send out", "send out", &changelog, &changelog, "flush", "offsets", "commit"];
    assert_eq!(*rig.calls.lock().unwrap(), expected, "each changed key once, before the flush");
    assert_eq!((position(&mut rig), inputs(&mut rig), rig.committed()), (Some(2), Some(3), Some(3)));
    assert_eq!(rig.counts(), [("k".to_owned(), 2), ("l".to_owned(), 1)].into());
    assert_eq!((rig.task().overlay_bytes(), rig.task().has_progress(), rig.out.bytes()), (0, false, 0));
}

#[test]
fn a_commit_without_progress_sends_no_offsets() {
    let mut rig = Rig::new(&[("k", "a")]);
    rig.settle(0);
    rig.calls.lock().unwrap().clear();
    rig.commit().unwrap();
    assert!(!rig.calls.lock().unwrap().contains(&"offsets".to_owned()));
    assert_eq!(rig.committed(), Some(1));
}

#[test]
fn an_abort_takes_everything_back_and_the_second_run_is_as_the_first() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "No"), ("k", "b")]);
    rig.work();
    rig.abort();
    assert_eq!((rig.task().overlay_bytes(), rig.task().intake.positions()[0].1), (0, 0));
    assert_eq!((rig.values("out").len(), rig.buried().len(), rig.committed()), (0, 0, None));
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b2"], "counted from the store, not from the run before");
    assert_eq!((rig.values("dead"), rig.committed()), (vec!["No".to_owned()], Some(3)));
    assert_eq!(rig.counts(), [("k".to_owned(), 2)].into());
}

#[test]
fn an_abort_after_a_commit_goes_back_to_the_commit() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "R9"), ("k", "b")]);
    assert_eq!(rig.step(), Step::Worked);
    rig.commit().unwrap();
    rig.abort();
    assert_eq!((rig.task().intake.positions()[0].1, rig.task().has_progress()), (1, false));
    assert!(matches!(rig.step(), Step::Until(_)), "the retry keeps its time");
    assert_eq!((rig.values("out"), rig.counts()), (vec!["a1".to_owned()], [("k".to_owned(), 1)].into()));
}

#[test]
fn a_lost_partition_commits_nothing() {
    let mut rig = Rig::new(&[("k", "a"), ("k", "b")]);
    rig.work();
    rig.number.fetch_add(1, Ordering::SeqCst);
    assert!(matches!(rig.commit(), Err(CommitError::Lost(task)) if task == id()));
    let calls = rig.calls.lock().unwrap().clone();
    assert!(!calls.iter().any(|call| call == "offsets" || call == "commit"), "{calls:?}");
    rig.abort();
    assert_eq!((rig.values("out").len(), rig.values(CHANGELOG).len(), rig.committed()), (0, 0, None));
    assert_eq!((rig.counts().len(), position(&mut rig)), (0, Some(0)));
}

#[test]
fn what_the_log_refuses_becomes_its_records_dead_letter() {
    let mut rig = Rig::with(&[("k", "a"), ("k", "Big"), ("k", "c")], actor(), stale(&["out"]));
    rig.work();
    let Err(CommitError::Refused(refusals)) = rig.commit() else { panic!("not refused") };
    assert_eq!(refusals.iter().map(|refusal| refusal.origin.offset).collect::<Vec<_>>(), [1]);
    assert_eq!(rig.counts().len(), 0);
    rig.refuse(refusals);
    assert_eq!(rig.task().state(), &State::Running);
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "c2"]);
    assert_eq!(rig.buried(), [("1".to_owned(), "output-too-large".to_owned())]);
    assert_eq!((rig.counts(), rig.committed()), ([("k".to_owned(), 2)].into(), Some(3)));
}

#[test]
fn a_dead_letter_that_is_refused_needs_a_person() {
    let big = "N".repeat(DEAD_BYTES as usize);
    let mut rig = Rig::with(&[("k", "a"), ("k", &big)], actor(), stale(&["dead"]));
    for halted in [false, true] {
        rig.work();
        let Err(CommitError::Refused(refusals)) = rig.commit() else { panic!("not refused") };
        rig.refuse(refusals);
        assert_eq!(rig.task().state().is_halted(), halted);
    }
    let State::Halted(fault) = rig.task().state().clone() else { panic!("not halted") };
    assert_eq!(fault.code, "dead-letter-refused");
    assert!(fault.message.contains("offset 1"), "{fault}");
    assert_eq!((rig.committed(), rig.buried().len()), (None, 0), "the record is not lost");
}

/// A commit whose answer is lost, and what the group's offsets say of it.
fn lose(rig: &mut Rig, committed: bool) -> Option<bool> {
    rig.work();
    *rig.loss.lock().unwrap() = Some(Loss { committed });
    assert!(matches!(rig.commit(), Err(CommitError::Unknown(fault)) if fault.code == "producer-fenced"));
    assert_eq!(rig.counts().len(), 0, "nothing unknown reaches the store");
    rig.new_producer();
    let partitions = rig.task().partitions();
    let found = rig.group.committed(&partitions).unwrap();
    rig.task().resolve(&found)
}

#[test]
fn a_lost_answer_of_a_commit_that_went_through_is_settled() {
    let mut rig = Rig::new(&[("k", "a"), ("l", "b")]);
    assert_eq!(lose(&mut rig, true), Some(true));
    let Rig { out, tasks, .. } = &mut rig;
    tasks[0].settle(out);
    assert_eq!(position(&mut rig), Some(2), "as acknowledged before the producer was lost");
    assert_eq!((rig.counts().len(), inputs(&mut rig)), (2, Some(2)));
    rig.task().rewind();
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b1"], "once");
}

#[test]
fn a_lost_answer_of_a_commit_that_did_not_go_through_is_run_again() {
    let mut rig = Rig::new(&[("k", "a"), ("l", "b")]);
    assert_eq!(lose(&mut rig, false), Some(false));
    rig.task().rewind();
    assert_eq!(position(&mut rig), Some(0));
    rig.settle(0);
    assert_eq!(rig.values("out"), ["a1", "b1"], "once");
    assert_eq!((rig.counts().len(), rig.committed()), (2, Some(2)));
}
