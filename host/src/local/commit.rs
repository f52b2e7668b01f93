//! A commit: records of any topics and offsets of any groups, in one atomic write that is on disk when it returns.

use super::chunk::{self, CHUNK_LIMIT, NO_HORIZON};
use super::columns::Cursor;
use super::inner::{Inner, lock};
use super::keys;
use super::topic::{PartitionRecord, Topic};
use crate::model::log::OffsetCommit;
use crate::model::{Batch, Fault};
use rocksdb::WriteBatch;
use std::sync::Arc;

/// Records for one topic, by partition, not committed yet.
pub(super) struct Pending {
    pub(super) topic: Arc<Topic>,
    pub(super) partitions: Vec<Batch>,
    /// One past the highest offset committed, by partition.
    pub(super) acknowledged: Vec<Option<i64>>,
}

pub(super) struct PendingOffset {
    pub(super) group: Arc<str>,
    pub(super) commit: OffsetCommit,
}

impl Pending {
    pub(super) fn new(topic: Arc<Topic>) -> Pending {
        let count = topic.partitions.len();
        let partitions = (0..count).map(|_| Batch::default()).collect();
        Pending { topic, partitions, acknowledged: vec![None; count] }
    }

    pub(super) fn clear(&mut self) {
        self.partitions.iter_mut().for_each(Batch::clear);
    }

    /// The partitions with something to commit.
    fn filled(&mut self) -> impl Iterator<Item = (i32, &mut Batch)> {
        (0..).zip(&mut self.partitions).filter(|(_, records)| !records.is_empty())
    }
}

impl Inner {
    /// Commits and empties what is pending. `check` runs under the lock and may still refuse. On a fault nothing is visible.
    pub(super) fn commit(
        &self,
        pending: &mut [Pending],
        offsets: &[PendingOffset],
        check: impl FnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut cleaner = lock(&self.commit);
        check()?;
        let mut batch = WriteBatch::default();
        self.add_offsets(&mut batch, offsets)?;
        for target in pending.iter_mut() {
            self.add_records(&mut batch, target)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.storage.write(batch, true)?;
        let appended = self.publish(pending);
        cleaner.step(self, appended)
    }

    fn add_offsets(&self, batch: &mut WriteBatch, offsets: &[PendingOffset]) -> Result<(), Fault> {
        for PendingOffset { group, commit } in offsets {
            let number = self.existing(&commit.partition.topic)?.record.number;
            self.storage.put_offset(batch, number, group, commit)?;
        }
        Ok(())
    }

    fn add_records(&self, batch: &mut WriteBatch, target: &mut Pending) -> Result<(), Fault> {
        let topic = target.topic.clone();
        for (partition, records) in target.filled() {
            topic.check_alive()?;
            let mut place = topic.partition(partition)?.get();
            records.offsets.clear();
            records.offsets.extend(place.end..place.end + records.timestamps.len() as i64);
            self.add_chunks(batch, topic.record.number, partition, records)?;
            extend(&mut place, records);
            self.storage.put_partition(batch, topic.record.number, partition, &place)?;
        }
        Ok(())
    }

    fn add_chunks(&self, batch: &mut WriteBatch, number: u32, partition: i32, records: &Batch) -> Result<(), Fault> {
        let mut start = Cursor::default();
        while start.entry < records.len() {
            let end = start.run(records, CHUNK_LIMIT, records.len());
            let key = keys::chunk(number, partition, records.offsets[start.entry]);
            self.storage.put_chunk(batch, key, &chunk::encode(records, start, end, NO_HORIZON))?;
            start = end;
        }
        Ok(())
    }

    /// Shows readers what has been written, and returns how many records that were.
    fn publish(&self, pending: &mut [Pending]) -> usize {
        let mut appended = 0;
        for target in pending.iter_mut() {
            let (topic, mut acknowledged) = (target.topic.clone(), std::mem::take(&mut target.acknowledged));
            for (partition, records) in target.filled() {
                let at = &topic.partitions[partition as usize];
                let mut place = at.get();
                extend(&mut place, records);
                at.set(place);
                acknowledged[partition as usize] = Some(place.end);
                appended += records.len();
            }
            target.acknowledged = acknowledged;
        }
        self.notify();
        wake_and_clear(pending);
        appended
    }
}

fn extend(place: &mut PartitionRecord, records: &Batch) {
    place.end += records.len() as i64;
    place.records += records.len() as i64;
}

fn wake_and_clear(pending: &mut [Pending]) {
    for target in pending {
        let topic = target.topic.clone();
        target.filled().for_each(|(partition, _)| topic.partitions[partition as usize].wake());
        target.clear();
    }
}
