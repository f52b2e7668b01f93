//! The park: records that wait for a retry while their partition goes on (`ordering = "key"`), and later records of their keys behind
//! them. An internal store holds them, so that they are in the changelog and follow the partition; an index of them is in memory.
//!
//! A record is parked in the commit that covers its offset, and leaves with its effects in one commit too: at any commit each input
//! offset is done, or parked, or still to come.

mod entry;
mod form;
mod index;
mod key;

pub(super) use form::Formed;

use super::work::Moment;
use super::{ProcessorSpec, retry};
use crate::config::{Ordering, Parking};
use crate::delivery::Attempts;
use crate::model::ids::PARKED_STORE;
use crate::model::log::{Delivery, Origin};
use crate::model::manifest::{Scope, StoreSpec};
use crate::model::{Batch, Failure, Fault, RecordRef};
use crate::state::Stores;
use entry::Entry;
use form::{Room, form};
use index::{Index, Key, Slot};
use key::Place;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The park of one task.
#[derive(Debug)]
pub(super) struct Park {
    /// Number of its store.
    store: usize,
    bounds: Parking,
    /// Topics of the inputs, in the order that batches index.
    topics: Vec<Arc<str>>,
    /// Nothing is parked any more; what is there is worked off before new input is taken.
    draining: bool,
    index: Index,
    /// The index must be made anew from the store before it is used.
    stale: bool,
    /// Something was parked or released since the last commit.
    changed: bool,
    /// What is taken back may be in the changelog all the same, and has to be taken back there too.
    reasserts: bool,
    /// Records that failed outside the plugin, with the reason: dead letters when they are met.
    excluded: BTreeMap<(u32, i64), Failure>,
    /// Of those, the ones that are done since the last commit.
    spent: Vec<(u32, i64)>,
    /// What is remembered of records that failed since the last commit: what failed has failed, also after an abort.
    failed: BTreeMap<(u32, i64), Attempts>,
    /// Whether a record that is due goes before new input.
    first: bool,
    /// How many parked records metrics know of.
    shown: usize,
}

/// A parked record that is its key's head, on its way through the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    key: Key,
    pub(super) slot: Slot,
    /// What is remembered of its failures.
    pub(super) attempts: Option<Attempts>,
}

/// The store in which records are parked; the last one of its task.
pub(super) fn store() -> StoreSpec {
    StoreSpec {
        name: PARKED_STORE.to_owned(),
        scope: Scope::Key,
        codec: entry::CODEC.to_owned(),
        schema_version: 1,
        reads_from: 1,
    }
}

impl Park {
    /// The park of a task of this processor; its index is still to be made.
    pub(super) fn new(spec: &ProcessorSpec) -> Park {
        Park {
            store: spec.stores.len(),
            bounds: spec.parking.clone(),
            topics: spec.inputs.iter().map(|input| input.topic.clone()).collect(),
            draining: spec.ordering == Ordering::Partition,
            reasserts: spec.delivery == Delivery::AtLeastOnce,
            index: Index::default(),
            stale: true,
            changed: false,
            excluded: BTreeMap::new(),
            spent: Vec::new(),
            failed: BTreeMap::new(),
            first: false,
            shown: 0,
        }
    }

    /// Makes the index from the store where an abort or a start has made it useless. Nothing may be staged at that moment.
    ///
    /// `Fatal` `parked-input-gone` where records of a topic are parked that is no input any more.
    pub(super) fn refresh(&mut self, stores: &Stores, now: Moment) -> Result<(), Fault> {
        self.index = Index::default();
        let (mut slots, mut of, mut tried) = (Vec::new(), Vec::new(), None);
        for item in stores.dump(self.store)? {
            let (place, stored) = item?;
            let (place, entry) = (key::decode(&place)?, Entry::decode(&stored)?);
            if place.key != of {
                self.index.load(&of, std::mem::take(&mut slots), tried.take());
                place.key.clone_into(&mut of);
            }
            let slot = self.slot(&place, &entry, now)?;
            tried = tried.or_else(|| entry.attempts(place.offset).map(|_| slot.input));
            slots.push(slot);
        }
        self.index.load(&of, slots, tried);
        self.stale = false;
        Ok(())
    }

    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether nothing waits, as far as that is known.
    pub(super) fn is_idle(&self) -> bool {
        !self.stale && self.index.is_empty()
    }

