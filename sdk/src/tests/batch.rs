//! Batches and cores for tests, and what came out of a call in a form that compares well.

use pelton_bindings_transform::pelton::plugin::types::{Batch, Headers, Progress};

use crate::call::{Core, Names};
use crate::column;
use crate::declaration::Input;
use crate::state::State;

/// Key, value and headers of a record.
pub(crate) type Entry<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, &'a [(&'a [u8], Option<&'a [u8]>)]);

/// A batch at offsets 100, 101, …
pub(crate) fn batch(entries: &[Entry<'_>]) -> Batch {
    let mut keys = column::with_capacity(0, 0);
    let mut values = column::with_capacity(0, 0);
    let mut headers =
        Headers { counts: Vec::new(), names: column::with_capacity(0, 0), values: column::with_capacity(0, 0) };
    for (key, value, pairs) in entries {
        column::push(&mut keys, *key);
        column::push(&mut values, *value);
        headers.counts.push(u32::try_from(pairs.len()).unwrap());
        for (name, value) in *pairs {
            column::push(&mut headers.names, Some(name));
            column::push(&mut headers.values, *value);
        }
    }
    let offsets = (100..).take(entries.len()).collect();
    let timestamps = vec![-1; entries.len()];
    Batch { input: 0, partition: 3, offsets, timestamps, keys, values, headers, now: 5000, attempt: 2 }
}

/// A batch of keys, `-` being null, without values.
pub(crate) fn keyed(keys: &[&str]) -> Batch {
    let entries: Vec<Entry<'_>> =
        keys.iter().map(|&key| ((key != "-").then_some(key.as_bytes()), None, [].as_slice())).collect();
    batch(&entries)
}

/// A core with one input, output 0 being the host's output 7, key stores 10, 11 … and partition stores 20, 21 …
pub(crate) fn core(key_stores: u32, partition_stores: u32) -> Core {
    let names = Names {
        application: "shop".to_owned(),
        processor: "totals".to_owned(),
        topics: vec!["orders".to_owned()],
        inputs: vec![Input(0)],
        outputs: vec![7],
        output_names: vec!["out".to_owned()],
    };
    Core::new(names, State::new((10..10 + key_stores).collect(), (20..20 + partition_stores).collect()))
}

/// Emits as `entry:key=value`, null as `-`.
pub(crate) fn emits(progress: &Progress) -> Vec<String> {
    let emits = &progress.effects.emits;
    let fields = column::fields(&emits.keys).zip(column::fields(&emits.values));
    emits
        .entries
        .iter()
        .zip(fields)
        .map(|(entry, (key, value))| format!("{entry}:{}={}", text(key), text(value)))
        .collect()
}

/// Writes as `entry:store:key=value`, null as `-`, sorted.
pub(crate) fn writes(progress: &Progress) -> Vec<String> {
    let writes = &progress.effects.writes;
    let fields = column::fields(&writes.keys).zip(column::fields(&writes.values));
    let places = writes.entries.iter().zip(&writes.stores);
    let lines = places
        .zip(fields)
        .map(|((entry, store), (key, value))| format!("{entry}:{store}:{}={}", text(key), text(value)));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Rejections as `entry:code`.
pub(crate) fn rejected(progress: &Progress) -> Vec<String> {
    progress.rejected.iter().map(|rejection| format!("{}:{}", rejection.entry, rejection.failure.code)).collect()
}

fn text(field: Option<&[u8]>) -> String {
    field.map_or_else(|| "-".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}
