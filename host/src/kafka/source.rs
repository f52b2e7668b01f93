//! One partition's records, from a queue of its own, and where it stands in them.

use super::context::Context;
use super::raw::{Fetched, Queue, Wake};
use super::{CALL, faults};
use crate::model::log::{FetchLimit, Source};
use crate::model::{Batch, Fault, TopicPartition};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) type Consumer = BaseConsumer<Context>;

/// What the member that gave a source says to it.
#[derive(Default)]
pub(super) struct Signals {
    /// The partition was given back or lost: the source reads nothing any more.
    pub(super) gone: AtomicBool,
    /// Records went to the wrong queue: read again from the position.
    pub(super) rewind: AtomicBool,
}

pub(super) struct KafkaSource {
    /// Before the consumer, so that it is dropped first.
    queue: Queue,
    consumer: Arc<Consumer>,
    partition: TopicPartition,
    signals: Arc<Signals>,
    state: State,
}

struct State {
    /// `None` before the first seek.
    position: Option<i64>,
    at_end: bool,
    /// A record that did not fit the last batch.
    held: Batch,
    /// What happened after the records of the last batch.
    event: Option<(Code, i64)>,
}

/// One fetch under way.
struct Filling<'a> {
    state: &'a mut State,
    batch: &'a mut Batch,
    limit: FetchLimit,
    /// Bytes of the batch when the fetch began.
    before: usize,
    taken: usize,
}

impl KafkaSource {
    /// A source that reads nothing before its first seek. The partition is assigned and paused.
    pub(super) fn paused(
        queue: Queue,
        consumer: Arc<Consumer>,
        partition: TopicPartition,
        signals: Arc<Signals>,
    ) -> KafkaSource {
        let state = State { position: None, at_end: false, held: Batch::default(), event: None };
        KafkaSource { queue, consumer, partition, signals, state }
    }

    /// A source that has been assigned at `offset`.
    pub(super) fn reading(
        queue: Queue,
        consumer: Arc<Consumer>,
        partition: TopicPartition,
        offset: i64,
    ) -> KafkaSource {
        let mut source = KafkaSource::paused(queue, consumer, partition, Arc::default());
        source.state.position = Some(offset);
        source
    }

    fn owned(&self) -> Result<(), Fault> {
        if self.signals.gone.load(Ordering::Acquire) {
            return Err(Fault::transient(
                "partition-gone",
                format!("{} is not this member's any more", self.partition),
            ));
        }
        Ok(())
    }

    /// Puts right what the member found on its own queue.
    fn mend(&mut self) -> Result<(), Fault> {
        if self.signals.rewind.swap(false, Ordering::AcqRel) {
            self.queue.cut();
            let position = self.state.position.unwrap_or(0);
            self.seek(position).inspect_err(|_| self.signals.rewind.store(true, Ordering::Release))?;
        }
        Ok(())
    }

    fn list(&self, offset: i64) -> Result<TopicPartitionList, Fault> {
        let mut list = TopicPartitionList::with_capacity(1);
        let (topic, partition) = (&self.partition.topic, self.partition.partition);
        list.add_partition_offset(topic, partition, Offset::Offset(offset))
            .map_err(|error| faults::of(&error, format!("seeking {} to {offset}", self.partition)))?;
        Ok(list)
    }

    /// Asks librdkafka to fetch from `offset`. It bumps the partition's version, so that what was read ahead is dropped by it.
    fn go(&self, offset: i64) -> Result<(), Fault> {
        let doing = format!("seeking {} to {offset}", self.partition);
        let sought = self.consumer.seek_partitions(self.list(offset)?, CALL).map_err(|e| faults::of(&e, &doing))?;
        for element in sought.elements() {
            if let Err(error) = element.error() {
                let message =
                    format!("{doing}: {}", error.rdkafka_error_code().map_or_else(String::new, faults::describe));
                return Err(Fault::transient("seek-not-ready", message));
            }
        }
        Ok(())
    }

