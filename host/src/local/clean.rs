//! Compaction: of each key the last record stays, offsets stay as they are, and tombstones stay long enough to be read.
//!
//! A partition is cleaned when it holds more than twice what its last cleaning left. The work is done a little at each commit,
//! in two passes as in Kafka: the last offset of each key, then the chunks written anew without what is superseded. A pass
//! that dies with its process starts over; what it has written stays right.

use super::chunk::{self, CHUNK_LIMIT, NO_HORIZON};
use super::columns::{self, Cursor};
use super::inner::Inner;
use super::keys;
use super::storage::Storage;
use super::topic::Topic;
use crate::model::{Batch, Fault, TopicPartition};
use rocksdb::WriteBatch;
use std::collections::HashMap;
use std::sync::Arc;

/// Records that a partition may hold beyond twice its keys.
const SLACK: i64 = 4096;
/// Records looked at in one step, beyond four for each record just appended: that is enough to keep up, since both passes
/// together look at twice the records of a partition that has doubled.
const STEP: usize = 4096;

/// The cleaning under way, if any.
#[derive(Default)]
pub(super) struct Cleaner {
    current: Option<Cleaning>,
}

struct Cleaning {
    topic: Arc<Topic>,
    partition: i32,
    /// Records from here on came after the cleaning began.
    until: i64,
    /// Where the pass is.
    next: i64,
    /// First pass: still collecting.
    mapping: bool,
    latest: HashMap<Vec<u8>, i64>,
    kept: i64,
}

/// Survivors of a few chunks, to be written as one batch with the removal of those.
struct Rewrite<'s> {
    storage: &'s Storage,
    batch: WriteBatch,
    number: u32,
    partition: i32,
    out: Batch,
    out_bytes: usize,
    horizon: i64,
    seen: i64,
    kept: i64,
}

impl Cleaner {
    /// Does a bounded piece of work after a commit of `appended` records.
    pub(super) fn step(&mut self, log: &Inner, appended: usize) -> Result<(), Fault> {
        if self.current.is_none() {
            self.current = find(log);
        }
        let Some(cleaning) = &mut self.current else { return Ok(()) };
        let budget = STEP + 4 * appended;
        let done = if cleaning.mapping { cleaning.map(&log.storage, budget) } else { cleaning.rewrite(log, budget) }?;
        if done {
            self.current = None;
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, topic: &Arc<Topic>) {
        self.current.take_if(|cleaning| Arc::ptr_eq(&cleaning.topic, topic));
    }
}

/// Removes the chunks that lie before `offset` as a whole; the partition's start hides the rest.
pub(super) fn delete_before(log: &Inner, place: &TopicPartition, offset: i64) -> Result<(), Fault> {
    let topic = log.existing(&place.topic)?;
    let (number, partition) = (topic.record.number, topic.partition(place.partition)?);
    let mut record = partition.get();
    record.start = offset.clamp(record.start, record.end);
    let (mut batch, mut records) = (WriteBatch::default(), Batch::default());
    let mut chunks = log.storage.chunks(number, place.partition, 0)?;
    while chunks.next(&mut records)?.is_some() && records.offsets.last().is_some_and(|&last| last < record.start) {
        record.records -= records.len() as i64;
        log.storage.delete_chunk(&mut batch, keys::chunk(number, place.partition, records.offsets[0]))?;
    }
    log.storage.put_partition(&mut batch, number, place.partition, &record)?;
    log.storage.write(batch, true)?;
    partition.set(record);
    Ok(())
}

/// A partition that is due.
fn find(log: &Inner) -> Option<Cleaning> {
    let state = log.state();
    let compacted = state.topics.values().filter(|topic| topic.limits.compact);
    for topic in compacted {
        for (number, partition) in (0..).zip(&topic.partitions) {
            let record = partition.get();
            if record.records > 2 * record.cleaned + SLACK {
                return Some(Cleaning::new(topic.clone(), number, record.end));
            }
        }
    }
    None
}

impl Cleaning {
    fn new(topic: Arc<Topic>, partition: i32, until: i64) -> Cleaning {
        Cleaning { topic, partition, until, next: 0, mapping: true, latest: HashMap::new(), kept: 0 }
    }

    /// First pass. Never done: the second follows.
    fn map(&mut self, storage: &Storage, mut budget: usize) -> Result<bool, Fault> {
        let mut chunks = storage.chunks(self.topic.record.number, self.partition, self.next)?;
        let mut records = Batch::default();
        while budget > 0 {
            if chunks.next(&mut records)?.is_none() || records.offsets[0] >= self.until {
                (self.mapping, self.next) = (false, 0);
                break;
            }
            budget = budget.saturating_sub(records.len());
            self.note(&records);
        }
        Ok(false)
    }

