//! What a guest returned, checked and moved into the host's words. From here on the rooms above may trust it.

use super::bindings::pelton::plugin::types;
use super::fault::CallFault;
use super::limits::{Breach, Limit};
use super::log::cut;
use crate::model::{Column, Effects, Emits, Ending, Failure, Headers, Progress, Rejection, Writes};

/// Longest code of a failure, and longest name of a detail, in bytes (`wit/plugin.wit`).
const NAME_BYTES: usize = 128;
/// Longest message, and longest value of a detail, in bytes.
const TEXT_BYTES: usize = 16 << 10;
/// Most details of a failure.
const DETAILS: usize = 64;

/// What the progress of one call must fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Records of the batch.
    pub(super) entries: u32,
    pub(super) outputs: u32,
    pub(super) stores: u32,
    /// Most emits, and most state writes.
    pub(super) effects: usize,
    /// Of everything that the guest returned together.
    pub(super) bytes: u64,
}

/// Checks a result and moves it: no vector is copied.
///
/// Not checked: that a key is written once per store. It would cost a look-up per write, and a second write of a key harms nobody:
/// the last one holds.
pub(super) fn progress(from: types::Progress, bounds: &Bounds) -> Result<Progress, CallFault> {
    let progress = Progress::from(from);
    within(Limit::Emits, progress.effects.emits.len() as u64, bounds.effects as u64)?;
    within(Limit::Writes, progress.effects.writes.len() as u64, bounds.effects as u64)?;
    within(Limit::Output, size(&progress), bounds.bytes)?;
    check(&progress, bounds).map_err(CallFault::Malformed)?;
    Ok(progress)
}

fn within(limit: Limit, asked: u64, bound: u64) -> Result<(), CallFault> {
    if asked <= bound { Ok(()) } else { Err(CallFault::breach(Breach { limit, asked, bound })) }
}

fn check(progress: &Progress, bounds: &Bounds) -> Result<(), String> {
    check_done(progress, bounds.entries)?;
    check_rejected(progress)?;
    check_emits(&progress.effects.emits, bounds.outputs)?;
    check_writes(&progress.effects.writes, bounds.stores)?;
    check_entries("emits", &progress.effects.emits.entries, progress)?;
    check_entries("writes", &progress.effects.writes.entries, progress)?;
    ordered(&progress.effects.emits.entries)
        .then_some(())
        .ok_or_else(|| "emits are not in the order of their entries".to_owned())
}

fn check_done(progress: &Progress, entries: u32) -> Result<(), String> {
    let done = progress.done;
    match progress.ending {
        Ending::Complete if done == entries => Ok(()),
        Ending::Complete => Err(format!("call is complete with {done} of {entries} entries done")),
        _ if done < entries => Ok(()),
        _ => Err(format!("call ended early with {done} of {entries} entries done")),
    }
}

fn check_rejected(progress: &Progress) -> Result<(), String> {
    let rejected = &progress.rejected;
    if let Some(last) = rejected.last().filter(|last| last.entry >= progress.done) {
        return Err(format!("entry {} is rejected, and only {} are done", last.entry, progress.done));
    }
    let ascending = rejected.windows(2).all(|pair| pair[0].entry < pair[1].entry);
    ascending.then_some(()).ok_or_else(|| "rejected entries are not in order, or named twice".to_owned())
}

fn check_emits(emits: &Emits, outputs: u32) -> Result<(), String> {
    let count = emits.entries.len();
    same("emits.outputs", emits.outputs.len(), count)?;
    same("emits.timestamps", emits.timestamps.len(), count)?;
    check_column("emits.keys", &emits.keys, count)?;
    check_column("emits.values", &emits.values, count)?;
    same("emits.headers", emits.headers.counts.len(), count)?;
    if !emits.headers.check() {
        return Err("emits.headers do not add up".to_owned());
    }
    below("output", &emits.outputs, outputs)
}

fn check_writes(writes: &Writes, stores: u32) -> Result<(), String> {
    let count = writes.entries.len();
    same("writes.stores", writes.stores.len(), count)?;
    check_column("writes.keys", &writes.keys, count)?;
    check_column("writes.values", &writes.values, count)?;
    if writes.keys.lengths.iter().any(|&length| length < 0) {
        return Err("a write has a null key".to_owned());
    }
    below("store", &writes.stores, stores)
}

