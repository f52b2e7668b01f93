//! The table of failure codes and what is done about each. Plugins make up codes, so any name is taken; what is done is one of three.

use super::errors::{Collector, Wrong};
use super::properties::flat;
use super::settings::Action;
use super::tree::{Entry, Node, Value};
use super::{value, walk};
use std::collections::BTreeMap;

/// What may be done, as it is written.
const ACTIONS: [(&str, Action); 3] =
    [("retry", Action::Retry), ("dead-letter", Action::DeadLetter), ("stop", Action::Stop)];

/// Codes of what the log refuses: it would refuse the same again.
const NEVER_AGAIN: [&str; 5] =
    ["output-too-large", "output-timestamp-refused", "output-refused", "state-too-large", "host-crash"];

/// Checks what is done about each code.
pub(super) fn check(table: &[Entry], path: &str, mistakes: &mut Collector) {
    for (code, entry) in flat(table, "") {
        if let Some(wrong) = problem(&code, &entry.node) {
            mistakes.add(entry.at, &walk::join(path, &code), wrong);
        }
    }
}

/// Codes with what is done about them. What does not fit was reported, and is left out.
pub(super) fn read(table: Option<&[Entry]>) -> BTreeMap<String, Action> {
    let found = flat(table.unwrap_or_default(), "");
    found.into_iter().filter_map(|(code, entry)| Some((code, action(&entry.node)?))).collect()
}

fn problem(code: &str, node: &Node) -> Option<Wrong> {
    let words = ACTIONS.map(|(word, _)| word);
    let text = match &node.value {
        Value::Text { text, .. } => text,
        Value::Unresolved => return None,
        _ => {
            let message = format!("must be text in double quotes, not {}", node.kind());
            return Some(Wrong::wrong_type(message, "write \"retry\" or \"dead-letter\" or \"stop\""));
        }
    };
    if text == "retry" && NEVER_AGAIN.contains(&code) {
        let message = "cannot be retried: it would fail in the same way again";
        return Some(Wrong::new("conflict", message, "write \"dead-letter\" or \"stop\""));
    }
    value::choice(text, &words).err()
}

fn action(node: &Node) -> Option<Action> {
    let Value::Text { text, .. } = &node.value else { return None };
    ACTIONS.iter().find(|(word, _)| word == text).map(|(_, action)| *action)
}
