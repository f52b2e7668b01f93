//! A job is opened, handed over or cancelled: its sources are in one place at any time, and whoever asks for them is answered.

use super::*;
use crate::runtime::worker::tests::Detached;
use crate::task::tests::rig::{Rig, id};
use std::sync::mpsc::TryRecvError;

/// A rig taken apart: what a task is made of, and a job for it.
struct Stage {
    rig: Rig,
    worker: Detached,
    job: Job,
    opened: Option<Opened>,
}

impl Stage {
    fn new() -> Stage {
        let mut rig = Rig::new(&[("k", "a")]);
        let parts = rig.take_apart();
        let worker = Detached::new();
        let source = rig.log_reader();
        let owner = (parts.group.clone(), parts.lease.clone());
        let job = Job::new(id(), parts.spec.clone(), owner, (vec![source], worker.handle.clone()), false);
        let dead_letters = rig.info("dead");
        let opened = Some(Opened { parts, outputs: Vec::new(), changelogs: Vec::new(), dead_letters });
        Stage { rig, worker, job, opened }
    }
}

#[test]
fn cancelling_a_queued_job_is_answered_at_once() {
    let stage = Stage::new();
    let answer = stage.job.cancel();
    assert_eq!(answer.try_recv().unwrap().len(), 1, "its sources");
    assert!(stage.job.is_finished());
    assert!(stage.job.take_sources().is_none(), "an opener that takes it from the queue finds nothing to do");
    assert_eq!(stage.worker.added(), []);
}

#[test]
fn cancelling_a_job_at_work_is_answered_when_it_gives_up() {
    let stage = Stage::new();
    let sources = stage.job.take_sources().unwrap();
    let answer = stage.job.cancel();
    assert_eq!(answer.try_recv().err(), Some(TryRecvError::Empty));
    assert!(stage.job.is_cancelled() && !stage.job.is_finished());
    stage.job.finish(None, sources);
    assert_eq!(answer.try_recv().unwrap().len(), 1);
    assert!(stage.job.is_finished());
}

#[test]
fn a_task_that_was_opened_too_late_is_closed_and_not_handed_over() {
    let mut stage = Stage::new();
    drop(stage.job.take_sources());
    let answer = stage.job.cancel();
    stage.job.finish(stage.opened.take(), Vec::new());
    assert_eq!(answer.try_recv().unwrap().len(), 1);
    assert_eq!(stage.worker.added(), []);
    // its stores are closed: the next owner can open them
    drop(stage.rig.parts(stage.rig.spec(), vec![stage.rig.log_reader()]));
}

#[test]
fn a_task_that_was_opened_is_its_workers_and_cancelling_has_nothing_to_give() {
    let mut stage = Stage::new();
    drop(stage.job.take_sources());
    stage.job.finish(stage.opened.take(), Vec::new());
    assert_eq!(stage.worker.added(), [id()]);
    assert!(!stage.worker.handle.is_idle());
    let answer = stage.job.cancel();
    assert_eq!(answer.try_recv().err(), Some(TryRecvError::Disconnected));
}
