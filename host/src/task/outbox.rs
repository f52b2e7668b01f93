//! A worker's open transaction as its tasks see it: topics resolved once, bounds checked before producing, bytes counted.

use crate::changelog;
use crate::model::log::{Group, OffsetCommit, Origin, Producer, Refusal, TopicInfo, TopicLimits, TopicRef};
use crate::model::{Failure, Fault, RecordRef};
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
        let size = wire_size(record);
        if size > limits.max_message_bytes {
            let bound = limits.max_message_bytes;
            let message = format!("an output of {size} bytes is over the {bound} of topic {name} (max.message.bytes)");
            return Err(Failure::new("output-too-large", message));
        }
        if record.timestamp < -1 || !in_bounds(record.timestamp, now, limits) {
            let message = format!("an output's timestamp {} is outside of what topic {name} takes", record.timestamp);
            return Err(Failure::new("output-timestamp-refused", message));
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
        }
    }

    /// By how many bytes a record is over what the topic takes.
    pub fn excess(&self, to: OutTopic, record: &RecordRef<'_>) -> u64 {
        wire_size(record).saturating_sub(self.topics[to.0].limits.max_message_bytes)
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
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { bytes: u64::MAX, first: 0, last: i64::MAX }
    }
}

impl Bounds {
    /// Whether a record with so many bytes of keys, values and headers fits, whatever its other fields need.
    pub(super) fn takes_bytes(&self, bytes: u64) -> bool {
        bytes.saturating_add(RECORD_OVERHEAD) <= self.bytes
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

/// Size of a record batch that holds just this record: what `max.message.bytes` is compared with before compression
/// (Kafka's record batch format v2: 61 bytes of batch header, then a record whose lengths are zig-zag varints).
fn wire_size(record: &RecordRef<'_>) -> u64 {
    let field = |bytes: Option<&[u8]>| bytes.map_or(1, |b| varint(b.len()) + b.len() as u64);
    let count = record.headers.len();
    let headers: u64 = record.headers.iter().map(|(name, value)| field(Some(name)) + field(value)).sum();
    // attributes, timestamp delta and offset delta take a byte each
    let body = 3 + field(record.key) + field(record.value) + varint(count) + headers;
    61 + varint(body as usize) + body
}

/// Bytes of a non-negative length as a zig-zag varint.
fn varint(length: usize) -> u64 {
    let bits = usize::BITS - (length << 1 | 1).leading_zeros();
    u64::from(bits.div_ceil(7))
}

fn in_bounds(timestamp: i64, now: i64, limits: &TopicLimits) -> bool {
    timestamp < 0
        || (timestamp.saturating_sub(now) <= limits.timestamp_after_ms
            && now.saturating_sub(timestamp) <= limits.timestamp_before_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeadersRef;

    #[test]
    fn varints_grow_by_seven_bits() {
        for (length, size) in [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3), (1 << 20, 4)] {
            assert_eq!(varint(length), size, "{length}");
        }
    }

    #[test]
    fn the_wire_size_counts_every_field() {
        let record = |key, value| RecordRef { key, value, headers: HeadersRef::default(), timestamp: 1 };
        assert_eq!(wire_size(&record(None, None)), 61 + 1 + 3 + 1 + 1 + 1);
        assert_eq!(wire_size(&record(Some(&b""[..]), Some(&[0; 100][..]))), 61 + 2 + 3 + 1 + 102 + 1);
    }

    #[test]
    fn timestamps_outside_the_bounds_are_refused() {
        let limits = TopicLimits {
            max_message_bytes: 100,
            timestamp_before_ms: 50,
            timestamp_after_ms: 10,
            compact: false,
            delete: true,
            delete_retention_ms: 0,
        };
        for (timestamp, fits) in [(-1, true), (1000, true), (1010, true), (1011, false), (950, true), (949, false)] {
            assert_eq!(in_bounds(timestamp, 1000, &limits), fits, "{timestamp}");
        }
        let open = TopicLimits { timestamp_before_ms: i64::MAX, timestamp_after_ms: i64::MAX, ..limits };
        assert!(in_bounds(i64::MAX, 1000, &open) && in_bounds(1, 1000, &open));
    }
}
