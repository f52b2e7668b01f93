//! Progress of long work, on a terminal only.

use crate::runtime::RestoreProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The bar of all restores together; there only while anything restores.
#[derive(Default)]
pub(super) struct RestoreBar {
    bar: Mutex<Option<ProgressBar>>,
}

impl RestoreBar {
    pub(super) fn show(&self, progress: Option<RestoreProgress>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            Some(now) => {
                let bar = bar.get_or_insert_with(|| Progress::bar("restoring".to_owned(), Some(now.target)));
                bar.set_length(now.target);
                bar.set_position(now.done);
                bar.set_message(format!("restoring {} tasks, {:.0} records/s", now.tasks, now.records_per_second));
            }
            None => drop(bar.take().inspect(ProgressBar::finish_and_clear)),
        }
    }
}

/// A counter of records with a rate. Hidden where nobody looks; gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `what` is being done, as "reading orders"; `total` where it is known.
    pub(super) fn new(what: String, total: Option<u64>) -> Self {
        Progress { bar: Progress::bar(what, total) }
    }

    fn bar(what: String, total: Option<u64>) -> ProgressBar {
        let target =
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(total, target);
        let form = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
            None => "{spinner} {msg} {human_pos} records, {per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar
    }

    /// Nothing at all, for output that is itself progress.
    pub(super) fn none() -> Self {
        Progress { bar: ProgressBar::hidden() }
    }

    /// As many more are done.
    pub(super) fn add(&self, records: u64) {
        self.bar.inc(records);
    }

    /// Lets `print` write to the terminal above the bar.
    pub(super) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Something that takes long without counting.
    pub(super) fn tick(&self) {
        // it would start a thread even for a bar that nobody sees
        if !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
