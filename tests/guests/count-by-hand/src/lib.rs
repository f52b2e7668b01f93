//! The plugin `count` against the bare interface, as fast as it can reasonably be written: what the SDK is measured by.

use std::fmt::Write;

use exports::pelton::plugin::aggregate::Guest as Aggregate;
use exports::pelton::plugin::lifecycle::{Context, Guest as Lifecycle, Manifest, Scope, StoreSpec};
use pelton::plugin::state;
use pelton::plugin::types::{Batch, Column, Effects, Emits, Ending, Failure, Headers, Progress, Rejection, Writes};
use rustc_hash::FxHashMap;

wit_bindgen::generate!({ path: "../../../wit", world: "aggregate-plugin" });

struct Count;

/// A distinct key of the batch.
struct Slot<'a> {
    key: &'a [u8],
    count: u64,
    writer: u32,
}

impl Lifecycle for Count {
    fn describe() -> Manifest {
        Manifest {
            name: "count-by-hand".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sdk: "none".to_owned(),
            inputs: vec!["in".to_owned()],
            outputs: vec!["out".to_owned()],
            other_outputs: false,
            stores: vec![StoreSpec {
                name: "counts".to_owned(),
                scope: Scope::Key,
                codec: "u64".to_owned(),
                schema_version: 1,
                reads_from: 1,
            }],
        }
    }

    fn init(_context: Context) -> Result<(), String> {
        Ok(())
    }
}

impl Aggregate for Count {
    fn apply(batch: Batch) -> Progress {
        let (entries, keys) = distinct(&batch.keys);
        let mut slots = fetch(&keys);
        let length = entries.len();
        let mut rejected = Vec::new();
        let mut emits = emits(length, batch.keys.bytes.len());
        let mut text = String::with_capacity(20);
        for (entry, slot) in (0u32..).zip(entries) {
            let Some(slot) = slot else {
                rejected.push(null_key(entry));
                continue;
            };
            let slot = &mut slots[slot];
            slot.count += 1;
            slot.writer = entry;
            text.clear();
            let _ = write!(text, "{}", slot.count);
            emits.entries.push(entry);
            emits.outputs.push(0);
            emits.timestamps.push(-1);
            emits.headers.counts.push(0);
            push(&mut emits.keys, slot.key);
            push(&mut emits.values, text.as_bytes());
        }
        let effects = Effects { emits, writes: writes(&slots) };
        Progress { done: length as u32, effects, rejected, ending: Ending::Complete }
    }
}

fn distinct(keys: &Column) -> (Vec<Option<usize>>, Vec<&[u8]>) {
    let mut numbers = FxHashMap::with_capacity_and_hasher(keys.lengths.len(), Default::default());
    let mut distinct = Vec::new();
    let mut at = 0;
    let entries = keys.lengths.iter().map(|&length| {
        let length = usize::try_from(length).ok()?;
        let key = &keys.bytes[at..at + length];
        at += length;
        Some(*numbers.entry(key).or_insert_with(|| {
            distinct.push(key);
            distinct.len() - 1
        }))
    });
    let entries = entries.collect();
    (entries, distinct)
}

fn fetch<'a>(keys: &[&'a [u8]]) -> Vec<Slot<'a>> {
    let mut column = column(keys.len(), 16 * keys.len());
    keys.iter().for_each(|key| push(&mut column, key));
    let values = state::get_many(0, &column);
    let mut at = 0;
    let slots = keys.iter().zip(&values.lengths).map(|(&key, &length)| {
        let mut count = 0;
        if length >= 0 {
            let bytes = &values.bytes[at..at + length as usize];
            count = bytes.try_into().map_or(0, u64::from_be_bytes);
            at += length as usize;
        }
        Slot { key, count, writer: u32::MAX }
    });
    slots.collect()
}

fn writes(slots: &[Slot<'_>]) -> Writes {
    let count = slots.len();
    let mut writes = Writes {
        entries: Vec::with_capacity(count),
        stores: vec![0; count],
        keys: column(count, 16 * count),
        values: column(count, 8 * count),
    };
    for slot in slots {
        writes.entries.push(slot.writer);
        push(&mut writes.keys, slot.key);
        push(&mut writes.values, &slot.count.to_be_bytes());
    }
    writes
}

fn emits(entries: usize, key_bytes: usize) -> Emits {
    Emits {
        entries: Vec::with_capacity(entries),
        outputs: Vec::with_capacity(entries),
        timestamps: Vec::with_capacity(entries),
        keys: column(entries, key_bytes),
        values: column(entries, 4 * entries),
        headers: Headers { counts: Vec::with_capacity(entries), names: column(0, 0), values: column(0, 0) },
    }
}

fn null_key(entry: u32) -> Rejection {
    let (code, message) = ("null-key".to_owned(), "key is null; this plugin keeps state by key".to_owned());
    Rejection { entry, failure: Failure { code, message, retry_after_ms: None, details: Vec::new() } }
}

fn column(entries: usize, bytes: usize) -> Column {
    Column { bytes: Vec::with_capacity(bytes), lengths: Vec::with_capacity(entries) }
}

fn push(column: &mut Column, field: &[u8]) {
    column.bytes.extend_from_slice(field);
    column.lengths.push(field.len() as i32);
}

// Names of exports are no names for a native linker, so a native build, for checks, goes without.
#[cfg(target_arch = "wasm32")]
export!(Count);
#[cfg(not(target_arch = "wasm32"))]
const _: Count = Count;
