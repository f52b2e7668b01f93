//! `pelton dlq show`.

use super::args::ShowArgs;
use super::row::{Row, nothing};
use crate::cli::bytes::{self, one_line};
use crate::cli::line::headers;
use crate::cli::{Out, time};
use crate::delivery::reason::original;
use crate::model::HeadersRef;
use crate::model::bytes::Bytes;
use crate::runtime::letters::{Letter, Letters};
use serde::Serialize;
use std::io::Write;

/// A letter whole.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    timestamp: i64,
    stack: &'a [String],
    details: &'a [(String, String)],
    /// The record's own, in order.
    headers: Vec<(Bytes<'a>, Option<Bytes<'a>>)>,
    value: Option<Bytes<'a>>,
}

pub(super) fn show(letters: &Letters<'_>, args: &ShowArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    letters.find::<anyhow::Error>(args.place, &mut |letter| {
        let own = original(letter.record.headers);
        let own = own.iter().next().unwrap_or_default();
        if args.json { json(letter, own, out) } else { text(letters.topic(), letter, own, out) }
    })
}

fn json(letter: &Letter<'_>, own: HeadersRef<'_>, out: &mut Out<'_>) -> anyhow::Result<()> {
    let whole = Whole {
        row: Row::of(letter),
        timestamp: letter.record.timestamp,
        stack: &letter.reason.stack,
        details: &letter.reason.details,
        headers: headers(own),
        value: letter.record.value.map(Bytes::of),
    };
    Ok(writeln!(out.to, "{}", serde_json::to_string(&whole)?)?)
}

fn text(topic: &str, letter: &Letter<'_>, own: HeadersRef<'_>, out: &mut Out<'_>) -> anyhow::Result<()> {
    for (name, value) in why(topic, letter).into_iter().chain(replays(letter)) {
        field(name, &value, out.to)?;
    }
    for (name, value) in &letter.reason.details {
        field("detail", &format!("{}: {}", one_line(name), one_line(value)), out.to)?;
    }
    for frame in &letter.reason.stack {
        field("stack", &one_line(frame), out.to)?;
    }
    field("key", &bytes::show(letter.record.key), out.to)?;
    for (name, value) in own.iter() {
        field("header", &format!("{}={}", bytes::show(Some(name)), bytes::show(value)), out.to)?;
    }
    field("value", &bytes::show(letter.record.value), out.to)
}

fn field(name: &str, value: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    Ok(writeln!(out, "{name:<13} {value}")?)
}

fn why(topic: &str, letter: &Letter<'_>) -> Vec<(&'static str, String)> {
    let reason = &letter.reason;
    let moment = |ms: Option<i64>| ms.map_or_else(nothing, time::show);
    let source = format!("{}/{} offset {}", reason.topic, reason.partition, reason.offset);
    let plugin = format!("{} {} ({})", reason.plugin, reason.plugin_version, reason.plugin_digest);
    vec![
        ("place", format!("{} of {topic}", letter.place)),
        ("code", one_line(&reason.code)),
        ("verdict", one_line(&reason.verdict)),
        ("message", one_line(&reason.message)),
        ("calls", reason.attempts.map_or_else(nothing, |n| n.to_string())),
        ("first failure", moment(reason.first_failure)),
        ("last failure", moment(reason.last_failure)),
        ("source", one_line(&source)),
        ("timestamp", reason.timestamp.map_or_else(nothing, timestamp)),
        ("processor", one_line(&reason.processor)),
        ("plugin", one_line(&plugin)),
    ]
}

fn replays(letter: &Letter<'_>) -> Vec<(&'static str, String)> {
    let replayed = letter.mark.map(|mark| format!("{} to {} by {}", time::show(mark.at), mark.to, mark.by));
    let mut fields = vec![
        ("replays", letter.reason.replays.to_string()),
        ("replayed", replayed.map_or_else(|| "no".to_owned(), |text| one_line(&text))),
    ];
    fields.extend(
        letter.reason.truncated_from.map(|bytes| ("truncated", format!("from {bytes} bytes of key and value"))),
    );
    fields
}

/// A record's: -1 stands for none.
fn timestamp(ms: i64) -> String {
    if ms == -1 { nothing() } else { format!("{} ({ms})", time::show(ms)) }
}
