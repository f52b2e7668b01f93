//! `/v1/state/{processor}/{store}`: one key, or a range of keys page by page. Committed state only.

use super::App;
use super::answer::{Answered, Refusal, ok};
use super::cursor::Cursor;
use super::query::{Query, bad};
use super::status::part;
use super::wire::{EntryReply, PageReply, ValueReply};
use crate::model::bytes::Bytes;
use crate::model::state::ScanRange;
use crate::runtime::control::state::{Answer, Entry, Get, Page, Scan};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use std::borrow::Cow;

const KNOWN: &[&str] = &[
    "key",
    "key_hex",
    "partition",
    "from",
    "from_hex",
    "to",
    "to_hex",
    "prefix",
    "prefix_hex",
    "reverse",
    "limit",
    "cursor",
];
/// What says which part of a store is wanted.
const RANGE: &[&str] = &["from", "from_hex", "to", "to_hex", "prefix", "prefix_hex", "reverse", "limit", "cursor"];
const LIMIT: i64 = 100;
const MOST: i64 = 1000;
/// Bytes of keys and values in a page; one entry goes alone where it is larger.
const PAGE_BYTES: u32 = 256 << 10;

pub(super) async fn read(
    State(app): State<App>,
    names: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answered {
    let names = part(names)?;
    let query = Query::read(query.as_deref(), KNOWN)?;
    match query.bytes("key")? {
        Some(key) => get(app, names, key, &query).await,
        None => scan(app, names, &query).await,
    }
}

async fn get(app: App, (processor, store): (String, String), key: Vec<u8>, query: &Query) -> Answered {
    if let Some(other) = RANGE.iter().find(|name| query.has(name)) {
        return Err(bad(format!("key is for one key, and {other} is for a range: give one of them")));
    }
    let ask = Get { processor, store, key: key.clone(), partition: partition(query)? };
    let found = here(app.look(move |host| host.get(&ask)).await?)?;
    let value = found.value.map(owned);
    ok(&ValueReply { partition: found.partition, key: owned(key), value })
}

async fn scan(app: App, (processor, store): (String, String), query: &Query) -> Answered {
    let (range, partition, from) = (range(query)?, partition(query)?, cursor(query)?);
    if partition.is_some() && from.as_ref().is_some_and(|(at, _)| Some(*at) != partition) {
        return Err(bad("cursor is of another partition".to_owned()));
    }
    let ask = Scan { processor, store, partition, range, from };
    let page = here(app.look(move |host| host.scan(&ask)).await?)?;
    ok(&reply(page))
}

fn reply(page: Page) -> PageReply {
    let entry = |Entry { partition, key, value }| EntryReply { partition, key: owned(key), value: owned(value) };
    let cursor = page.next.map(|(partition, key)| Cursor { partition, key }.show());
    PageReply { entries: page.entries.into_iter().map(entry).collect(), partitions: page.partitions, cursor }
}

fn range(query: &Query) -> Result<ScanRange, Refusal> {
    let (from, to, prefix) = (query.bytes("from")?, query.bytes("to")?, query.bytes("prefix")?);
    let limit = query.number("limit", 1..=MOST)?.unwrap_or(LIMIT) as u32;
    let range = ScanRange { reverse: query.switch("reverse")?, limit, max_bytes: PAGE_BYTES, ..ScanRange::default() };
    match prefix {
        Some(_) if from.is_some() || to.is_some() => Err(bad("prefix does not go with from and to".to_owned())),
        Some(prefix) => Ok(ScanRange { end: after(&prefix), start: prefix, ..range }),
        None => Ok(ScanRange { start: from.unwrap_or_default(), end: to, ..range }),
    }
}

/// The first key behind all that begin with `prefix`; `None` for the end of the store.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}

fn partition(query: &Query) -> Result<Option<i32>, Refusal> {
    let number = query.number("partition", 0..=i64::from(i32::MAX))?;
    Ok(number.and_then(|number| i32::try_from(number).ok()))
}

fn cursor(query: &Query) -> Result<Option<(i32, Vec<u8>)>, Refusal> {
    let Some(text) = query.text("cursor")? else { return Ok(None) };
    let cursor = Cursor::parse(&text).ok_or_else(|| bad("cursor is to be that of the page before".to_owned()))?;
    Ok(Some((cursor.partition, cursor.key)))
}

fn here<T>(answer: Answer<T>) -> Result<T, Refusal> {
    match answer {
        Answer::Here(found) => Ok(found),
        Answer::Elsewhere { partition, instance, address } => Err(elsewhere(partition, instance, address)),
    }
}

fn elsewhere(partition: i32, instance: Option<String>, address: Option<String>) -> Refusal {
    let holder = instance.as_ref().map_or_else(|| "another host".to_owned(), |instance| format!("the host {instance}"));
    let message = format!("partition {partition} is held by {holder}");
    let refusal = Refusal::new(StatusCode::MISDIRECTED_REQUEST, "held-elsewhere", message);
    let refusal = match &address {
        Some(address) => refusal.hint(format!("ask {address}")),
        None => refusal.hint("its address is not known; ask the hosts one after the other"),
    };
    refusal.with("partition", partition).with("instance", instance).with("address", address)
}

fn owned(bytes: Vec<u8>) -> Bytes<'static> {
    Bytes(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(after(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((after(b""), after(b"\xff")), (None, None));
    }

    #[test]
    fn ranges_are_bounded() {
        let of = |raw| range(&Query::read(Some(raw), KNOWN).unwrap()).map_err(|refusal| refusal.code);
        let all = of("").unwrap();
        assert_eq!((all.limit, all.max_bytes, all.end, all.reverse), (100, PAGE_BYTES, None, false));
        let some = of("from=a&to_hex=ff&limit=1000&reverse=true").unwrap();
        assert_eq!(
            (&*some.start, some.end.as_deref(), some.limit, some.reverse),
            (&b"a"[..], Some(&b"\xff"[..]), 1000, true)
        );
        assert_eq!(of("prefix=a").unwrap().end, Some(b"b".to_vec()));
        for wrong in ["limit=0", "limit=1001", "prefix=a&to=b", "reverse=yes"] {
            assert_eq!(of(wrong).map(drop), Err("bad-query"), "{wrong}");
        }
    }
}