    fn read(&mut self, batch: &mut Batch, limit: FetchLimit, wait: Duration) -> usize {
        let before = batch.bytes();
        let mut filling = Filling { state: &mut self.state, batch, limit, before, taken: 0 };
        if filling.take_held() {
            let wait = if filling.taken > 0 { Duration::ZERO } else { wait };
            self.queue.read(self.consumer.client(), wait, &mut |message| filling.take(&message));
        }
        filling.taken
    }

    fn happened(&mut self) -> Result<(), Fault> {
        let Some((code, offset)) = self.state.event.take() else { return Ok(()) };
        Err(faults::of_code(code, format!("reading {} at {offset}", self.partition)))
    }

    /// A reader's consumer is polled by nobody else: its logs and errors would pile up.
    fn serve_reader(&self) {
        if self.consumer.context().assignments().is_none() {
            while self.consumer.poll(Duration::ZERO).is_some() {}
            self.consumer.context().caught_up();
        }
    }
}

impl Source for KafkaSource {
    fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    fn seek(&mut self, offset: i64) -> Result<(), Fault> {
        self.owned()?;
        self.go(offset)?;
        if self.state.position.is_none() {
            // Paused since before the assign. Resuming after the seek fetches from the sought offset and nowhere else.
            let list = self.list(offset)?;
            self.consumer.resume(&list).map_err(|e| faults::of(&e, format!("resuming {}", self.partition)))?;
        }
        self.state = State { position: Some(offset), at_end: false, held: Batch::default(), event: None };
        Ok(())
    }

    fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit, wait: Duration) -> Result<usize, Fault> {
        self.owned()?;
        if self.state.position.is_none() {
            return Ok(0);
        }
        self.mend()?;
        self.serve_reader();
        if self.state.event.is_some() {
            self.happened()?;
        }
        match self.read(batch, limit, wait) {
            0 => self.happened().map(|()| 0),
            taken => Ok(taken),
        }
    }

    fn position(&self) -> i64 {
        self.state.position.unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.state.at_end && self.state.held.is_empty()
    }

    fn on_ready(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        let first: Wake = Arc::clone(&wake);
        self.queue.on_ready(wake);
        // The queue may have been filled before anybody listened.
        first();
    }
}

impl Drop for KafkaSource {
    fn drop(&mut self) {
        if self.consumer.context().assignments().is_none() {
            // A reader's consumer has only this partition, and must not wait for its unread records to be taken.
            let _ = self.consumer.unassign();
        }
    }
}

impl Filling<'_> {
    /// Takes over the record left from last time; `false` where the batch is full with it.
    fn take_held(&mut self) -> bool {
        let held = std::mem::take(&mut self.state.held);
        for (offset, record) in held.iter() {
            self.batch.push(offset, record);
            self.state.position = Some(offset + 1);
            self.taken += 1;
        }
        self.taken < self.limit.records && (self.taken == 0 || self.bytes() < self.limit.bytes)
    }

    /// Whether more is wanted.
    fn take(&mut self, message: &Fetched<'_>) -> bool {
        match message.event() {
            None => self.take_record(message),
            Some(Code::PartitionEOF) => self.reach_end(message.offset()),
            Some(code) => {
                self.state.event = Some((code, message.offset()));
                false
            }
        }
    }

    fn take_record(&mut self, message: &Fetched<'_>) -> bool {
        // A record below the position was read ahead before a seek or a pause, and has been read already.
        if Some(message.offset()) < self.state.position {
            return true;
        }
        self.state.at_end = false;
        if self.taken > 0 && self.bytes() + message.bytes() > self.limit.bytes {
            message.append_to(&mut self.state.held);
            return false;
        }
        message.append_to(self.batch);
        self.state.position = Some(message.offset() + 1);
        self.taken += 1;
        self.taken < self.limit.records && self.bytes() < self.limit.bytes
    }

    /// The end lies past the last record where transaction markers or emptied batches follow it.
    fn reach_end(&mut self, offset: i64) -> bool {
        if Some(offset) >= self.state.position {
            self.state.position = Some(offset);
            self.state.at_end = true;
        }
        true
    }

    fn bytes(&self) -> usize {
        self.batch.bytes() - self.before
    }
}
