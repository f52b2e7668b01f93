//! Reading one partition: whole chunks are taken from the database and handed on in runs of columns.

use super::columns::{self, Cursor};
use super::inner::Inner;
use super::topic::{Topic, Wake};
use crate::model::log::{FetchLimit, Source};
use crate::model::{Batch, Fault, TopicPartition};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) struct LocalSource {
    inner: Arc<Inner>,
    topic: Arc<Topic>,
    place: TopicPartition,
    number: u64,
    /// `None` before the first seek.
    position: Option<i64>,
    /// The chunk read last, and how far it has been handed on.
    chunk: Batch,
    cursor: Cursor,
    at_end: bool,
    wake: Option<Wake>,
}

impl LocalSource {
    pub(super) fn new(inner: Arc<Inner>, place: &TopicPartition, position: Option<i64>) -> Result<LocalSource, Fault> {
        let topic = inner.existing(&place.topic)?;
        topic.partition(place.partition)?;
        let number = inner.number();
        Ok(LocalSource {
            inner,
            topic,
            place: place.clone(),
            number,
            position,
            chunk: Batch::default(),
            cursor: Cursor::default(),
            at_end: false,
            wake: None,
        })
    }

    /// Waits for something to read, and returns where from and up to where.
    fn wait(&self, wait: Duration) -> Result<Option<(i64, i64)>, Fault> {
        let partition = self.topic.partition(self.place.partition)?;
        let (topic, position) = (&self.topic, self.position.unwrap_or(i64::MAX));
        self.inner.wait_while(wait, |_| partition.end() <= position && !topic.deleted.load(Ordering::Acquire));
        topic.check_alive()?;
        let Some(position) = self.position else { return Ok(None) };
        let ends = partition.ends();
        if position < ends.start || position > ends.end {
            return Err(out_of_range(&self.place, position, ends.start, ends.end));
        }
        Ok(Some((position, ends.end)))
    }

    /// Hands on what the chunk in memory has, within the limit. Returns records and bytes.
    fn take(&mut self, batch: &mut Batch, limit: FetchLimit, end: i64) -> (usize, usize) {
        let visible = self.chunk.offsets.partition_point(|&offset| offset < end);
        let to = self.cursor.run(&self.chunk, limit, visible);
        columns::append(&self.chunk, self.cursor, to, batch);
        let taken = (to.entry - self.cursor.entry, to.bytes_since(self.cursor));
        if to.entry > self.cursor.entry {
            self.position = Some(self.chunk.offsets[to.entry - 1] + 1);
        }
        self.cursor = to;
        taken
    }

    /// Appends up to the limit, from `position` up to `end`. Chunks are walked in one go.
    fn fill(&mut self, batch: &mut Batch, limit: FetchLimit, position: i64, end: i64) -> Result<usize, Fault> {
        let inner = self.inner.clone();
        let (mut records, mut bytes) = self.take(batch, limit, end);
        let mut chunks = None;
        while self.cursor.entry == self.chunk.len() && records < limit.records {
            if chunks.is_none() {
                let from = self.position.unwrap_or(position);
                chunks = Some(inner.storage.chunks(self.topic.record.number, self.place.partition, from)?);
            }
            if !self.load(chunks.as_mut(), end)? {
                break;
            }
            if records > 0 && bytes >= limit.bytes {
                break;
            }
            let rest = FetchLimit { records: limit.records - records, bytes: limit.bytes.saturating_sub(bytes) };
            if records > 0 && !self.first_fits(rest.bytes) {
                break;
            }
            let (more, size) = self.take(batch, rest, end);
            records += more;
            bytes += size;
        }
        Ok(records)
    }

    /// Reads the next chunk; false at the end, where the position moves past what compaction has removed.
    fn load(&mut self, chunks: Option<&mut super::storage::Chunks<'_>>, end: i64) -> Result<bool, Fault> {
        let position = self.position.unwrap_or(end);
        let found = match chunks {
            Some(chunks) => chunks.next(&mut self.chunk)?.is_some(),
            None => false,
        };
        self.cursor = Cursor::default().skip_to(&self.chunk, position);
        let visible = found && self.chunk.offsets.get(self.cursor.entry).is_some_and(|&offset| offset < end);
        if !visible {
            self.forget();
            self.position = Some(end);
        }
        Ok(visible)
    }

    fn first_fits(&self, bytes: usize) -> bool {
        let one = FetchLimit { records: 1, bytes: usize::MAX };
        self.cursor.run(&self.chunk, one, self.chunk.len()).bytes_since(self.cursor) <= bytes
    }

    fn forget(&mut self) {
        self.chunk.clear();
        self.cursor = Cursor::default();
    }

    fn wake_if_ready(&self) {
        let ready = self.topic.partitions[self.place.partition as usize].end() > self.position.unwrap_or(i64::MAX);
        if let Some(wake) = self.wake.as_ref().filter(|_| ready) {
            wake();
        }
    }
}

impl Source for LocalSource {
    fn partition(&self) -> &TopicPartition {
        &self.place
    }

    fn seek(&mut self, offset: i64) -> Result<(), Fault> {
        self.topic.check_alive()?;
        self.forget();
        self.position = Some(offset);
        self.at_end = false;
        self.wake_if_ready();
        Ok(())
    }

    fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit, wait: Duration) -> Result<usize, Fault> {
        let Some((position, end)) = self.wait(wait)? else { return Ok(0) };
        let records = self.fill(batch, limit, position, end)?;
        self.at_end = self.position == Some(end);
        Ok(records)
    }

    fn position(&self) -> i64 {
        self.position.unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn on_ready(&mut self, wake: Wake) {
        self.topic.partitions[self.place.partition as usize].add_wake(self.number, wake.clone());
        self.wake = Some(wake);
        self.wake_if_ready();
    }
}

impl Drop for LocalSource {
    fn drop(&mut self) {
        self.topic.partitions[self.place.partition as usize].remove_wake(self.number);
    }
}

fn out_of_range(place: &TopicPartition, position: i64, start: i64, end: i64) -> Fault {
    let message = format!("offset {position} of {place} is gone: the log has {start} to {end}");
    Fault::fatal("offset-out-of-range", message).hint("start the group anew, or from an offset that is there")
}
