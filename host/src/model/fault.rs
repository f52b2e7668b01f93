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

    /// Says what was being done when this fault came up: `context: message`. What both begin with is said once.
    pub fn during(mut self, context: impl fmt::Display) -> Self {
        let context = context.to_string();
        let subject = context.split_once(": ").map_or(&*context, |(subject, _)| subject);
        self.message = format!("{context}: {}", without(&self.message, subject));
        self
    }
}

/// What stands behind `subject: `, or the whole text where it begins otherwise.
pub fn without<'a>(text: &'a str, subject: &str) -> &'a str {
    text.strip_prefix(subject).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_named_once() {
        let during = |context, message| Fault::fatal("code", message).during(context).message;
        assert_eq!(during("task p/0: opening", "task p/0: it is full"), "task p/0: opening: it is full");
        assert_eq!(during("processor p", "processor p: it is full"), "processor p: it is full");
        assert_eq!(during("task p/1: opening", "task p/11: it is full"), "task p/1: opening: task p/11: it is full");
        assert_eq!(during("task p/0", "it is full"), "task p/0: it is full");
    }
}
