//! Slots, and what a worker's handle says; a handle without a worker for the tests of its neighbours.

use super::*;

/// A handle whose commands nobody takes but the test.
pub(in crate::runtime) struct Detached {
    pub(in crate::runtime) handle: Handle,
    commands: Receiver<Command>,
}

impl Detached {
    pub(in crate::runtime) fn new() -> Detached {
        let (commands, receiver) = channel();
        let handle = Handle::new(commands);
        handle.inner.busy.store(0, Ordering::SeqCst);
        Detached { handle, commands: receiver }
    }

    /// The tasks that were added since the last look.
    pub(in crate::runtime) fn added(&self) -> Vec<TaskId> {
        let task = |command| match command {
            Command::Add(opened) => Some(opened.parts.id),
            _ => None,
        };
        self.commands.try_iter().filter_map(task).collect()
    }
}

#[test]
fn a_new_task_gets_the_lowest_slot_that_is_free() {
    for (taken, free) in [(&[][..], 0), (&[0], 1), (&[1, 2], 0), (&[2, 0, 1], 3), (&[0, 3, 1], 2)] {
        assert_eq!(lowest_free(taken), free, "{taken:?}");
    }
}

#[test]
fn a_worker_with_unread_commands_is_not_idle() {
    let worker = Detached::new();
    assert!(worker.handle.is_idle());
    worker.handle.stop();
    assert!(!worker.handle.is_idle());
}

#[test]
fn a_worker_that_has_ended_owes_no_answer() {
    let Detached { handle, commands } = Detached::new();
    drop(commands);
    assert!(handle.release(Vec::new()).recv().is_err());
    assert!(handle.drop_tasks(Vec::new()).recv().is_err());
}

#[test]
fn the_beat_is_the_moment_of_the_last_turn() {
    let worker = Detached::new();
    worker.handle.stamp(Duration::from_millis(1234));
    assert_eq!(worker.handle.last_turn(), Duration::from_millis(1234));
}