fn check_entries(what: &str, entries: &[u32], progress: &Progress) -> Result<(), String> {
    if let Some(entry) = entries.iter().find(|&&entry| entry >= progress.done) {
        return Err(format!("{what} belong to entry {entry}, and only {} are done", progress.done));
    }
    let rejected = |entry: &&u32| progress.rejected.binary_search_by_key(*entry, |r| r.entry).is_ok();
    match entries.iter().filter(|_| !progress.rejected.is_empty()).find(rejected) {
        Some(entry) => Err(format!("{what} belong to entry {entry}, which is rejected")),
        None => Ok(()),
    }
}

fn check_column(what: &str, column: &Column, count: usize) -> Result<(), String> {
    same(what, column.len(), count)?;
    if column.check() { Ok(()) } else { Err(format!("lengths of {what} do not add up to its bytes")) }
}

fn same(what: &str, found: usize, count: usize) -> Result<(), String> {
    if found == count { Ok(()) } else { Err(format!("{what} has {found} entries instead of {count}")) }
}

fn below(what: &str, indexes: &[u32], bound: u32) -> Result<(), String> {
    match indexes.iter().find(|&&index| index >= bound) {
        Some(index) => Err(format!("there is no {what} {index}, only {bound}")),
        None => Ok(()),
    }
}

fn ordered(entries: &[u32]) -> bool {
    entries.windows(2).all(|pair| pair[0] <= pair[1])
}

/// Bytes of everything that a guest chose the length of.
fn size(progress: &Progress) -> u64 {
    let Effects { emits, writes } = &progress.effects;
    let headers =
        column_size(&emits.headers.names) + column_size(&emits.headers.values) + 4 * emits.headers.counts.len();
    let emitted = column_size(&emits.keys) + column_size(&emits.values) + headers + 16 * emits.len();
    let written = column_size(&writes.keys) + column_size(&writes.values) + 8 * writes.len();
    let rejected: usize = progress.rejected.iter().map(|rejection| 4 + failure_size(&rejection.failure)).sum();
    (emitted + written + rejected) as u64
}

fn column_size(column: &Column) -> usize {
    column.bytes.len() + 4 * column.lengths.len()
}

fn failure_size(failure: &Failure) -> usize {
    let details: usize = failure.details.iter().map(|(name, value)| name.len() + value.len()).sum();
    failure.code.len() + failure.message.len() + details
}

impl From<types::Progress> for Progress {
    fn from(from: types::Progress) -> Self {
        Progress {
            done: from.done,
            effects: Effects { emits: from.effects.emits.into(), writes: from.effects.writes.into() },
            rejected: from.rejected.into_iter().map(Rejection::from).collect(),
            ending: match from.ending {
                types::Ending::Complete => Ending::Complete,
                types::Ending::Retry(failure) => Ending::Retry(failure.into()),
                types::Ending::Stop(failure) => Ending::Stop(failure.into()),
            },
        }
    }
}

impl From<types::Emits> for Emits {
    fn from(from: types::Emits) -> Self {
        let types::Emits { entries, outputs, timestamps, keys, values, headers } = from;
        Emits { entries, outputs, timestamps, keys: keys.into(), values: values.into(), headers: headers.into() }
    }
}

impl From<types::Writes> for Writes {
    fn from(from: types::Writes) -> Self {
        let types::Writes { entries, stores, keys, values } = from;
        Writes { entries, stores, keys: keys.into(), values: values.into() }
    }
}

impl From<types::ColumnResult> for Column {
    fn from(from: types::ColumnResult) -> Self {
        Column { bytes: from.bytes, lengths: from.lengths }
    }
}

impl From<types::HeadersResult> for Headers {
    fn from(from: types::HeadersResult) -> Self {
        Headers { counts: from.counts, names: from.names.into(), values: from.values.into() }
    }
}

impl From<types::Rejection> for Rejection {
    fn from(from: types::Rejection) -> Self {
        Rejection { entry: from.entry, failure: from.failure.into() }
    }
}

/// Cuts what is too long to be said of one record.
impl From<types::Failure> for Failure {
    fn from(from: types::Failure) -> Self {
        let types::Failure { mut code, mut message, retry_after_ms, mut details } = from;
        cut(&mut code, NAME_BYTES);
        cut(&mut message, TEXT_BYTES);
        if details.len() > DETAILS {
            details.truncate(DETAILS);
            details.shrink_to_fit();
        }
        for (name, value) in &mut details {
            cut(name, NAME_BYTES);
            cut(value, TEXT_BYTES);
        }
        Failure { code, message, retry_after_ms, details }
    }
}
