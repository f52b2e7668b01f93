//! The puppet as a component, and what a test needs to run it.

use crate::config::Limits;
use crate::model::manifest::Context;
use crate::model::state::{ScanRange, StateView};
use crate::model::{Batch, Column, Fault, HeadersRef, Progress, RecordRef};
use crate::plugin::{Call, CallFault, Component, Engine, Guest, GuestLine, GuestLog, Outcome};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use wit_component::{ComponentEncoder, StringEncoding};

pub(super) const PUPPET: &str = include_str!("puppet.wat");
pub(crate) const WIT: &str = include_str!("../../../../wit/plugin.wit");

/// Makes a component of a core module in text, for a world of an interface in text.
pub(crate) fn component(wat: &str, wit: &str, world: &str) -> Vec<u8> {
    let mut module = wat::parse_str(wat).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("plugin.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

pub(super) fn puppet_bytes() -> Vec<u8> {
    component(PUPPET, WIT, "aggregate-plugin")
}

/// A file with a puppet whose start obeys the setting `v` of its processor; without it, it starts.
pub(crate) fn starter() -> (TempDir, PathBuf) {
    let (first, behind) = ("(i32.load8_u (local.get $settings))", "(i32.load8_u offset=6 (local.get $settings))");
    assert!(PUPPET.contains(first));
    file(&component(&PUPPET.replace(first, behind), WIT, "aggregate-plugin"))
}

/// A folder with one file `plugin.wasm`.
pub(crate) fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("plugin.wasm");
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// One engine for all tests, and the puppet on it.
pub(super) fn puppet() -> (Engine, Arc<Component>) {
    static LOADED: OnceLock<(Engine, Arc<Component>)> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            let engine = Engine::new(None).unwrap();
            let (_dir, path) = file(&puppet_bytes());
            let component = engine.load(&path).unwrap();
            (engine, component)
        })
        .clone()
}

pub(super) fn context(settings: &str) -> Context {
    Context {
        application: "app".to_owned(),
        processor: "proc".to_owned(),
        partition: 3,
        inputs: vec![("input".to_owned(), "topic".to_owned())],
        outputs: vec![("output".to_owned(), "out".to_owned())],
        stores: vec!["store".to_owned()],
        settings: settings.to_owned(),
        max_record_bytes: 1 << 20,
    }
}

#[derive(Default)]
pub(super) struct Heard(pub(super) Mutex<Vec<(String, bool)>>);

impl GuestLog for Heard {
    fn line(&self, line: &GuestLine<'_>) {
        self.0.lock().unwrap().push((line.message.to_owned(), line.rerun));
    }

    fn suppressed(&self, _: u64) {}
}

/// State in a map; the key `broken` fails.
#[derive(Default)]
pub(super) struct Map(pub(super) HashMap<Vec<u8>, Vec<u8>>);

impl StateView for Map {
    fn get_many(&mut self, _: u32, keys: &Column) -> Result<Column, Fault> {
        if keys.iter().flatten().any(|key| key == b"broken") {
            return Err(Fault::corrupt("store-broken", "store is broken"));
        }
        Ok(keys.iter().map(|key| key.and_then(|key| self.0.get(key)).map(Vec::as_slice)).collect())
    }

    fn scan(&mut self, _: u32, _: &ScanRange) -> Result<(Column, bool), Fault> {
        Ok((Column::default(), false))
    }
}

/// A puppet's guest, with time that the test moves.
pub(super) struct Stage {
    pub(super) engine: Engine,
    pub(super) guest: Guest,
    pub(super) heard: Arc<Heard>,
    pub(super) state: Arc<Mutex<Map>>,
}

impl Stage {
    pub(super) fn new(limits: Limits) -> Stage {
        Stage::with_settings(limits, "{}")
    }

    pub(super) fn with_settings(limits: Limits, settings: &str) -> Stage {
        Stage::of(puppet(), limits, settings)
    }

    pub(super) fn of((engine, component): (Engine, Arc<Component>), limits: Limits, settings: &str) -> Stage {
        let (heard, state) = (Arc::new(Heard::default()), Arc::new(Mutex::new(Map::default())));
        let guest = Guest::new(component, context(settings), limits, Some(state.clone()), heard.clone());
        Stage { engine, guest, heard, state }
    }

    /// Runs one record of key `k` whose value is `verb`.
    pub(super) fn run(&mut self, verb: &str) -> Result<Progress, CallFault> {
        self.run_batch(batch(&[("k", verb)]))
    }

    pub(super) fn run_batch(&mut self, batch: Batch) -> Result<Progress, CallFault> {
        let sent = batch.clone();
        let outcome = drive(&self.engine, self.guest.call(batch, Duration::ZERO));
        assert_eq!(outcome.batch, sent, "the batch comes back as it was");
        outcome.result
    }
}

pub(super) fn batch(records: &[(&str, &str)]) -> Batch {
    let mut batch = Batch { partition: 3, now: 1, ..Batch::default() };
    for (offset, (key, value)) in records.iter().enumerate() {
        let (key, value) = (Some(key.as_bytes()), Some(value.as_bytes()));
        batch.push(offset as i64, RecordRef { key, value, headers: HeadersRef::default(), timestamp: 5 });
    }
    batch
}

/// Polls to the end. Each poll is a tick and 5 ms later, so that a loop ends at a deadline without any real time.
pub(super) fn drive(engine: &Engine, mut call: Call) -> Outcome {
    let (ticker, stop) = (engine.ticker(), Arc::new(()));
    let alive = Arc::downgrade(&stop);
    let ticks = std::thread::spawn(move || {
        while alive.strong_count() > 0 && ticker() {
            std::thread::yield_now();
        }
    });
    let mut now = Duration::ZERO;
    let outcome = loop {
        if let Some(outcome) = call.poll(now) {
            break outcome;
        }
        now += Duration::from_millis(5);
    };
    drop(stop);
    ticks.join().unwrap();
    outcome
}
