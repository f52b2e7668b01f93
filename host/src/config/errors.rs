//! What is wrong with an application file: all of it, each mistake with its place, its key and its remedy.

use crate::model::Fault;
use std::fmt;
use std::path::{Path, PathBuf};

/// Every mistake of one file, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    pub file: PathBuf,
    pub mistakes: Vec<Mistake>,
}

/// One mistake. Line and column count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub column: usize,
    /// The full key path, such as `processor.limits.memory`; empty for the file as a whole.
    pub path: String,
    /// Stable: `unknown-key`, `duplicate-key`, `wrong-type`, `out-of-range`, `missing-key`, `unknown-variable`, `unknown-property`,
    /// `refused-property`, `invalid-name`, `conflict`, `syntax` or `unreadable`.
    pub code: &'static str,
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// What is wrong with a value, before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub code: &'static str,
    pub message: String,
    pub hint: String,
}

/// Collects mistakes and knows where bytes of the text stand.
pub(super) struct Collector {
    line_starts: Vec<usize>,
    text: String,
    mistakes: Vec<Mistake>,
}

impl ConfigErrors {
    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        let mistake = Mistake {
            line: 1,
            column: 1,
            path: String::new(),
            code: "unreadable",
            message: format!("cannot read the application file: {error}"),
            hint: "name an existing application file, such as examples/orders/orders.toml".to_owned(),
        };
        ConfigErrors { file: file.to_owned(), mistakes: vec![mistake] }
    }
}

impl From<ConfigErrors> for Fault {
    fn from(errors: ConfigErrors) -> Fault {
        Fault::fatal("config-invalid", errors.to_string())
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.mistakes.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{mistake}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl Wrong {
    pub(super) fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Wrong { code, message: message.into(), hint: hint.into() }
    }

    pub(super) fn wrong_type(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Wrong::new("wrong-type", message, hint)
    }
}

impl Collector {
    pub(super) fn new(text: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1);
        Collector { line_starts: std::iter::once(0).chain(starts).collect(), text: text.to_owned(), mistakes: vec![] }
    }

    /// Adds a mistake at byte `at` of the text.
    pub(super) fn add(&mut self, at: usize, path: &str, wrong: Wrong) {
        let (line, column) = self.place(at);
        let Wrong { code, message, hint } = wrong;
        self.mistakes.push(Mistake { line, column, path: path.to_owned(), code, message, hint });
    }

    /// Line and column of a byte, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&start| start <= at).max(1);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..at.min(self.text.len())).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mistakes.is_empty()
    }

    pub(super) fn finish(mut self, file: &Path) -> ConfigErrors {
        self.mistakes.sort_by_key(|m| (m.line, m.column));
        self.mistakes.dedup();
        ConfigErrors { file: file.to_owned(), mistakes: self.mistakes }
    }
}
