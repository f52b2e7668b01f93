//! A dead letter as JSON, and as a line of a table.

use crate::cli::bytes::{one_line, show};
use crate::cli::time;
use crate::delivery::Mark;
use crate::model::bytes::Bytes;
use crate::runtime::letters::Letter;
use serde::Serialize;
use std::io::{self, Write};

/// What `list` tells of a letter; `show` adds to it.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    partition: i32,
    offset: i64,
    code: &'a str,
    verdict: &'a str,
    message: &'a str,
    attempts: Option<u32>,
    /// Milliseconds since the epoch.
    first_failure: Option<i64>,
    last_failure: Option<i64>,
    replays: u32,
    replayed: Option<Replay<'a>>,
    source: Source<'a>,
    plugin: Plugin<'a>,
    truncated_from: Option<u64>,
    key: Option<Bytes<'a>>,
}

#[derive(Debug, Serialize)]
struct Replay<'a> {
    at: i64,
    by: &'a str,
    to: &'a str,
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    topic: &'a str,
    partition: i32,
    offset: i64,
    timestamp: Option<i64>,
}

#[derive(Debug, Serialize)]
struct Plugin<'a> {
    name: &'a str,
    version: &'a str,
    digest: &'a str,
}

impl<'a> Row<'a> {
    pub(super) fn of(letter: &'a Letter<'a>) -> Self {
        let reason = &letter.reason;
        Row {
            partition: letter.place.partition,
            offset: letter.place.offset,
            code: &reason.code,
            verdict: &reason.verdict,
            message: &reason.message,
            attempts: reason.attempts,
            first_failure: reason.first_failure,
            last_failure: reason.last_failure,
            replays: reason.replays,
            replayed: letter.mark.map(|Mark { at, by, to, .. }| Replay { at: *at, by, to }),
            source: Source {
                topic: &reason.topic,
                partition: reason.partition,
                offset: reason.offset,
                timestamp: reason.timestamp,
            },
            plugin: Plugin { name: &reason.plugin, version: &reason.plugin_version, digest: &reason.plugin_digest },
            truncated_from: reason.truncated_from,
            key: letter.record.key.map(Bytes::of),
        }
    }
}

/// What stands above the lines of [`line`].
pub(super) fn head(out: &mut dyn Write) -> io::Result<()> {
    columns(out, ["place", "given up", "code", "calls", "replays", "replayed", "source", "key", "message"])
}

pub(super) fn line(letter: &Letter<'_>, out: &mut dyn Write) -> io::Result<()> {
    let reason = &letter.reason;
    let replayed = if letter.mark.is_some() { "yes" } else { "no" };
    let source = format!("{}/{}:{}", reason.topic, reason.partition, reason.offset);
    columns(
        out,
        [
            &letter.place.to_string(),
            &reason.last_failure.map_or_else(nothing, time::show),
            &one_line(&reason.code),
            &reason.attempts.map_or_else(nothing, |n| n.to_string()),
            &reason.replays.to_string(),
            replayed,
            &one_line(&source),
            &show(letter.record.key),
            &one_line(&reason.message),
        ],
    )
}

/// What is not known is shown as.
pub(super) fn nothing() -> String {
    "-".to_owned()
}

fn columns(out: &mut dyn Write, cells: [&str; 9]) -> io::Result<()> {
    let [place, at, code, calls, replays, replayed, source, key, message] = cells;
    writeln!(
        out,
        "{place:>9}  {at:24}  {code:20} {calls:>5} {replays:>7} {replayed:>8}  {source:20}  {key:12}  {message}"
    )
}
