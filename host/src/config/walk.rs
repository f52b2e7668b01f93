//! The walk over an application file beside the table of settings: unknown names, wrong types, values out of range, what is missing.

use super::errors::{Collector, Wrong};
use super::schema::{self, Fallback, Kind, SETTINGS, Setting};
use super::tree::{Entry, Node, Value};
use super::{codes, properties, unknown, value};

/// Checks every key and value of the document.
pub(super) fn check(document: &Node, mistakes: &mut Collector) {
    Walk { mistakes }.table(document, "", "");
}

/// A key below a path, quoted where it holds a dot.
pub(super) fn join(path: &str, key: &str) -> String {
    let key = if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

struct Walk<'a> {
    mistakes: &'a mut Collector,
}

impl Walk<'_> {
    fn table(&mut self, node: &Node, pattern: &str, path: &str) {
        for entry in node.table().unwrap_or_default() {
            self.entry(entry, pattern, path);
        }
        self.missing(node, pattern, path);
    }

    fn entry(&mut self, entry: &Entry, pattern: &str, path: &str) {
        let full = join(path, &entry.key);
        let Some(child) = schema::child(pattern, &entry.key) else {
            return self.unknown(entry, pattern, &full);
        };
        let branch = schema::children(&child).next().is_some();
        match schema::find(&child) {
            Some(setting) if !(branch && entry.node.table().is_some()) => self.leaf(setting, entry, &full),
            _ if child == "processor" => self.processors(entry, &full),
            _ => self.branch(entry, &child, &full),
        }
        if child == "topics.<topic>" {
            self.topic_name(entry, &full);
        }
    }

    fn leaf(&mut self, setting: &Setting, entry: &Entry, path: &str) {
        if entry.node.value == Value::Unresolved {
            return;
        }
        if let Err(wrong) = value::interpret(setting, &entry.node) {
            return self.mistakes.add(entry.at, path, wrong);
        }
        let table = entry.node.table().unwrap_or_default();
        match setting.kind {
            Kind::ClientProperties => properties::check_client(table, path, self.mistakes),
            Kind::StoreProperties => properties::check_store(table, path, self.mistakes),
            Kind::TopicProperties => properties::check_topic(table, path, self.mistakes),
            Kind::Codes => codes::check(table, path, self.mistakes),
            Kind::Free => self.free(&entry.node, path),
            _ => {}
        }
    }

    /// JSON has no NaN and no infinity, and a plugin's `init` gets JSON.
    fn free(&mut self, node: &Node, path: &str) {
        match &node.value {
            Value::Table(entries) => entries.iter().for_each(|e| self.free(&e.node, &join(path, &e.key))),
            Value::List(nodes) => nodes.iter().for_each(|n| self.free(n, path)),
            Value::Float(n) if !n.is_finite() => {
                let wrong = Wrong::wrong_type("must be a finite number", "settings go to the plugin as JSON");
                self.mistakes.add(node.at, path, wrong);
            }
            Value::Huge(_) => {
                let wrong = Wrong::new("out-of-range", "does not fit 64 bits", "write it as text");
                self.mistakes.add(node.at, path, wrong);
            }
            _ => {}
        }
    }

    fn processors(&mut self, entry: &Entry, path: &str) {
        match entry.node.list() {
            Some(nodes) if nodes.iter().all(|n| n.table().is_some()) => {
                nodes.iter().for_each(|n| self.table(n, "processor", path));
            }
            _ => {
                let wrong = Wrong::wrong_type("must be a list of sections", "write [[processor]], with two brackets");
                self.mistakes.add(entry.at, path, wrong);
            }
        }
    }

    fn branch(&mut self, entry: &Entry, pattern: &str, path: &str) {
        if entry.node.table().is_some() {
            return self.table(&entry.node, pattern, path);
        }
        let message = format!("must be a section, not {}", entry.node.kind());
        let hint = format!("write {} and its settings below", schema::header(path));
        self.mistakes.add(entry.at, path, Wrong::wrong_type(message, hint));
    }

    fn topic_name(&mut self, entry: &Entry, path: &str) {
        if let Some(problem) = super::names::topic_problem(&entry.key) {
            let hint = "the section's name is the topic's; quote one that holds a dot: [topics.\"a.b\"]";
            self.mistakes.add(entry.at, path, Wrong::new("invalid-name", problem, hint));
        }
    }

    fn unknown(&mut self, entry: &Entry, pattern: &str, path: &str) {
        let hint = unknown::remedy(pattern, &entry.key, &dotted(entry));
        self.mistakes.add(entry.at, path, Wrong::new("unknown-key", "is not a known setting", hint));
    }

    fn missing(&mut self, node: &Node, pattern: &str, path: &str) {
        for setting in SETTINGS.iter().filter(|s| s.fallback == Fallback::Required) {
            let (section, name) = schema::split(setting.path);
            let absent = if name.starts_with('<') {
                let (above, table) = schema::split(section);
                let filled = node.get(table).is_some_and(|e| e.node.table().is_none_or(|t| !t.is_empty()));
                (above == pattern && !filled).then_some(table)
            } else if pattern.is_empty() {
                (!section.contains('.') && node.get(section).is_none()).then_some(setting.path)
            } else {
                (section == pattern && node.get(name).is_none()).then_some(name)
            };
            if let Some(name) = absent {
                self.absent(node, setting, &schema::below(path, name));
            }
        }
    }

    fn absent(&mut self, node: &Node, setting: &Setting, path: &str) {
        let (section, name) = schema::split(setting.path);
        let line = match name.starts_with('<') {
            true => "inputs.orders = \"orders\" (the plugin's input name = the topic)".to_owned(),
            false => format!("{name} = {}", setting.example),
        };
        let section = if name.starts_with('<') { schema::split(section).0 } else { section };
        let hint = format!("add {line} under {}", schema::header(section));
        self.mistakes.add(node.at, path, Wrong::new("missing-key", "is missing", hint));
    }
}

/// The key, and as long as there is exactly one key below, that too: `max.poll.interval.ms` written without quotes.
fn dotted(entry: &Entry) -> String {
    let mut name = entry.key.clone();
    let mut node = &entry.node;
    while let Some([only]) = node.table() {
        name = format!("{name}.{}", only.key);
        node = &only.node;
    }
    name
}
