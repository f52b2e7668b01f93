//! What is remembered of a record that is retried is committed beside its offset, and follows the partition.

use super::recorder::Loss;
use super::rig::{Restart, Rig};
use crate::delivery::Attempts;
use crate::task::{CommitError, ProcessorSpec, State, Step};
use std::time::Duration;

/// The second record never works.
const RECORDS: [(&str, &str); 3] = [("k", "a"), ("k", "R9"), ("k", "b")];

fn remembered(rig: &Rig) -> Option<(i64, u32, i64)> {
    Attempts::decode(&rig.metadata()).map(|attempts| (attempts.offset, attempts.count, attempts.first_ms))
}

fn three(spec: &mut ProcessorSpec) {
    spec.retry.max_attempts = 3;
}

/// Works, waits for one retry, and works again.
fn wait_once(rig: &mut Rig) {
    let Step::Until(due) = rig.work() else { panic!("nothing waits") };
    rig.clock.pass(due - rig.now());
    rig.work();
}

#[test]
fn attempts_are_committed_beside_the_unmoved_offset_until_the_record_is_done() {
    let mut rig = Rig::set(&RECORDS, three);
    let start = rig.now().as_millis() as i64;
    rig.settle(0);
    assert_eq!((rig.committed(), remembered(&rig)), (Some(1), Some((1, 1, start))), "what came before is done");
    assert!(!rig.task().has_progress());
    wait_once(&mut rig);
    assert!(rig.task().has_progress(), "the offset stays, what is said beside it does not");
    rig.commit().unwrap();
    assert_eq!((rig.committed(), remembered(&rig)), (Some(1), Some((1, 2, start))));
    rig.wait_out();
    rig.settle(0);
    assert_eq!((rig.committed(), rig.metadata()), (Some(3), String::new()));
    assert_eq!(rig.values("out"), ["a1", "b2"]);
}

#[test]
fn another_host_goes_on_with_the_same_count_and_the_same_wait() {
    for how in [Restart::Closed, Restart::Lost] {
        let mut rig = Rig::set(&RECORDS, three);
        let start = rig.now().as_millis().to_string();
        rig.settle(0);
        let Step::Until(due) = rig.step() else { panic!("nothing waits") };
        rig.clock.pass((due - rig.now()) / 2);
        rig.restart(how);
        let Step::Until(again) = rig.work() else { panic!("nothing waits") };
        assert!(due.abs_diff(again) <= Duration::from_millis(1), "{due:?} and {again:?}");
        assert_eq!(rig.task().state(), &State::BackingOff("offset 1: attempt 2 is to come".into()));
        assert!(!rig.task().is_idle());
        assert_eq!(rig.wait_out().len(), 2);
        rig.settle(0);
        let letter = rig.letters().remove(0);
        assert_eq!((&letter["pelton-attempts"], &letter["pelton-verdict"]), (&"3".to_owned(), &"exhausted".to_owned()));
        assert_eq!(letter["pelton-first-failure"], start, "the first failure was in another life");
        assert_eq!((rig.values("out"), rig.task().is_idle()), (vec!["a1".to_owned(), "b2".to_owned()], true));
    }
}

#[test]
fn a_restart_without_a_commit_forgets_what_was_not_committed_only() {
    let mut rig = Rig::set(&RECORDS, three);
    rig.settle(0);
    wait_once(&mut rig);
    rig.restart(Restart::Closed);
    assert_eq!(rig.wait_out().len(), 1, "of three attempts one was committed, and the second is due already");
    rig.settle(0);
    assert_eq!(rig.letters()[0]["pelton-attempts"], "3");
}

#[test]
fn an_abort_keeps_the_count_and_the_time() {
    let mut rig = Rig::set(&RECORDS, three);
    let Step::Until(due) = rig.work() else { panic!("nothing waits") };
    rig.abort();
    assert_eq!(rig.work(), Step::Until(due), "what came before is done again, and then it waits");
    rig.commit().unwrap();
    assert_eq!(
        (rig.values("out"), remembered(&rig).map(|(offset, count, _)| (offset, count))),
        (vec!["a1".into()], Some((1, 1)))
    );
    rig.wait_out();
    rig.settle(0);
    assert_eq!(rig.letters()[0]["pelton-attempts"], "3", "the abort was no attempt");
}

#[test]
fn a_lost_answer_of_a_commit_of_attempts_alone_is_told_by_them() {
    for committed in [true, false] {
        let mut rig = Rig::set(&RECORDS, three);
        rig.settle(0);
        wait_once(&mut rig);
        *rig.loss.lock().unwrap() = Some(Loss { committed });
        assert!(matches!(rig.commit(), Err(CommitError::Unknown(_))));
        assert!(rig.resolve(), "the task knows");
        assert_eq!(rig.task().has_progress(), !committed);
        rig.commit().unwrap();
        assert_eq!(remembered(&rig).map(|(offset, count, _)| (offset, count)), Some((1, 2)));
        rig.wait_out();
        rig.settle(0);
        assert_eq!((rig.buried().len(), rig.values("out")), (1, vec!["a1".into(), "b2".into()]));
    }
}
