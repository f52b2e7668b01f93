//! Bounded scans in key order: the host's pages with the call's own writes merged in, so that a scan and a get agree.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::partition::Written;
use crate::column::{self, Column};
use crate::error::Error;
use crate::host::{Host, ScanRequest};

/// What to scan. Keys are ordered by their bytes: numbers in keys sort when they are big-endian.
#[derive(Clone, Debug)]
pub struct Scan {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    reverse: bool,
    limit: u32,
    max_bytes: u32,
}

impl Scan {
    /// All keys.
    pub fn all() -> Self {
        Self { start: Vec::new(), end: None, reverse: false, limit: 1000, max_bytes: 1 << 20 }
    }

    /// Keys that start with `prefix`.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        let start = prefix.as_ref().to_vec();
        Self { end: after_prefix(&start), start, ..Self::all() }
    }

    /// Keys with `start <= key < end`.
    pub fn range(start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Self {
        Self { start: start.as_ref().to_vec(), end: Some(end.as_ref().to_vec()), ..Self::all() }
    }

    /// From the last key backwards.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// At most this many entries: 1000 unless told, and at least one.
    #[must_use]
    pub fn limit(mut self, entries: u32) -> Self {
        self.limit = entries.max(1);
        self
    }

    /// Ends with the entry that brings keys and values to this many bytes: 1 MiB unless told.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u32) -> Self {
        self.max_bytes = bytes.max(1);
        self
    }
}

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Keys and values, in the order asked for.
    pub entries: Vec<(Vec<u8>, T)>,
    /// More follow: a limit ended the scan.
    pub more: bool,
}

/// A page of bytes.
pub(crate) type RawPage = Page<Vec<u8>>;

/// Keys and values of a range.
type Table = BTreeMap<Vec<u8>, Vec<u8>>;

/// Runs a scan over the host's store and the call's own writes.
pub(crate) fn run(
    host: &dyn Host,
    store: u32,
    over: &BTreeMap<Vec<u8>, Written>,
    scan: &Scan,
) -> Result<RawPage, Error> {
    let mut page = RawPage { entries: Vec::new(), more: false };
    let mut bytes = 0usize;
    let (mut start, mut end) = (scan.start.clone(), scan.end.clone());
    while end.as_ref().is_none_or(|end| start < *end) {
        let (found, last) = fetch(host, store, &Scan { start: start.clone(), end: end.clone(), ..scan.clone() })?;
        let covered = covered(&start, &end, last.as_ref(), scan.reverse);
        for (key, value) in merge(found, over, &covered, scan.reverse) {
            if page.entries.len() >= scan.limit as usize || bytes >= scan.max_bytes as usize {
                page.more = true;
                return Ok(page);
            }
            bytes += key.len() + value.len();
            page.entries.push((key, value));
        }
        match last {
            None => return Ok(page),
            Some(key) if scan.reverse => end = Some(key),
            Some(key) => start = successor(key),
        }
    }
    Ok(page)
}

/// One page of the host's, and the key that it ended with when more follow.
fn fetch(host: &dyn Host, store: u32, scan: &Scan) -> Result<(Table, Option<Vec<u8>>), Error> {
    let request = ScanRequest {
        store,
        start: &scan.start,
        end: scan.end.as_deref(),
        reverse: scan.reverse,
        limit: scan.limit,
        max_bytes: scan.max_bytes,
    };
    let (column, more) = host.scan(&request);
    let pairs = pairs(&column);
    let last = pairs.last().map(|(key, _)| key.clone());
    match (more, last) {
        (false, _) => Ok((pairs.into_iter().collect(), None)),
        (true, Some(last)) => Ok((pairs.into_iter().collect(), Some(last))),
        (true, None) => {
            Err(Error::stop("state-scan", "host answered a scan with an empty page and says that more follow"))
        }
    }
}

fn pairs(column: &Column) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields = column::fields(column).map(|field| field.unwrap_or_default().to_vec());
    std::iter::from_fn(|| Some((fields.next()?, fields.next()?))).collect()
}

/// The range that a page speaks for.
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn covered(start: &[u8], end: &Option<Vec<u8>>, last: Option<&Vec<u8>>, reverse: bool) -> Range {
    let whole_end = end.clone().map_or(Bound::Unbounded, Bound::Excluded);
    match last {
        Some(key) if reverse => (Bound::Included(key.clone()), whole_end),
        Some(key) => (Bound::Included(start.to_vec()), Bound::Included(key.clone())),
        None => (Bound::Included(start.to_vec()), whole_end),
    }
}

/// Lays the call's own writes in `range` over what was found.
fn merge(mut found: Table, over: &BTreeMap<Vec<u8>, Written>, range: &Range, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    for (key, written) in over.range(range.clone()) {
        match &written.value {
            Some(value) => drop(found.insert(key.clone(), value.clone())),
            None => drop(found.remove(key)),
        }
    }
    match reverse {
        false => found.into_iter().collect(),
        true => found.into_iter().rev().collect(),
    }
}

/// The first key that does not start with `prefix`, if there is one.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=keep].to_vec();
    end[keep] += 1;
    Some(end)
}

/// The key right behind `key`.
fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
