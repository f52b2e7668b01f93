//! What a guest says, on its way to the host's log: bounded in size and in lines per second, and marked when it is said again.

use crate::metrics::PluginMetrics;
use crate::model::TaskId;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest message, in bytes; more is cut.
const MESSAGE_BYTES: usize = 16 << 10;
/// Most fields of a line; more are left out.
const FIELDS: usize = 64;
/// Longest field name or value, in bytes; more is cut.
const FIELD_BYTES: usize = 1 << 10;

/// Where the lines of a task's guest go.
pub trait GuestLog: Send + Sync {
    fn line(&self, line: &GuestLine<'_>);

    /// A line is left out: for whoever counts. It is told of with the others of its second.
    fn dropped(&self) {}

    /// So many lines were left out since the last line that was not.
    fn suppressed(&self, lines: u64);
}

/// Hands a task's lines to the host's own log.
#[derive(Clone)]
pub struct Traced {
    pub task: TaskId,
    pub metrics: PluginMetrics,
}

/// One line of a guest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuestLine<'a> {
    pub level: Level,
    pub message: &'a str,
    pub fields: &'a [(String, String)],
    /// Of the record that it is about, or of the first one of the batch that the guest was at.
    pub offset: Option<i64>,
    /// Said while records are run again after a fault, so perhaps for the second time.
    pub rerun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// The way of one task's lines into its log; outlives its instances.
pub(super) struct Gate {
    log: Arc<dyn GuestLog>,
    per_second: u32,
    window: Mutex<Window>,
    /// Monotonic nanoseconds, as of the last poll.
    now: AtomicU64,
    rerun: AtomicBool,
}

#[derive(Default)]
struct Window {
    start: Duration,
    written: u32,
    suppressed: u64,
}

impl GuestLog for Traced {
    fn line(&self, line: &GuestLine<'_>) {
        let GuestLine { message, fields, offset, rerun, .. } = *line;
        // what is not said is not shown
        let fields = (!fields.is_empty()).then(|| tracing::field::display(Fields(fields)));
        let (TaskId { processor, partition }, rerun) = (&self.task, rerun.then_some(true));
        macro_rules! say {
            ($at:ident) => {
                tracing::$at!(target: "plugin", %processor, partition, offset, rerun, fields, "{message}")
            };
        }
        match line.level {
            Level::Trace => say!(trace),
            Level::Debug => say!(debug),
            Level::Info => say!(info),
            Level::Warn => say!(warn),
            Level::Error => say!(error),
        }
    }

    fn dropped(&self) {
        self.metrics.log_lines_dropped(1);
    }

    fn suppressed(&self, lines: u64) {
        let TaskId { processor, partition } = &self.task;
        tracing::warn!(target: "plugin", %processor, partition, lines, "plugin logs too fast: lines were left out");
    }
}

/// As `name="value"`, with spaces between: a name that could be taken for more than one is quoted like a value.
struct Fields<'a>(&'a [(String, String)]);

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            match is_word(name) {
                true => write!(f, "{space}{name}={value:?}")?,
                false => write!(f, "{space}{name:?}={value:?}")?,
            }
        }
        Ok(())
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

impl Gate {
    pub(super) fn new(log: Arc<dyn GuestLog>, per_second: u32) -> Self {
        let window = Mutex::new(Window::default());
        Gate { log, per_second, window, now: AtomicU64::new(0), rerun: AtomicBool::new(false) }
    }

    pub(super) fn set_now(&self, now: Duration) {
        self.now.store(now.as_nanos() as u64, Relaxed);
    }

    pub(super) fn set_rerun(&self, rerun: bool) {
        self.rerun.store(rerun, Relaxed);
    }

    pub(super) fn write(
        &self,
        level: Level,
        mut message: String,
        mut fields: Vec<(String, String)>,
        offset: Option<i64>,
    ) {
        if !self.admit() {
            return;
        }
        cut(&mut message, MESSAGE_BYTES);
        fields.truncate(FIELDS);
        fields.iter_mut().for_each(|(name, value)| {
            cut(name, FIELD_BYTES);
            cut(value, FIELD_BYTES);
        });
        let rerun = self.rerun.load(Relaxed);
        self.log.line(&GuestLine { level, message: &message, fields: &fields, offset, rerun });
    }

    /// Tells what was left out, once its second is over. Called before each call, so that a guest that fell silent is told of too.
    pub(super) fn settle(&self) {
        let told = self.roll(&mut self.window());
        self.tell(told);
    }

    fn admit(&self) -> bool {
        let mut window = self.window();
        let told = self.roll(&mut window);
        let open = window.written < self.per_second;
        if open {
            window.written += 1;
        } else {
            window.suppressed += 1;
        }
        drop(window);
        self.tell(told);
        if !open {
            self.log.dropped();
        }
        open
    }

    fn tell(&self, left_out: u64) {
        if left_out > 0 {
            self.log.suppressed(left_out);
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a new second where the old one is over; returns how many lines the old one left out.
    fn roll(&self, window: &mut Window) -> u64 {
        let now = Duration::from_nanos(self.now.load(Relaxed));
        if now.saturating_sub(window.start) < Duration::from_secs(1) {
            return 0;
        }
        std::mem::replace(window, Window { start: now, ..Window::default() }).suppressed
    }
}

/// What the last second of a guest left out is told of as well.
impl Drop for Gate {
    fn drop(&mut self) {
        let left_out = self.window().suppressed;
        self.tell(left_out);
    }
}

/// Cuts `text` to at most `bytes`, at a character's border.
pub(super) fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl GuestLog for Heard {
        fn line(&self, line: &GuestLine<'_>) {
            self.0.lock().unwrap().push(format!("{}{}", line.message, if line.rerun { " again" } else { "" }));
        }

        fn dropped(&self) {
            self.0.lock().unwrap().push("-".to_owned());
        }

        fn suppressed(&self, lines: u64) {
            self.0.lock().unwrap().push(format!("-{lines}"));
        }
    }

    #[test]
    fn lines_above_the_rate_are_counted_and_told_when_their_second_is_over() {
        let heard = Arc::new(Heard::default());
        let gate = Gate::new(heard.clone(), 2);
        gate.set_now(Duration::from_secs(5));
        (0..5).for_each(|n| gate.write(Level::Info, n.to_string(), Vec::new(), None));
        gate.settle();
        assert_eq!(*heard.0.lock().unwrap(), ["0", "1", "-", "-", "-"], "counted at once");
        gate.set_now(Duration::from_secs(6));
        gate.set_rerun(true);
        gate.settle();
        gate.write(Level::Info, "5".to_owned(), Vec::new(), None);
        assert_eq!(*heard.0.lock().unwrap(), ["0", "1", "-", "-", "-", "-3", "5 again"]);
    }

    #[test]
    fn a_field_cannot_pass_for_another() {
        let fields = [("a", "1"), ("b=\"2\" c", "x\ny"), ("d\n", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(Fields(&fields).to_string(), r#"a="1" "b=\"2\" c"="x\ny" "d\n"="""#);
    }

    #[test]
    fn what_the_last_second_left_out_is_told_at_the_end() {
        let heard = Arc::new(Heard::default());
        let gate = Gate::new(heard.clone(), 1);
        (0..3).for_each(|n| gate.write(Level::Info, n.to_string(), Vec::new(), None));
        drop(gate);
        assert_eq!(*heard.0.lock().unwrap(), ["0", "-", "-", "-2"]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let mut text = "aé".to_owned();
        cut(&mut text, 2);
        assert_eq!(text, "a");
    }
}
