//! The host's side of a running instance: what its imports see, and what they leave behind.

use super::bindings::pelton::plugin::{diagnostics, log, state, types};
use super::limits::Meter;
use super::log::{Gate, Level, cut};
use crate::model::state::{ScanRange, StateView};
use crate::model::{Column, Fault};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest message and place of a panic, in bytes.
const PANIC_BYTES: usize = 4 << 10;

/// A task's state, shared between the task and the guest that runs for it.
pub(super) type SharedState = Arc<Mutex<dyn StateView>>;

/// What belongs to one instance.
pub(super) struct Data {
    pub(super) meter: Meter,
    /// Most bytes of one result or host call.
    pub(super) output_bytes: u64,
    /// The task's stores, by number; none while a plugin is only asked to describe itself.
    stores: u32,
    state: Option<SharedState>,
    log: Option<Arc<Gate>>,
    panicked: Option<(String, String)>,
}

/// Why a host call ends the guest's call.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Host(Fault),
    Malformed(String),
}

impl Data {
    pub(super) fn new(memory: u64, output_bytes: u64, log: Option<Arc<Gate>>) -> Self {
        Data { meter: Meter::new(memory), output_bytes, stores: 0, state: None, log, panicked: None }
    }

    pub(super) fn with_state(mut self, state: Option<SharedState>, stores: usize) -> Self {
        self.stores = stores as u32;
        self.state = state;
        self
    }

    /// Message and place of the panic that was announced last, if any.
    pub(super) fn take_panic(&mut self) -> Option<(String, String)> {
        self.panicked.take()
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

impl types::Host for Data {}

impl state::Host for Data {
    fn get_many(&mut self, store: u32, keys: state::Column) -> wasmtime::Result<state::Column> {
        let keys = Column { bytes: keys.bytes, lengths: keys.lengths };
        if !keys.check() || keys.lengths.iter().any(|&n| n < 0) {
            return Err(Refusal::Malformed("asked for state by a bad column of keys".to_owned()).into());
        }
        let values = self.ask(store, |state| state.get_many(store, &keys))?;
        Ok(state::Column { bytes: values.bytes, lengths: values.lengths })
    }

    fn scan(
        &mut self,
        store: u32,
        start: Vec<u8>,
        end: Option<Vec<u8>>,
        reverse: bool,
        limit: u32,
        max_bytes: u32,
    ) -> wasmtime::Result<(state::Column, bool)> {
        let max_bytes = max_bytes.min(u32::try_from(self.output_bytes).unwrap_or(u32::MAX));
        let range = ScanRange { start, end, reverse, limit, max_bytes };
        let (found, more) = self.ask(store, |state| state.scan(store, &range))?;
        Ok((state::Column { bytes: found.bytes, lengths: found.lengths }, more))
    }
}

impl log::Host for Data {
    fn write(&mut self, level: log::Level, message: String, fields: Vec<(String, String)>) -> wasmtime::Result<()> {
        if let Some(gate) = &self.log {
            gate.write(level.into(), message, fields);
        }
        Ok(())
    }
}

impl diagnostics::Host for Data {
    fn panicked(&mut self, mut message: String, mut location: String) -> wasmtime::Result<()> {
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
        }
    }
}

impl std::error::Error for Refusal {}