    pub(super) fn records(&self) -> usize {
        self.index.records()
    }

    /// What is remembered of a record that failed since the last commit, also where that was aborted since.
    pub(super) fn failed(&self, input: u32, offset: i64) -> Option<Attempts> {
        self.failed.get(&(input, offset)).copied()
    }

    /// Whether the record's key has something parked.
    pub(super) fn waits(&self, key: Option<&[u8]>) -> bool {
        key.is_some_and(|key| self.index.waits(key))
    }

    pub(super) fn has_progress(&self) -> bool {
        self.changed
    }

    /// Whether new input may be taken.
    pub(super) fn is_open(&self) -> bool {
        match self.draining {
            true => self.index.is_empty(),
            false => self.index.records() < self.bounds.records && self.index.bytes() < self.bounds.bytes,
        }
    }

    /// Whether a record may be parked, of a record that failed.
    pub(super) fn takes(&self, record: &RecordRef<'_>, largest: u64) -> bool {
        !self.draining && record.key.is_some() && self.room(largest).takes(record)
    }

    /// Parts the next records of an input. `largest` as in [`Room`].
    pub(super) fn form(&self, batch: Batch, largest: u64) -> Formed {
        match self.index.is_empty() {
            true => Formed::whole(batch),
            false => form(batch, self.room(largest), |key| self.index.waits(key)),
        }
    }

