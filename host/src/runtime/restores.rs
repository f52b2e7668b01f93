//! How far the restores of this host are, all tasks together, for whoever shows it.

use crate::changelog::Progress;
use crate::model::TaskId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Shown how far restores are: the sum while anything restores, else `None`.
pub type ShowRestore = Box<dyn Fn(Option<RestoreProgress>) + Send + Sync>;

/// Restores under way.
pub struct Restores {
    show: Option<ShowRestore>,
    tasks: Mutex<BTreeMap<TaskId, Progress>>,
}

/// The sum over all tasks that are restoring.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RestoreProgress {
    pub tasks: usize,
    /// Changelog offsets passed, and to pass.
    pub done: u64,
    pub target: u64,
    pub records_per_second: f64,
}

impl Restores {
    /// `show` is called from the supervisor at its pace.
    pub fn new(show: Option<ShowRestore>) -> Restores {
        Restores { show, tasks: Mutex::default() }
    }

    pub fn report(&self, task: &TaskId, progress: Progress) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(task.clone(), progress);
    }

    pub fn done(&self, task: &TaskId) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }

    /// How far the restore of a task is, while there is one.
    pub fn of(&self, task: &TaskId) -> Option<Progress> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).get(task).copied()
    }

    /// How many tasks of a processor are restoring, and how many offsets they have still to pass.
    pub fn left(&self, processor: &str) -> (usize, u64) {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let own = tasks.iter().filter(|(task, _)| &*task.processor == processor);
        own.fold((0, 0), |(tasks, left), (_, p)| (tasks + 1, left + p.target.saturating_sub(p.done)))
    }

    pub fn show(&self) {
        if let Some(show) = &self.show {
            show(self.sum());
        }
    }

    fn sum(&self) -> Option<RestoreProgress> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = RestoreProgress { tasks: tasks.len(), ..RestoreProgress::default() };
        for progress in tasks.values() {
            sum.done += progress.done;
            sum.target += progress.target;
            sum.records_per_second += progress.records_per_second;
        }
        (sum.tasks > 0).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn task(partition: i32) -> TaskId {
        TaskId { processor: "p".into(), partition }
    }

    fn progress(done: u64) -> Progress {
        Progress { done, target: 100, records: done, records_per_second: 10.0 }
    }

    #[test]
    fn the_sum_is_shown_while_anything_restores() {
        let shown: Arc<Mutex<Vec<Option<RestoreProgress>>>> = Arc::default();
        let to = shown.clone();
        let restores = Restores::new(Some(Box::new(move |sum| to.lock().unwrap().push(sum))));
        restores.show();
        restores.report(&task(0), progress(5));
        restores.report(&task(1), progress(7));
        restores.report(&task(0), progress(30));
        restores.show();
        assert_eq!((restores.left("p"), restores.left("q")), ((2, 70 + 93), (0, 0)));
        restores.done(&task(0));
        restores.show();
        restores.done(&task(1));
        restores.show();
        let sum = |tasks, done, target| {
            Some(RestoreProgress { tasks, done, target, records_per_second: 10.0 * tasks as f64 })
        };
        assert_eq!(restores.left("p"), (0, 0));
        assert_eq!(*shown.lock().unwrap(), [None, sum(2, 37, 200), sum(1, 7, 100), None]);
    }
}
