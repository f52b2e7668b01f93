//! What an instance may hold. A breach is an error of its own type, so that it ends the call by name and not as some trap.

use std::fmt;
use wasmtime::ResourceLimiter;

/// Most elements of all tables of an instance together. Tables hold function pointers; real plugins have hundreds.
const TABLE_ELEMENTS: usize = 1 << 20;
/// A component is made of a few core modules; each of these bounds is far above what a toolchain makes.
const CORE_INSTANCES: usize = 64;
const TABLES: usize = 64;
const MEMORIES: usize = 16;

/// A limit that a guest can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Linear memory (`memory`).
    Memory,
    /// Elements of tables.
    Table,
    /// Depth of calls.
    Stack,
    /// Bytes returned, or moved by one host call (`output_bytes`).
    Output,
    /// Emits of one call (`emits`).
    Emits,
    /// State writes of one call (`emits` too).
    Writes,
}

/// A limit that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Breach {
    pub(super) limit: Limit,
    pub(super) asked: u64,
    pub(super) bound: u64,
}

/// Counts what one instance holds, and refuses more.
#[derive(Debug)]
pub(super) struct Meter {
    memory_bound: usize,
    memory: usize,
    elements: usize,
}

impl Limit {
    /// Stable code of a call that broke this limit.
    pub fn code(self) -> &'static str {
        match self {
            Limit::Memory => "limit-memory",
            Limit::Table => "limit-table",
            Limit::Stack => "limit-stack",
            Limit::Output => "limit-output",
            Limit::Emits => "limit-emits",
            Limit::Writes => "limit-writes",
        }
    }
}

impl Meter {
    pub(super) fn new(memory_bound: u64) -> Self {
        Meter { memory_bound: usize::try_from(memory_bound).unwrap_or(usize::MAX), memory: 0, elements: 0 }
    }

    /// Bytes of linear memory held now. It never shrinks while the instance lives.
    pub(super) fn memory(&self) -> u64 {
        self.memory as u64
    }
}

// Returning `Ok(false)` would let the guest see -1 from `memory.grow` and die of it in its own way, as an unnamed trap.
impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory - current.min(self.memory) + desired;
        refuse_above(Limit::Memory, total, self.memory_bound)?;
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.elements - current.min(self.elements) + desired;
        refuse_above(Limit::Table, total, TABLE_ELEMENTS)?;
        self.elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

fn refuse_above(limit: Limit, asked: usize, bound: usize) -> Result<(), Breach> {
    if asked <= bound { Ok(()) } else { Err(Breach { limit, asked: asked as u64, bound: bound as u64 }) }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { asked, bound, .. } = self;
        match self.limit {
            Limit::Memory => write!(f, "plugin asked for {asked} bytes of memory, its limit is {bound}"),
            Limit::Table => write!(f, "plugin asked for {asked} table elements, its limit is {bound}"),
            Limit::Stack => write!(f, "plugin called too deep: its stack is {bound} bytes"),
            Limit::Output => write!(f, "plugin moved more than its limit of {bound} bytes in one call"),
            Limit::Emits => write!(f, "plugin made {asked} emits in one call, its limit is {bound}"),
            Limit::Writes => write!(f, "plugin made {asked} state writes in one call, its limit is {bound}"),
        }
    }
}

impl std::error::Error for Breach {}
