//! What outsiders may see of a worker's tasks: looks that it serves between two turns, and what it left behind at its last one.

use super::{Command, Handle, Worker};
use crate::model::Clock;
use crate::task::{Seen, Task};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Looks at the tasks of a worker, on its thread: short, and without a wait.
pub(super) type Look = Box<dyn FnOnce(&[Task]) + Send>;

/// A worker's tasks, and when they were like that on the monotonic clock.
pub(in crate::runtime) type Sight = (Duration, Arc<Vec<Seen>>);

impl Handle {
    /// Lets `look` see the worker's tasks between two turns. What it makes of them comes back, or nothing where the worker has ended.
    /// How long that is waited for is the asker's business: a worker may be silent.
    pub(in crate::runtime) fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&[Task]) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (done, answer) = channel();
        let look: Look = Box::new(move |tasks| drop(done.send(look(tasks))));
        // not work: who asks whether the worker is idle is not misled by it
        let _ = self.inner.commands.send(Command::Look(look));
        self.wake();
        answer
    }

    /// What the worker saw of its tasks when it last looked, once a second.
    pub(in crate::runtime) fn last_sight(&self) -> Sight {
        self.inner.sight.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Worker {
    /// Leaves behind what can be seen, for whoever asks while the worker is silent.
    pub(super) fn leave_sight(&self) {
        let sight = (self.shared.clock.monotonic(), Arc::new(self.tasks.iter().map(Task::seen).collect()));
        *self.handle.inner.sight.lock().unwrap_or_else(PoisonError::into_inner) = sight;
    }
}
