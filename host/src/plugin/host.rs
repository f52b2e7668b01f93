//! The host's side of a running instance: what its imports see, and what they leave behind.

use super::bindings::pelton::plugin::{diagnostics, log, metrics, state, types};
use super::limits::{Breach, Limit, Meter};
use super::log::{Gate, Level, cut};
use super::pace::Pace;
use super::wasi::Wasi;
use crate::metrics::Custom;
use crate::model::state::{ScanRange, StateView};
use crate::model::{Batch, Column, Fault};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest message and place of a panic, in bytes.
const PANIC_BYTES: usize = 4 << 10;
/// Keys of the first part of a look-up: nothing is known of its values yet.
const FIRST_PART: usize = 32;
/// Most keys of a later part, and about how many bytes of values it brings.
const PART_KEYS: usize = 1024;
const PART_BYTES: usize = 1 << 20;
/// Most entries, and most values, of one report of a guest's own numbers (`wit/plugin.wit`).
const REPORT_ENTRIES: usize = 1000;
const REPORT_VALUES: usize = 1 << 16;
/// A page of a scan ends here at the latest: some milliseconds of work.
const PAGE_ENTRIES: u32 = 4096;
const PAGE_BYTES: u32 = 1 << 20;

/// A task's state, shared between the task and the guest that runs for it.
pub(super) type SharedState = Arc<Mutex<dyn StateView>>;

/// What belongs to one instance.
pub(super) struct Data {
    pub(super) meter: Meter,
    pub(super) quota: Quota,
    /// How its host calls give way.
    pub(super) pace: Pace,
    /// The task's stores, by number; none while a plugin is only asked to describe itself.
    stores: u32,
    state: Option<SharedState>,
    log: Option<Arc<Gate>>,
    panicked: Option<(String, String)>,
    /// The batch that the guest is at.
    batch: Option<Arc<Batch>>,
    /// What the guest has counted in this call.
    custom: Custom,
    pub(super) wasi: Wasi,
}

/// What an instance may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    /// Bytes of linear memory.
    pub(super) memory: u64,
    /// Most bytes of one result or host call.
    pub(super) output_bytes: u64,
    /// Bytes of the stack.
    pub(super) stack_bytes: u64,
}

/// Why a host call ends the guest's call.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Host(Fault),
    Malformed(String),
    /// The guest ended itself by WASI's `exit`.
    Exit,
}

impl Data {
    pub(super) fn new(quota: Quota, pace: Pace) -> Self {
        let (meter, wasi) = (Meter::new(quota.memory), Wasi::default());
        Data {
            meter,
            quota,
            pace,
            stores: 0,
            state: None,
            log: None,
            panicked: None,
            batch: None,
            custom: Custom::default(),
            wasi,
        }
    }

    pub(super) fn with_log(mut self, log: Arc<Gate>) -> Self {
        self.log = Some(log);
        self
    }

    pub(super) fn with_state(mut self, state: Option<SharedState>, stores: usize) -> Self {
        self.stores = stores as u32;
        self.state = state;
        self
    }

    /// Writes a line to the guest's log.
    pub(super) fn say(&self, level: Level, message: String) {
        if let Some(gate) = &self.log {
            gate.write(level, message, Vec::new(), self.place(None));
        }
    }

    /// Moves on to a batch.
    pub(super) fn enter(&mut self, batch: &Arc<Batch>) {
        self.wasi.enter(batch);
        self.custom = Custom::default();
        self.batch = Some(batch.clone());
    }

    /// The batch is done: it is let go, and what the guest counted is handed over.
    pub(super) fn leave(&mut self) -> Custom {
        self.batch = None;
        std::mem::take(&mut self.custom)
    }

    /// The offset that a line is about: what the guest says where that is one of the batch's, else the batch's first.
    fn place(&self, said: Option<i64>) -> Option<i64> {
        let offsets = &self.batch.as_ref()?.offsets;
        said.filter(|offset| offsets.binary_search(offset).is_ok()).or_else(|| offsets.first().copied())
    }

    /// Message and place of the panic that was announced last, if any.
    pub(super) fn take_panic(&mut self) -> Option<(String, String)> {
        self.panicked.take()
    }

