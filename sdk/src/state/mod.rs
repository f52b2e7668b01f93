//! State of a call: what was fetched from the host, with the call's own writes on top. A record's writes join the view
//! for good only when the record succeeds.

/// The distinct keys of a batch.
mod distinct;
/// Stores of one value per record key.
mod keyed;
/// Stores over the whole partition.
mod partition;
/// Bounded scans that see the call's own writes.
mod scan;

use pelton_bindings_transform::pelton::plugin::types::{Batch, Writes};

use crate::column;
use crate::error::Error;
use distinct::{Distinct, NULL};
use keyed::Keyed;

pub(crate) use partition::Partition;
pub use scan::{Page, Scan};

use crate::host::Host;

/// All state of a call.
pub(crate) struct State {
    distinct: Distinct,
    keyed: Vec<Keyed>,
    pub(crate) partition: Vec<Partition>,
}

/// Whose state, and on whose behalf.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) batch: &'a Batch,
    pub(crate) entry: u32,
}

impl State {
    /// `keyed` and `partition` are the host's numbers of the stores, in order of declaration.
    pub(crate) fn new(keyed: Vec<u32>, partition: Vec<u32>) -> Self {
        Self {
            distinct: Distinct::default(),
            keyed: keyed.into_iter().map(Keyed::new).collect(),
            partition: partition.into_iter().map(Partition::new).collect(),
        }
    }

    /// Starts a call: everything that the last one fetched is forgotten.
    pub(crate) fn begin(&mut self) {
        self.distinct.clear();
        self.keyed.iter_mut().for_each(Keyed::clear);
        self.partition.iter_mut().for_each(Partition::clear);
    }

    /// The value of the current record's key.
    #[inline]
    pub(crate) fn get(&mut self, at: usize, access: &Access<'_>) -> Result<Option<&[u8]>, Error> {
        let slot = self.slot(access)?;
        let store = &mut self.keyed[at];
        store.fetch(access.host, self.distinct.keys());
        Ok(store.get(slot))
    }

    /// Writes the value of the current record's key, by `write` appending to a buffer.
    #[inline]
    pub(crate) fn put(
        &mut self,
        at: usize,
        access: &Access<'_>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let slot = self.slot(access)?;
        self.keyed[at].put(slot, access.entry, self.distinct.len(), write)
    }

    /// Deletes the value of the current record's key.
    pub(crate) fn delete(&mut self, at: usize, access: &Access<'_>) -> Result<(), Error> {
        let slot = self.slot(access)?;
        self.keyed[at].delete(slot, access.entry, self.distinct.len());
        Ok(())
    }

    /// The record succeeded: its writes stay.
    #[inline]
    pub(crate) fn keep(&mut self) {
        self.keyed.iter_mut().for_each(Keyed::keep);
        self.partition.iter_mut().for_each(Partition::keep);
    }

    /// The record failed: its writes are undone.
    pub(crate) fn undo(&mut self) {
        self.keyed.iter_mut().for_each(Keyed::undo);
        self.partition.iter_mut().for_each(Partition::undo);
    }

    /// Ends the call: each key that was written, once.
    pub(crate) fn take(&mut self) -> Writes {
        let count = self.keyed.iter().map(Keyed::written).sum::<usize>()
            + self.partition.iter().map(Partition::written).sum::<usize>();
        let mut writes = Writes {
            entries: Vec::with_capacity(count),
            stores: Vec::with_capacity(count),
            keys: column::with_capacity(count, 16 * count),
            values: column::with_capacity(count, self.keyed.iter().map(Keyed::written_bytes).sum()),
        };
        self.keyed.iter().for_each(|store| store.drain_into(&self.distinct, &mut writes));
        self.partition.iter().for_each(|store| store.drain_into(&mut writes));
        writes
    }

    #[inline]
    fn slot(&mut self, access: &Access<'_>) -> Result<usize, Error> {
        match self.distinct.slot(access.batch, access.entry) {
            NULL => Err(Error::reject("null-key", "key is null; this plugin keeps state by key")),
            slot => Ok(slot as usize),
        }
    }
}
