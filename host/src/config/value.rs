//! What a written value means for a setting of a given kind, or why it cannot be one.

use super::errors::Wrong;
use super::names::topic_problem;
use super::schema::{Fallback, Kind, Setting};
use super::settings::LetterLimit;
use super::tree::{Node, Value};
use super::unknown::nearest;
use super::{properties, units};
use std::time::Duration;

/// A value that fits its setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Typed {
    Text(String),
    Integer(i64),
    Factor(f64),
    Switch(bool),
    Duration(Duration),
    Size(u64),
    LetterLimit(LetterLimit),
    /// A table, which is read elsewhere.
    Table,
}

/// The value of a setting as written in `node`.
pub(super) fn interpret(setting: &Setting, node: &Node) -> Result<Typed, Wrong> {
    match setting.kind {
        Kind::Text => text(setting, node).and_then(filled),
        Kind::Path => text(setting, node).and_then(filled),
        Kind::Name | Kind::Topic | Kind::TopicOrTable => text(setting, node).and_then(|t| name(&t)),
        Kind::Choice(words) => text(setting, node).and_then(|t| choice(&t, words)),
        Kind::Switch => switch(setting, node),
        Kind::Integer { min, max } => integer(setting, node, min, max),
        Kind::Factor { min, max } => factor(setting, node, min, max),
        Kind::Duration { min, max } => duration(setting, node, min, max),
        Kind::Size { min, max } => size(setting, node, min, max),
        Kind::LetterLimit => letter_limit(setting, node),
        Kind::ClientProperties | Kind::StoreProperties | Kind::TopicProperties | Kind::Codes | Kind::Free => {
            match node.value {
                Value::Table(_) => Ok(Typed::Table),
                _ => Err(expected(setting, node, "a table")),
            }
        }
    }
}

/// What stands for a setting that was left out; `None` where nothing does.
pub(super) fn default(setting: &Setting) -> Option<Typed> {
    let Fallback::Value(written) = setting.fallback else { return None };
    let value = match setting.kind {
        Kind::Integer { .. } => Value::Integer(written.parse().ok()?),
        Kind::Factor { .. } => Value::Float(written.parse().ok()?),
        Kind::Switch => Value::Switch(written.parse().ok()?),
        _ => Value::Text { text: written.to_owned(), secret: false },
    };
    interpret(setting, &Node { at: 0, value }).ok()
}

fn text(setting: &Setting, node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text { text, .. } => Ok(text.clone()),
        _ => Err(expected(setting, node, "text in double quotes")),
    }
}

fn filled(text: String) -> Result<Typed, Wrong> {
    match text.trim().is_empty() {
        true => {
            Err(Wrong::new("out-of-range", "is empty", "write a value, or leave the key out where it has a default"))
        }
        false => Ok(Typed::Text(text)),
    }
}

fn name(text: &str) -> Result<Typed, Wrong> {
    match topic_problem(text) {
        Some(problem) => Err(Wrong::new("invalid-name", problem, "it becomes the name of a topic, or a part of one")),
        None => Ok(Typed::Text(text.to_owned())),
    }
}

pub(super) fn choice(text: &str, words: &[&str]) -> Result<Typed, Wrong> {
    if words.contains(&text) {
        return Ok(Typed::Text(text.to_owned()));
    }
    let all = words.iter().map(|w| format!("{w:?}")).collect::<Vec<_>>().join(" or ");
    let hint = match nearest(text, words.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? it is {all}"),
        None => format!("write {all}"),
    };
    Err(Wrong::new("out-of-range", "is none of the known words", hint))
}

fn switch(setting: &Setting, node: &Node) -> Result<Typed, Wrong> {
    match node.value {
        Value::Switch(on) => Ok(Typed::Switch(on)),
        _ => Err(expected(setting, node, "true or false, without quotes")),
    }
}

fn integer(setting: &Setting, node: &Node, min: i64, max: i64) -> Result<Typed, Wrong> {
    match node.value {
        Value::Integer(n) if (min..=max).contains(&n) => Ok(Typed::Integer(n)),
        Value::Integer(n) => Err(out_of_range(&n.to_string(), &min.to_string(), &max.to_string())),
        Value::Huge(ref n) => Err(out_of_range(n, &min.to_string(), &max.to_string())),
        _ => Err(expected(setting, node, "a whole number, without quotes")),
    }
}

