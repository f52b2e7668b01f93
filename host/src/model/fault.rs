//! Every error of every room is a fault with a verdict. Code decides by the verdict (and sometimes the code), never by the message.

use std::fmt;

/// What a fault means for those above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// One record is to blame: policy decides, then the dead-letter topic.
    Record,
    /// May pass: back off and do the same again.
    Transient,
    /// The producer's identity is gone: new producer, rewind its tasks. Says nothing about partitions.
    Fenced,
    /// A store disagrees with its changelog: rebuild that store.
    Corrupt,
    /// Only a person can help: exit with the reason.
    Fatal,
}

/// An error: the verdict, a stable code, what was attempted on which object, and what to do about it.
///
/// Messages are lower case without a full stop; the hint stands apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub verdict: Verdict,
    /// Stable and documented, such as `topic-missing`; safe to match and to count.
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(verdict: Verdict, code: &'static str, message: impl Into<String>) -> Self {
        Fault { verdict, code, message: message.into(), hint: None }
    }

    pub fn record(code: &'static str, message: impl Into<String>) -> Self {
        Fault::new(Verdict::Record, code, message)
    }

    pub fn transient(code: &'static str, message: impl Into<String>) -> Self {
        Fault::new(Verdict::Transient, code, message)
    }

    pub fn fenced(code: &'static str, message: impl Into<String>) -> Self {
        Fault::new(Verdict::Fenced, code, message)
    }

    pub fn corrupt(code: &'static str, message: impl Into<String>) -> Self {
        Fault::new(Verdict::Corrupt, code, message)
    }

    pub fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Fault::new(Verdict::Fatal, code, message)
    }

    /// Adds what the reader should do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what was being done when this fault came up: `context: message`.
    pub fn during(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
