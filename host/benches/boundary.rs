//! What the boundary costs. `count`: a keyed count in batches of 512, 12-byte keys, 100-byte values, state in a hash map, from built columns
//! to checked progress. The plugin `count` beside the same guest without SDK (`count-by-hand`) and the same in native Rust.
//!
//! `instance`: a call of one record on the instance that is kept, on a fresh one, and after a trap (which costs a fresh one).
//!
//! Components come from the folder `PELTON_PLUGINS` (default: `bin/plugins` of the workspace); one that is missing is skipped.
//! The throughput line is records: its inverse is the cost of one.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a benchmark says what is missing, and stops at what is wrong"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pelton::config::Limits;
use pelton::model::manifest::Context;
use pelton::model::state::{ScanRange, StateView};
use pelton::model::{Batch, Column, Fault, HeadersRef, Progress, RecordRef};
use pelton::plugin::{CallFault, Component, Engine, Guest, GuestLine, GuestLog};
use std::collections::HashMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const RECORDS: usize = 512;
/// Distinct keys, all of them with a count already.
const KEYS: u64 = 10_000;

struct Map(HashMap<Vec<u8>, [u8; 8]>);

struct Silence;

fn boundary(c: &mut Criterion) {
    let mut group = c.benchmark_group("count");
    group.throughput(Throughput::Elements(RECORDS as u64));
    let engine = Engine::new(None).expect("the engine starts");
    for name in ["count", "count-by-hand", "echo"] {
        if let Some(mut guest) = load(&engine, name) {
            let mut batch = Some(batch());
            group.bench_function(name, |b| b.iter(|| call(&mut guest, &mut batch)));
        }
    }
    let (mut state, batch) = (Map::full(), batch());
    group.bench_function("native", |b| b.iter(|| native(&mut state, black_box(&batch))));
    group.finish();
}

fn instance(c: &mut Criterion) {
    let mut group = c.benchmark_group("instance");
    let engine = Engine::new(None).expect("the engine starts");
    for name in ["echo", "count"] {
        let Some(mut guest) = load(&engine, name) else { continue };
        let mut batch = Some(one("ok"));
        group.bench_function(format!("{name} kept"), |b| b.iter(|| call(&mut guest, &mut batch)));
        group.bench_function(format!("{name} fresh"), |b| {
            b.iter(|| {
                guest.reset();
                call(&mut guest, &mut batch)
            });
        });
    }
    if let Some(mut guest) = load(&engine, "bad") {
        let (mut bad, mut good) = (Some(one("trap")), Some(one("ok")));
        group.bench_function("bad traps", |b| b.iter(|| try_call(&mut guest, &mut bad).expect_err("it traps")));
        group.bench_function("bad traps, then one is good", |b| {
            b.iter(|| {
                try_call(&mut guest, &mut bad).expect_err("it traps");
                call(&mut guest, &mut good)
            });
        });
    }
    group.finish();
}

fn load(engine: &Engine, name: &str) -> Option<Guest> {
    match engine.load(&plugins().join(name).with_extension("wasm")) {
        Ok(component) => Some(guest(component)),
        Err(fault) => {
            eprintln!("{name} is skipped: {fault}");
            None
        }
    }
}

fn one(value: &str) -> Batch {
    let mut batch = Batch { now: 1, ..Batch::default() };
    let (key, value) = (Some(&b"key-00000001"[..]), Some(value.as_bytes()));
    batch.push(1, RecordRef { key, value, headers: HeadersRef::default(), timestamp: 1 });
    batch
}

fn plugins() -> PathBuf {
    let default = || manifest_dir().join("../bin/plugins");
    std::env::var_os("PELTON_PLUGINS").map_or_else(default, PathBuf::from)
}

fn call(guest: &mut Guest, batch: &mut Option<Batch>) -> Progress {
    try_call(guest, batch).expect("the call succeeds")
}

fn try_call(guest: &mut Guest, batch: &mut Option<Batch>) -> Result<Progress, CallFault> {
    let mut call = guest.call(batch.take().expect("the batch came back"), Duration::ZERO);
    let outcome = loop {
        if let Some(outcome) = call.poll(Duration::ZERO) {
            break outcome;
        }
    };
    *batch = Some(outcome.batch);
    outcome.result
}

fn native(state: &mut Map, batch: &Batch) -> Progress {
    let mut counts: HashMap<&[u8], (u64, u32)> = HashMap::with_capacity(batch.len());
    let mut progress = Progress { done: batch.len() as u32, ..Progress::default() };
    for (entry, (_, record)) in (0u32..).zip(batch.iter()) {
        let key = record.key.unwrap_or_default();
        let stored = || state.0.get(key).map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let slot = counts.entry(key).or_insert_with(|| (stored(), entry));
        *slot = (slot.0 + 1, entry);
        let value = slot.0.to_string();
        let emit = RecordRef { value: Some(value.as_bytes()), headers: HeadersRef::default(), timestamp: -1, ..record };
        progress.effects.emits.push(entry, 0, emit);
    }
    for (key, (count, entry)) in counts {
        let writes = &mut progress.effects.writes;
        writes.entries.push(entry);
        writes.stores.push(0);
        writes.keys.push(Some(key));
        writes.values.push(Some(&count.to_be_bytes()));
    }
    progress
}

fn guest(component: Arc<Component>) -> Guest {
    let named = |names: &[String]| names.iter().map(|name| (name.clone(), name.clone())).collect();
    let context = Context {
        application: "bench".to_owned(),
        processor: "count".to_owned(),
        partition: 0,
        inputs: named(&component.manifest.inputs),
        outputs: named(&component.manifest.outputs),
        stores: component.manifest.stores.iter().map(|store| store.name.clone()).collect(),
        settings: "{}".to_owned(),
        max_record_bytes: 1 << 20,
    };
    let state = Arc::new(Mutex::new(Map::full()));
    Guest::new(component, context, Limits::default(), Some(state), Arc::new(Silence))
}

/// Keys in no order, a few of them twice.
fn batch() -> Batch {
    let mut batch = Batch { now: 1, ..Batch::default() };
    let mut random = 1u64;
    for offset in 0..RECORDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = key((random >> 33) % KEYS);
        let record =
            RecordRef { key: Some(&key), value: Some(&[b'v'; 100]), headers: HeadersRef::default(), timestamp: 1 };
        batch.push(offset as i64, record);
    }
    batch
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:08}").into_bytes()
}

impl Map {
    fn full() -> Map {
        Map((0..KEYS).map(|number| (key(number), number.to_be_bytes())).collect())
    }
}

impl StateView for Map {
    fn get_many(&mut self, _: u32, keys: &Column) -> Result<Column, Fault> {
        Ok(keys.iter().map(|key| key.and_then(|key| self.0.get(key)).map(<[u8; 8]>::as_slice)).collect())
    }

    fn scan(&mut self, _: u32, _: &ScanRange) -> Result<(Column, bool), Fault> {
        Ok((Column::default(), false))
    }
}

impl GuestLog for Silence {
    fn line(&self, _: &GuestLine<'_>) {}

    fn suppressed(&self, _: u64) {}
}

criterion_group!(benches, boundary, instance);
criterion_main!(benches);

/// The crate's folder as cargo says it when it runs this: what was compiled may come from another clone that shares the target folder.
fn manifest_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo"))
}
