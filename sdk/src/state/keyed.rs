//! A store of one value per record key: one bulk read over the batch's distinct keys, then plain arrays.

use pelton_bindings_transform::pelton::plugin::types::Writes;

use super::distinct::Distinct;
use crate::column::{self, Column};
use crate::error::Error;
use crate::host::Host;

/// No entry wrote the slot.
const NOBODY: u32 = u32::MAX;

/// A field in a buffer; a length of -1 is null.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    length: i32,
}

/// What the call wrote to a slot, and the entry that did.
#[derive(Clone, Copy, Debug)]
struct Written {
    span: Span,
    writer: u32,
}

/// One store during a call.
pub(crate) struct Keyed {
    store: u32,
    fetched: Option<Vec<u8>>,
    base: Vec<Span>,
    /// Written values, oldest first; it only grows within a record, so undoing is cutting.
    bytes: Vec<u8>,
    over: Vec<Written>,
    undo: Vec<(usize, Written)>,
    kept: usize,
}

const UNWRITTEN: Written = Written { span: Span { start: 0, length: -1 }, writer: NOBODY };

impl Keyed {
    pub(crate) fn new(store: u32) -> Self {
        Self { store, fetched: None, base: Vec::new(), bytes: Vec::new(), over: Vec::new(), undo: Vec::new(), kept: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.fetched = None;
        self.base.clear();
        self.bytes.clear();
        self.over.clear();
        self.undo.clear();
        self.kept = 0;
    }

    /// Reads all keys of the batch, unless that was done in this call.
    #[inline]
    pub(crate) fn fetch(&mut self, host: &dyn Host, keys: &Column) {
        if self.fetched.is_none() {
            self.fetch_all(host, keys);
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<&[u8]> {
        match self.over.get(slot) {
            Some(written) if written.writer != NOBODY => written.span.of(&self.bytes),
            _ => self.base[slot].of(self.fetched.as_deref().unwrap_or_default()),
        }
    }

    #[inline]
    pub(crate) fn put(
        &mut self,
        slot: usize,
        writer: u32,
        slots: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        let length = column::length(self.bytes.len() - start);
        self.set(slot, slots, Written { span: Span { start, length }, writer });
        Ok(())
    }

    pub(crate) fn delete(&mut self, slot: usize, writer: u32, slots: usize) {
        self.set(slot, slots, Written { writer, ..UNWRITTEN });
    }

    #[inline]
    pub(crate) fn keep(&mut self) {
        self.undo.clear();
        self.kept = self.bytes.len();
    }

    pub(crate) fn undo(&mut self) {
        while let Some((slot, before)) = self.undo.pop() {
            self.over[slot] = before;
        }
        self.bytes.truncate(self.kept);
    }

    /// At most this many keys were written.
    pub(crate) fn written(&self) -> usize {
        self.over.len()
    }

    pub(crate) fn written_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn drain_into(&self, distinct: &Distinct, writes: &mut Writes) {
        for (slot, written) in self.over.iter().enumerate().filter(|(_, written)| written.writer != NOBODY) {
            writes.entries.push(written.writer);
            writes.stores.push(self.store);
            column::push(&mut writes.keys, Some(distinct.key(slot)));
            column::push(&mut writes.values, written.span.of(&self.bytes));
        }
    }

    #[inline]
    fn set(&mut self, slot: usize, slots: usize, written: Written) {
        if self.over.is_empty() {
            self.over.resize(slots, UNWRITTEN);
        }
        let before = std::mem::replace(&mut self.over[slot], written);
        self.undo.push((slot, before));
    }

    fn fetch_all(&mut self, host: &dyn Host, keys: &Column) {
        let values = host.get_many(self.store, keys);
        let mut start = 0;
        self.base.extend(values.lengths.iter().map(|&length| {
            let span = Span { start, length };
            start += usize::try_from(length).unwrap_or(0);
            span
        }));
        self.fetched = Some(values.bytes);
    }
}

impl Span {
    #[inline]
    fn of(self, bytes: &[u8]) -> Option<&[u8]> {
        let length = usize::try_from(self.length).ok()?;
        Some(&bytes[self.start..self.start + length])
    }
}