    /// The values of `keys`, part by part: no part takes long, and what is too much is refused before all of it is there.
    async fn look_up(&self, store: u32, keys: &Column) -> wasmtime::Result<Column> {
        let mut rest = keys.iter();
        let (mut values, mut done) = (Column::default(), 0);
        loop {
            self.pace.breathe().await?;
            let next: Column = rest.take_view(part(done, values.bytes.len())).iter().collect();
            let found = self.ask(store, |state| state.get_many(store, &next))?;
            values.bytes.extend_from_slice(&found.bytes);
            values.lengths.extend_from_slice(&found.lengths);
            done += next.len();
            let (asked, bound) = (values.bytes.len() as u64, self.quota.output_bytes);
            if asked > bound {
                return Err(Breach { limit: Limit::Output, asked, bound }.into());
            }
            if done >= keys.len() {
                return Ok(values);
            }
        }
    }

    /// Runs `ask` on the task's state, once `store` is known to exist.
    fn ask<T>(&self, store: u32, ask: impl FnOnce(&mut dyn StateView) -> Result<T, Fault>) -> Result<T, Refusal> {
        if store >= self.stores {
            return Err(Refusal::Malformed(format!("asked for store {store} of {}", self.stores)));
        }
        let state =
            self.state.as_ref().ok_or_else(|| Refusal::Malformed("asked for state it does not have".to_owned()))?;
        ask(&mut *state.lock().unwrap_or_else(PoisonError::into_inner)).map_err(Refusal::Host)
    }
}

/// How many keys the next part of a look-up has, after `keys` brought `bytes` of values.
fn part(keys: usize, bytes: usize) -> usize {
    match keys {
        0 => FIRST_PART,
        _ => (PART_BYTES / (bytes / keys + 1)).clamp(1, PART_KEYS),
    }
}

impl types::Host for Data {}

impl state::Host for Data {
    async fn get_many(&mut self, store: u32, keys: state::Column) -> wasmtime::Result<state::Column> {
        let keys = Column { bytes: keys.bytes, lengths: keys.lengths };
        if !keys.check() || keys.lengths.iter().any(|&n| n < 0) {
            return Err(Refusal::Malformed("asked for state by a bad column of keys".to_owned()).into());
        }
        let values = self.look_up(store, &keys).await?;
        Ok(state::Column { bytes: values.bytes, lengths: values.lengths })
    }

    async fn scan(
        &mut self,
        store: u32,
        start: Vec<u8>,
        end: Option<Vec<u8>>,
        reverse: bool,
        limit: u32,
        max_bytes: u32,
    ) -> wasmtime::Result<(state::Column, bool)> {
        self.pace.breathe().await?;
        let range =
            ScanRange { start, end, reverse, limit: limit.min(PAGE_ENTRIES), max_bytes: max_bytes.min(PAGE_BYTES) };
        let (found, more) = self.ask(store, |state| state.scan(store, &range))?;
        Ok((state::Column { bytes: found.bytes, lengths: found.lengths }, more))
    }
}

impl log::Host for Data {
    async fn write(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<(String, String)>,
        offset: Option<i64>,
    ) -> wasmtime::Result<()> {
        self.pace.breathe().await?;
        if let Some(gate) = &self.log {
            gate.write(level.into(), message, fields, self.place(offset));
        }
        Ok(())
    }
}

impl metrics::Host for Data {
    async fn report(&mut self, counts: Vec<(String, u64)>, values: Vec<(String, Vec<f64>)>) -> wasmtime::Result<()> {
        self.pace.breathe().await?;
        let (entries, all) =
            (counts.len() + values.len(), values.iter().map(|(_, values)| values.len()).sum::<usize>());
        if entries > REPORT_ENTRIES || all > REPORT_VALUES {
            let what = format!(
                "reported {entries} numbers with {all} values at a time, more than {REPORT_ENTRIES} or {REPORT_VALUES}"
            );
            return Err(Refusal::Malformed(what).into());
        }
        counts.iter().for_each(|(name, more)| self.custom.count(name, *more));
        values.iter().for_each(|(name, values)| self.custom.observe(name, values));
        Ok(())
    }
}

impl diagnostics::Host for Data {
    async fn panicked(&mut self, mut message: String, mut location: String) -> wasmtime::Result<()> {
        self.pace.breathe().await?;
        cut(&mut message, PANIC_BYTES);
        cut(&mut location, PANIC_BYTES);
        self.panicked = Some((message, location));
        Ok(())
    }
}

impl From<log::Level> for Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Trace => Level::Trace,
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Host(fault) => fault.fmt(f),
            Refusal::Malformed(what) => f.write_str(what),
            Refusal::Exit => f.write_str("plugin called exit"),
        }
    }
}

impl std::error::Error for Refusal {}