    /// When the next head is due, on the monotonic clock.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.index.next_due()
    }

    /// Whether it is the park's turn, new input or not; they take turns.
    pub(super) fn goes_first(&self) -> bool {
        self.first || !self.is_open()
    }

    pub(super) fn took_turn(&mut self, released: bool) {
        self.first = !released;
    }

    /// Parks a record; one that is parked already stays as it is.
    pub(super) fn park(
        &mut self,
        stores: &mut Stores,
        (record, attempts): (&RecordRef<'_>, Option<&Attempts>),
        origin: Origin,
        now: Moment,
    ) -> Result<(), Fault> {
        let (input, offset) = (u32::from(origin.input), origin.offset);
        let key = record.key.unwrap_or_default();
        if self.index.has(key, input, offset) {
            return Ok(());
        }
        let place = Place { key, topic: self.topic(input), offset };
        stores.put(self.store, &key::encode(&place), Some(&Entry::new(record, attempts).encode()?), origin);
        let due = attempts.map_or(now.monotonic, |attempts| retry::due(attempts, now));
        self.index.push(key, Slot { input, offset, bytes: form::size(record), due });
        self.failed.extend(attempts.map(|attempts| ((input, offset), *attempts)));
        self.changed = true;
        Ok(())
    }

    /// The head that has been due for longest, read into `batch`, whose input, too, becomes the record's.
    pub(super) fn head(&self, stores: &mut Stores, now: Moment, batch: &mut Batch) -> Result<Option<Head>, Fault> {
        let Some((key, slot)) = self.index.head(now.monotonic) else { return Ok(None) };
        let place = Place { key: &key, topic: self.topic(slot.input), offset: slot.offset };
        let Some(stored) = stores.get(self.store, &key::encode(&place))? else {
            let message =
                format!("the parked record of {} at offset {} is not in the store", place.topic, place.offset);
            return Err(Fault::corrupt("parked-missing", message));
        };
        let entry = Entry::decode(&stored)?;
        batch.input = slot.input;
        entry.fill(&place, batch);
        let attempts = entry.attempts(slot.offset);
        Ok(Some(Head { key, slot, attempts }))
    }

    /// The head is done, or dead: it leaves with its effects.
    pub(super) fn release(&mut self, stores: &mut Stores, head: &Head, origin: Origin, now: Moment) {
        let place = Place { key: &head.key, topic: self.topic(head.slot.input), offset: head.slot.offset };
        stores.put(self.store, &key::encode(&place), None, origin);
        self.index.done(&head.key, now.monotonic);
        let at = (head.slot.input, head.slot.offset);
        if self.excluded.contains_key(&at) {
            self.spent.push(at);
        }
        self.changed = true;
    }

    /// The head failed again and keeps its place.
    pub(super) fn again(
        &mut self,
        stores: &mut Stores,
        (head, record): (&Head, &RecordRef<'_>),
        attempts: &Attempts,
        (origin, now): (Origin, Moment),
    ) -> Result<(), Fault> {
        let place = Place { key: &head.key, topic: self.topic(head.slot.input), offset: head.slot.offset };
        stores.put(self.store, &key::encode(&place), Some(&Entry::new(record, Some(attempts)).encode()?), origin);
        self.index.again(&head.key, retry::due(attempts, now));
        self.failed.insert((head.slot.input, head.slot.offset), *attempts);
        self.changed = true;
        Ok(())
    }

    /// Marks a parked record as failed. False where it was marked already.
    pub(super) fn exclude(&mut self, input: u32, offset: i64, failure: Failure) -> bool {
        self.excluded.insert((input, offset), failure).is_none()
    }

    /// Why a parked record is not shown to the plugin again.
    pub(super) fn excluded(&self, slot: &Slot) -> Option<&Failure> {
        self.excluded.get(&(slot.input, slot.offset))
    }

    /// By how many records the park has grown (or shrunk) since this was asked last.
    pub(super) fn growth(&mut self) -> i64 {
        let before = std::mem::replace(&mut self.shown, self.index.records());
        self.index.records() as i64 - before as i64
    }

    /// How many parked records [`Park::growth`] has told of.
    pub(super) fn shown(&self) -> i64 {
        self.shown as i64
    }

    /// Everything since the last commit is committed.
    pub(super) fn settle(&mut self) {
        self.index.settle();
        self.spent.drain(..).for_each(|at| drop(self.excluded.remove(&at)));
        self.failed.clear();
        self.changed = false;
    }

    /// Everything since the last commit is taken back, of all stores.
    ///
    /// Without transactions the changelog may have what was staged. Then the store's word is said again with the next commit, so that
    /// nobody restores a record that is not parked.
    pub(super) fn rewind(&mut self, stores: &mut Stores) {
        let staged: Vec<(Vec<u8>, Origin)> = match self.reasserts && self.changed {
            true => stores.overlay(self.store).map(|change| (change.key.to_vec(), change.origin)).collect(),
            false => Vec::new(),
        };
        stores.discard();
        for (key, origin) in staged {
            // where it cannot be read, the refresh that follows fails as well, and says so
            if let Ok(value) = stores.get(self.store, &key) {
                stores.put(self.store, &key, value.as_deref(), origin);
            }
        }
        self.stale |= self.changed;
        self.spent.clear();
        self.changed = false;
    }

    fn room(&self, largest: u64) -> Room {
        Room {
            records: self.bounds.records.saturating_sub(self.index.records()),
            bytes: self.bounds.bytes.saturating_sub(self.index.bytes()),
            largest,
        }
    }

    fn slot(&self, place: &Place<'_>, entry: &Entry<'_>, now: Moment) -> Result<Slot, Fault> {
        let Some(input) = self.topics.iter().position(|topic| **topic == *place.topic) else {
            return Err(gone(place.topic));
        };
        let due = entry.attempts(place.offset).map_or(now.monotonic, |attempts| retry::due(&attempts, now));
        let bytes = place.key.len() as u64 + entry.bytes();
        Ok(Slot { input: input as u32, offset: place.offset, bytes, due })
    }

    fn topic(&self, input: u32) -> &str {
        self.topics.get(input as usize).map_or("", |topic| topic)
    }
}

/// Input and offset of a parked record, by its key in the store.
#[cfg(test)]
pub(super) fn place(key: &[u8]) -> (String, i64) {
    let place = key::decode(key).unwrap();
    (place.topic.to_owned(), place.offset)
}

fn gone(topic: &str) -> Fault {
    let message = format!("records of topic {topic} are parked, and it is no input of the processor any more");
    Fault::fatal("parked-input-gone", message).hint("make it an input again until they are worked off")
}
