//! Reads typed values out of one table of the file, with the defaults of the table of settings. What does not fit was reported by
//! the walk and reads as left out.

use super::schema;
use super::settings::LetterLimit;
use super::tree::{Entry, Node};
use super::value::{self, Typed};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A table of the file (or its absence) with the pattern of its settings.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    node: Option<&'a Node>,
    pattern: &'static str,
    /// Where relative paths start.
    folder: &'a Path,
}

impl<'a> Section<'a> {
    pub(super) fn new(node: Option<&'a Node>, pattern: &'static str, folder: &'a Path) -> Self {
        Section { node, pattern, folder }
    }

    /// The table `key` in this one, whose settings stand under `pattern`.
    pub(super) fn section(&self, key: &str, pattern: &'static str) -> Section<'a> {
        Section { node: self.get(key).map(|e| &e.node), pattern, folder: self.folder }
    }

    pub(super) fn entries(&self) -> &'a [Entry] {
        self.node.and_then(Node::table).unwrap_or_default()
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Entry> {
        self.node?.get(key)
    }

    pub(super) fn text(&self, key: &str) -> String {
        self.optional_text(key).unwrap_or_default()
    }

    pub(super) fn optional_text(&self, key: &str) -> Option<String> {
        match self.typed(key)? {
            Typed::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn path(&self, key: &str) -> PathBuf {
        self.folder.join(self.text(key))
    }

    pub(super) fn switch(&self, key: &str) -> bool {
        matches!(self.typed(key), Some(Typed::Switch(true)))
    }

    pub(super) fn integer(&self, key: &str) -> Option<i64> {
        match self.typed(key)? {
            Typed::Integer(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn factor(&self, key: &str) -> f64 {
        match self.typed(key) {
            Some(Typed::Factor(factor)) => factor,
            _ => 1.0,
        }
    }

    pub(super) fn letter_limit(&self, key: &str) -> Option<LetterLimit> {
        match self.typed(key)? {
            Typed::LetterLimit(limit) => Some(limit),
            _ => None,
        }
    }

    pub(super) fn duration(&self, key: &str) -> Duration {
        match self.typed(key) {
            Some(Typed::Duration(duration)) => duration,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn size(&self, key: &str) -> u64 {
        match self.typed(key) {
            Some(Typed::Size(size)) => size,
            _ => 0,
        }
    }

    fn typed(&self, key: &str) -> Option<Typed> {
        let setting = schema::find(&schema::child(self.pattern, key)?)?;
        let written = self.get(key).and_then(|entry| value::interpret(setting, &entry.node).ok());
        written.or_else(|| value::default(setting))
    }
}