    fn note(&mut self, records: &Batch) {
        for (offset, record) in records.iter() {
            let key = record.key.unwrap_or_default();
            match self.latest.get_mut(key) {
                Some(latest) => *latest = offset,
                None => drop(self.latest.insert(key.to_vec(), offset)),
            }
            self.next = offset + 1;
        }
    }

    /// Second pass. True when it has come to its end.
    fn rewrite(&mut self, log: &Inner, mut budget: usize) -> Result<bool, Fault> {
        let (now, retention) = (log.clock.wall_ms(), self.topic.limits.delete_retention_ms);
        let mut chunks = log.storage.chunks(self.topic.record.number, self.partition, self.next)?;
        let mut rewrite = Rewrite::new(&log.storage, self.topic.record.number, self.partition);
        let mut records = Batch::default();
        let mut done = false;
        while budget > 0 && !done {
            match chunks.next(&mut records)? {
                Some(horizon) if records.offsets[0] < self.until => {
                    budget = budget.saturating_sub(records.len());
                    self.next = records.offsets.last().map_or(self.until, |last| last + 1);
                    let expired = horizon != NO_HORIZON && now >= horizon;
                    let new_horizon = if horizon == NO_HORIZON { now.saturating_add(retention) } else { horizon };
                    rewrite.replace(&records, &self.latest, expired, new_horizon)?;
                }
                _ => done = true,
            }
        }
        self.finish(rewrite, done)?;
        Ok(done)
    }

    fn finish(&mut self, mut rewrite: Rewrite<'_>, done: bool) -> Result<(), Fault> {
        rewrite.flush()?;
        self.kept += rewrite.kept;
        let partition = self.topic.partition(self.partition)?;
        let mut record = partition.get();
        record.records -= rewrite.seen - rewrite.kept;
        if done {
            record.cleaned = self.kept;
        }
        let Rewrite { storage, mut batch, number, .. } = rewrite;
        storage.put_partition(&mut batch, number, self.partition, &record)?;
        // Not synced: the next commit's sync covers it, and until then either state is right.
        storage.write(batch, false)?;
        partition.set(record);
        Ok(())
    }
}

impl<'s> Rewrite<'s> {
    fn new(storage: &'s Storage, number: u32, partition: i32) -> Rewrite<'s> {
        Rewrite {
            storage,
            batch: WriteBatch::default(),
            number,
            partition,
            out: Batch::default(),
            out_bytes: 0,
            horizon: NO_HORIZON,
            seen: 0,
            kept: 0,
        }
    }

    /// Removes a chunk and keeps those of its records that are the last of their key. `expired` drops its tombstones.
    fn replace(
        &mut self,
        records: &Batch,
        latest: &HashMap<Vec<u8>, i64>,
        expired: bool,
        horizon: i64,
    ) -> Result<(), Fault> {
        self.storage.delete_chunk(&mut self.batch, keys::chunk(self.number, self.partition, records.offsets[0]))?;
        self.seen += records.len() as i64;
        let mut at = Cursor::default();
        for (offset, record) in records.iter() {
            let next = at.skip_to(records, offset + 1);
            let last = latest.get(record.key.unwrap_or_default()) == Some(&offset);
            if last && !(expired && record.value.is_none()) {
                self.keep(records, at, next)?;
                if record.value.is_none() {
                    self.horizon = self.horizon.max(horizon);
                }
            }
            at = next;
        }
        Ok(())
    }

    fn keep(&mut self, records: &Batch, at: Cursor, next: Cursor) -> Result<(), Fault> {
        let size = next.bytes_since(at);
        let full = self.out.len() >= CHUNK_LIMIT.records || self.out_bytes + size > CHUNK_LIMIT.bytes;
        if full {
            self.flush()?;
        }
        columns::append(records, at, next, &mut self.out);
        self.out_bytes += size;
        self.kept += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if let Some(&base) = self.out.offsets.first() {
            let end = Cursor::default().skip_to(&self.out, i64::MAX);
            let value = chunk::encode(&self.out, Cursor::default(), end, self.horizon);
            self.storage.put_chunk(&mut self.batch, keys::chunk(self.number, self.partition, base), &value)?;
        }
        self.out.clear();
        self.out_bytes = 0;
        self.horizon = NO_HORIZON;
        Ok(())
    }
}
