//! An application file as a tree that knows where each key and value stands. The only file that names the TOML parser.

use super::errors::{Collector, Wrong};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A value and the byte at which it starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub at: usize,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `secret`: some of it came from the environment, so it is never shown.
    Text {
        text: String,
        secret: bool,
    },
    Integer(i64),
    /// A text whose variables are not all known: reported already, so nothing more is said of it.
    Unresolved,
    /// An integer beyond 64 bits, as written.
    Huge(String),
    Float(f64),
    Switch(bool),
    Date(String),
    List(Vec<Node>),
    /// In file order.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    /// The byte at which the key starts.
    pub at: usize,
    pub node: Node,
}

/// Reads a text. `None` where it is not TOML beyond a repeated key: what was recovered would only mislead.
pub(super) fn read(text: &str, mistakes: &mut Collector) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let root = Node { at: 0, value: Value::Table(entries(table.get_ref())) };
    let mut readable = true;
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        match duplicate(text, &error, &root, mistakes) {
            Some((path, wrong)) => mistakes.add(at, &path, wrong),
            None => {
                readable = false;
                let hint = "mend the TOML here; values that are text stand in double quotes";
                mistakes.add(at, "", Wrong::new("syntax", format!("not valid TOML: {}", error.message()), hint));
            }
        }
    }
    readable.then_some(root)
}

impl Node {
    pub(super) fn table(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.table()?.iter().find(|e| e.key == key)
    }

    /// What the value is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text { .. } | Value::Unresolved => "text",
            Value::Integer(_) | Value::Huge(_) => "a whole number",
            Value::Float(_) => "a decimal number",
            Value::Switch(_) => "true or false",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    let entry = |(key, value): (&Spanned<_>, &_)| Entry { key: name(key), at: key.span().start, node: node(value) };
    let mut entries: Vec<Entry> = table.iter().map(entry).collect();
    entries.sort_by_key(|e| e.at);
    entries
}

fn name(key: &Spanned<std::borrow::Cow<'_, str>>) -> String {
    key.get_ref().to_string()
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text { text: text.to_string(), secret: false },
        DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
            Ok(n) => Value::Integer(n),
            Err(_) => Value::Huge(n.to_string()),
        },
        DeValue::Float(n) => Value::Float(n.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Value::Switch(*b),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(list) => Value::List(nodes(list)),
        DeValue::Table(table) => Value::Table(entries(table)),
    };
    Node { at, value }
}

fn nodes(list: &DeArray<'_>) -> Vec<Node> {
    list.iter().map(node).collect()
}

/// The parser's word for a repeated key or section; it has no code for it.
const DUPLICATE: &str = "duplicate key";

fn duplicate(text: &str, error: &toml::de::Error, root: &Node, mistakes: &Collector) -> Option<(String, Wrong)> {
    let span = error.span().filter(|_| error.message() == DUPLICATE)?;
    let path = written_path(text, span.start, span.end);
    let first = first_header(text, &path).or_else(|| first_place(root, &path).map(|at| mistakes.place(at).0));
    let hint = match first {
        Some(line) => format!("it stands on line {line} already: remove one of the two"),
        None => "remove one of the two".to_owned(),
    };
    Some((path, Wrong::new("duplicate-key", "is set twice", hint)))
}

/// The full path of the key at `start..end`, from the header above it and the dotted key it stands in.
fn written_path(text: &str, start: usize, end: usize) -> String {
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line = text[line_start..end].trim_start();
    let own = line.trim_start_matches('[');
    if own.len() < line.len() {
        return own.to_owned();
    }
    let header = text[..line_start].lines().rev().map(str::trim).find(|l| l.starts_with('['));
    let header = header.map_or("", |l| l.trim_matches(|c| c == '[' || c == ']'));
    let own = own.split_once('=').map_or(own.to_owned(), |(key, _)| format!("{}.{}", key.trim(), &text[start..end]));
    if header.is_empty() { own } else { format!("{header}.{own}") }
}

/// The line (from 1) of a section's first header. The tree does not say: a repeated section takes the place of the first.
fn first_header(text: &str, path: &str) -> Option<usize> {
    let header = format!("[{path}]");
    text.lines().position(|line| line.trim_start().starts_with(&header)).map(|i| i + 1)
}

fn first_place(root: &Node, path: &str) -> Option<usize> {
    let mut node = root;
    let mut at = None;
    for segment in path.split('.') {
        let node_here = node.list().and_then(<[Node]>::last).unwrap_or(node);
        let entry = node_here.get(segment.trim_matches('"'))?;
        (node, at) = (&entry.node, Some(entry.at));
    }
    at
}