fn factor(setting: &Setting, node: &Node, min: i64, max: i64) -> Result<Typed, Wrong> {
    let number = match node.value {
        Value::Integer(n) => n as f64,
        Value::Float(n) => n,
        Value::Huge(ref n) => return Err(out_of_range(n, &min.to_string(), &max.to_string())),
        _ => return Err(expected(setting, node, "a number, without quotes")),
    };
    match (min as f64..=max as f64).contains(&number) {
        true => Ok(Typed::Factor(number)),
        false => Err(out_of_range(&number.to_string(), &min.to_string(), &max.to_string())),
    }
}

fn letter_limit(setting: &Setting, node: &Node) -> Result<Typed, Wrong> {
    let what = "a share (\"20%\") or a rate (\"10/s\", \"100/m\", \"5/h\") in double quotes";
    let Value::Text { text, .. } = &node.value else { return Err(expected(setting, node, what)) };
    if let Some((count, per)) = units::parse_rate(text) {
        return Ok(Typed::LetterLimit(LetterLimit::Rate { count, per }));
    }
    match units::parse_percent(text) {
        Some(percent) if (0.1..=99.9).contains(&percent) => Ok(Typed::LetterLimit(LetterLimit::Share(percent / 100.0))),
        Some(percent) => Err(out_of_range(&format!("{percent}%"), "0.1%", "99.9%")),
        None => Err(unit_missing(setting, None, what)),
    }
}

fn duration(setting: &Setting, node: &Node, min: &str, max: &str) -> Result<Typed, Wrong> {
    let what = "a duration with its unit (ms, s, m or h) in double quotes";
    let Value::Text { text, secret } = &node.value else { return Err(expected(setting, node, what)) };
    let Some(duration) = units::parse_duration(text) else {
        return Err(unit_missing(setting, units::mend_duration(text).filter(|_| !secret), what));
    };
    let fits = units::parse_duration(min) <= Some(duration) && Some(duration) <= units::parse_duration(max);
    if fits { Ok(Typed::Duration(duration)) } else { Err(out_of_range(&units::show_duration(duration), min, max)) }
}

fn size(setting: &Setting, node: &Node, min: &str, max: &str) -> Result<Typed, Wrong> {
    let what = "a size with its unit (KiB, MiB, GiB, or KB, MB, GB) in double quotes";
    let Value::Text { text, secret } = &node.value else { return Err(expected(setting, node, what)) };
    let Some(size) = units::parse_size(text) else {
        return Err(unit_missing(setting, units::mend_size(text).filter(|_| !secret), what));
    };
    let fits = units::parse_size(min) <= Some(size) && Some(size) <= units::parse_size(max);
    if fits { Ok(Typed::Size(size)) } else { Err(out_of_range(&units::show_size(size), min, max)) }
}

fn out_of_range(value: &str, min: &str, max: &str) -> Wrong {
    Wrong::new(
        "out-of-range",
        format!("is {value}, which is out of range"),
        format!("it is at least {min} and at most {max}"),
    )
}

fn unit_missing(setting: &Setting, meant: Option<String>, what: &str) -> Wrong {
    let hint = match meant {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("write it as {} = {}", super::schema::split(setting.path).1, setting.example),
    };
    Wrong::wrong_type(format!("must be {what}"), hint)
}

fn expected(setting: &Setting, node: &Node, what: &str) -> Wrong {
    let key = super::schema::split(setting.path).1;
    let mended = mended(setting.kind, node).unwrap_or_else(|| setting.example.to_owned());
    Wrong::wrong_type(format!("must be {what}, not {}", node.kind()), format!("write it as {key} = {mended}"))
}

/// The value that was probably meant, as it should be written.
fn mended(kind: Kind, node: &Node) -> Option<String> {
    match (kind, &node.value) {
        (Kind::Integer { .. }, Value::Text { text, secret: false }) => text.parse::<i64>().ok().map(|n| n.to_string()),
        (Kind::Factor { .. }, Value::Text { text, secret: false }) => text.parse::<f64>().ok().map(|n| n.to_string()),
        (Kind::Switch, Value::Text { text, secret: false }) => text.parse::<bool>().ok().map(|b| b.to_string()),
        (Kind::Duration { .. }, Value::Integer(n)) => Some(format!("\"{n}s\" (or \"{n}ms\")")),
        (Kind::Size { .. }, Value::Integer(n)) => Some(format!("\"{n}MiB\" (or \"{n}B\")")),
        (Kind::Text | Kind::Name | Kind::Topic | Kind::TopicOrTable, _) => {
            properties::scalar(node).map(|text| format!("{text:?}"))
        }
        _ => None,
    }
}
