//! A record's failure: what happened, and what the host should do with the record.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use pelton_bindings_transform::pelton::plugin::types::Failure;

/// What handling a record ends with.
pub type Outcome = Result<(), Error>;

/// What the host should do with a record that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The record will never work. It has no effects, the call goes on with the next one.
    Reject,
    /// The record may work later. The call ends here; the host tries again by the application's policy.
    Retry,
    /// Nothing may go on, from this record on, before a person has looked.
    Stop,
}

/// Why a record failed. `?` on any [`std::error::Error`] makes a reject with code `error`.
///
/// It is no `std::error::Error` itself, so that the conversion can exist.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    verdict: Verdict,
    code: Cow<'static, str>,
    message: String,
    retry_after: Option<Duration>,
    details: Vec<(String, String)>,
}

impl Error {
    /// The record will never work. `code` is a short stable word for dead letters and metrics, such as `unknown-currency`.
    pub fn reject(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Verdict::Reject, code.into(), message.into())
    }

    /// The record may work later.
    pub fn retry(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Verdict::Retry, code.into(), message.into())
    }

    /// The stream must not go on before a person has looked.
    pub fn stop(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(Verdict::Stop, code.into(), message.into())
    }

    /// Asks for the retry not before `wait` has passed (whole milliseconds; only meaningful for a retry).
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds a name and a value that travel with the failure, for example into a dead letter.
    #[must_use]
    pub fn detail(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.0.details.push((name.into(), value.to_string()));
        self
    }

    /// Turns the failure into another kind: `parse(bytes).map_err(|e| Error::from(e).into_stop())`.
    #[must_use]
    pub fn into_stop(mut self) -> Self {
        self.0.verdict = Verdict::Stop;
        self
    }

    /// What the host should do with the record.
    pub fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    /// The stable word for this failure.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What happened, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    fn new(verdict: Verdict, code: Cow<'static, str>, message: String) -> Self {
        Self(Box::new(Inner { verdict, code, message, retry_after: None, details: Vec::new() }))
    }

    pub(crate) fn into_failure(self) -> Failure {
        let inner = *self.0;
        Failure {
            code: inner.code.into_owned(),
            message: inner.message,
            retry_after_ms: inner.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            details: inner.details,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::reject("error", chain(&error)).detail("type", std::any::type_name::<E>())
    }
}

/// An error with what caused it, outermost first.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors already print their cause.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
