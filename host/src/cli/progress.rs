//! Progress of long work, on a terminal only.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A counter of records with a rate. Hidden where nobody looks; gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// `what` is being done, as "reading orders"; `total` where it is known.
    pub(super) fn new(what: String, total: Option<u64>) -> Self {
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
        Progress { bar }
    }

    /// Nothing at all, for output that is itself progress.
    pub(super) fn none() -> Self {
        Progress { bar: ProgressBar::hidden() }
    }

    /// As many more are done.
    pub(super) fn add(&self, records: u64) {
        self.bar.inc(records);
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
