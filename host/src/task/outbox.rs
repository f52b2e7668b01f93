//! A worker's open transaction as its tasks see it: topics resolved once, bounds checked before producing, bytes counted.

use crate::changelog;
use crate::model::limits::batch_size;
use crate::model::log::{Group, OffsetCommit, Origin, Producer, Refusal, TopicInfo, TopicLimits, TopicRef};
use crate::model::{Column, Failure, Fault, RecordRef};
use crate::state::Stores;
use std::sync::Arc;

/// A topic that this outbox has resolved. Stays valid when the producer is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutTopic(usize);

/// One producer and what was handed to it since the last commit.
pub struct Outbox {
    producer: Box<dyn Producer>,
    topics: Vec<Topic>,
    bytes: u64,
}

struct Topic {
    name: Arc<str>,
    to: TopicRef,
    limits: TopicLimits,
}

impl Outbox {
    pub fn new(producer: Box<dyn Producer>) -> Outbox {
        Outbox { producer, topics: Vec::new(), bytes: 0 }
    }

    /// Resolves a topic, once. What one that is known already refuses is not taken from `info`, which may be old:
    /// [`Outbox::renew_limits`] brings news.
    pub fn resolve(&mut self, info: &TopicInfo) -> Result<OutTopic, Fault> {
        if let Some(index) = self.topics.iter().position(|topic| *topic.name == *info.name) {
            return Ok(OutTopic(index));
        }
        let to = self.producer.topic(&info.name)?;
        self.topics.push(Topic { name: info.name.as_str().into(), to, limits: info.limits.clone() });
        Ok(OutTopic(self.topics.len() - 1))
    }

    /// Takes over what topics refuse by now, of those that were resolved.
    pub fn renew_limits(&mut self, infos: &[TopicInfo]) {
        for info in infos {
            if let Some(topic) = self.topics.iter_mut().find(|topic| *topic.name == *info.name) {
                topic.limits = info.limits.clone();
            }
        }
    }

    /// Puts another producer in place of one that is of no more use, and resolves every topic with it.
    pub fn replace(&mut self, mut producer: Box<dyn Producer>) -> Result<(), Fault> {
        for topic in &mut self.topics {
            topic.to = producer.topic(&topic.name)?;
        }
        self.producer = producer;
        self.bytes = 0;
        Ok(())
    }

    /// Whether the topic would take this record. Otherwise the failure of the record that made it. `now` is in wall-clock ms.
    pub fn check(&self, to: OutTopic, record: &RecordRef<'_>, now: i64) -> Result<(), Failure> {
        let Topic { name, limits, .. } = &self.topics[to.0];
        if record.timestamp < -1 {
            let message = format!("an output's timestamp {} is before the epoch", record.timestamp);
            return Err(Failure::new("output-timestamp-refused", message));
        }
        if let Some((code, message)) = limits.refusal(name, record, now) {
            return Err(Failure::new(code, message));
        }
        Ok(())
    }

    /// `bounds` with this topic's in addition. `now` is in wall-clock milliseconds.
    pub(super) fn narrow(&self, to: OutTopic, bounds: Bounds, now: i64) -> Bounds {
        let limits = &self.topics[to.0].limits;
        Bounds {
            bytes: bounds.bytes.min(limits.max_message_bytes),
            first: bounds.first.max(now.saturating_sub(limits.timestamp_before_ms)).max(0),
            last: bounds.last.min(now.saturating_add(limits.timestamp_after_ms)),
            keyed: bounds.keyed || limits.compact,
        }
    }

    /// The largest record that a topic takes, as [`batch_size`] counts it.
    pub(super) fn largest(&self, to: OutTopic) -> u64 {
        self.topics[to.0].limits.max_message_bytes
    }

    /// By how many bytes a record is over what the topic takes.
    pub fn excess(&self, to: OutTopic, record: &RecordRef<'_>) -> u64 {
        batch_size(record).saturating_sub(self.topics[to.0].limits.max_message_bytes)
    }

    /// Hands a record to the log, and opens the transaction where none is.
    pub fn send(
        &mut self,
        to: OutTopic,
        partition: Option<i32>,
        record: RecordRef<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        self.producer.begin()?;
        self.bytes += payload(&record);
        self.producer.send(self.topics[to.0].to, partition, record, origin)
    }

    /// Sends a store's changes to its changelog, one record per changed key. `now` is in wall-clock milliseconds.
    pub fn log_changes(&mut self, stores: &Stores, store: usize, to: (OutTopic, i32), now: i64) -> Result<(), Fault> {
        changelog::produce(stores, store, &mut *self.producer, (self.topics[to.0.0].to, to.1), now)
    }

    /// Bytes handed over since the last commit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn begin(&mut self) -> Result<(), Fault> {
        self.producer.begin()
    }

    pub fn flush(&mut self) -> Result<Vec<Refusal>, Fault> {
        self.producer.flush()
    }

    pub fn send_offsets(&mut self, group: &dyn Group, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        self.producer.send_offsets(group, offsets)
    }

    pub fn commit(&mut self) -> Result<(), Fault> {
        self.producer.commit()?;
        self.bytes = 0;
        Ok(())
    }

    pub fn abort(&mut self) -> Result<(), Fault> {
        self.bytes = 0;
        self.producer.abort()
    }

    /// One past the last acknowledged offset of a changelog partition.
    pub fn acknowledged(&self, to: OutTopic, partition: i32) -> Option<i64> {
        self.producer.acknowledged(self.topics[to.0].to, partition)
    }
}

/// What several topics take, each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    bytes: u64,
    /// Wall-clock milliseconds.
    first: i64,
    last: i64,
    /// Whether one of the topics wants keys.
    keyed: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { bytes: u64::MAX, first: 0, last: i64::MAX, keyed: false }
    }
}

impl Bounds {
    /// Whether a record with so many bytes of keys, values and headers fits, whatever its other fields need.
    pub(super) fn takes_bytes(&self, bytes: u64) -> bool {
        bytes.saturating_add(RECORD_OVERHEAD) <= self.bytes
    }

    pub(super) fn takes_keys(&self, keys: &Column) -> bool {
        !self.keyed || keys.lengths.iter().all(|&length| length >= 0)
    }

    pub(super) fn takes_time(&self, timestamp: i64) -> bool {
        timestamp == -1 || (self.first..=self.last).contains(&timestamp)
    }
}

/// More than a record batch of one record has beside its keys, values and headers.
const RECORD_OVERHEAD: u64 = 128;

fn payload(record: &RecordRef<'_>) -> u64 {
    let size = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + size(value)).sum();
    (size(record.key) + size(record.value) + headers) as u64
}
