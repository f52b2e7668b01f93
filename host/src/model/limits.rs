//! What a topic refuses: Kafka's settings, defaults and arithmetic, so that both logs refuse the same records and the task knows
//! beforehand.

use super::log::TopicLimits;
use super::{Fault, RecordRef};

/// Header of a record batch, format version 2.
const BATCH_OVERHEAD: usize = 61;

impl Default for TopicLimits {
    /// Kafka 4's: a mebibyte and the overhead of a batch's place in the log; an hour ahead (KIP-937).
    fn default() -> Self {
        TopicLimits {
            max_message_bytes: 1_048_588,
            timestamp_before_ms: i64::MAX,
            timestamp_after_ms: 3_600_000,
            compact: false,
            delete: true,
            delete_retention_ms: 86_400_000,
        }
    }
}

impl TopicLimits {
    /// The defaults with a topic's own settings over them; those that have no meaning here are passed over. `Fatal`
    /// `topic-property` for a bad value.
    pub fn with(topic: &str, properties: &[(String, String)]) -> Result<TopicLimits, Fault> {
        let mut limits = TopicLimits::default();
        for (name, value) in properties {
            limits.set(name, value).ok_or_else(|| {
                Fault::fatal("topic-property", format!("topic {topic}: {name} cannot be {value:?}"))
                    .hint("use a value that Kafka takes for this topic setting")
            })?;
        }
        Ok(limits)
    }

    /// Why a topic with these limits refuses a record, as code and message, or `None`.
    pub fn refusal(&self, topic: &str, record: &RecordRef<'_>, now_ms: i64) -> Option<(&'static str, String)> {
        let (size, max, timestamp) = (batch_size(record), self.max_message_bytes, record.timestamp);
        if size > max {
            let message = format!("a record of {size} bytes is over the {max} that topic {topic} takes");
            return Some(("output-too-large", message));
        }
        if self.compact && record.key.is_none() {
            return Some(("output-refused", format!("topic {topic} is compacted and takes no record without a key")));
        }
        let ahead = timestamp.saturating_sub(now_ms);
        if timestamp != -1 && (ahead > self.timestamp_after_ms || ahead.saturating_neg() > self.timestamp_before_ms) {
            let message = format!("timestamp {timestamp} is {ahead} ms from now, outside the bounds of topic {topic}");
            return Some(("output-timestamp-refused", message));
        }
        None
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "max.message.bytes" => self.max_message_bytes = value.parse().ok()?,
            "message.timestamp.before.max.ms" => self.timestamp_before_ms = value.parse().ok()?,
            "message.timestamp.after.max.ms" => self.timestamp_after_ms = value.parse().ok()?,
            "delete.retention.ms" => self.delete_retention_ms = value.parse().ok()?,
            "cleanup.policy" => {
                let policies: Vec<&str> = value.split(',').map(str::trim).collect();
                self.compact = policies.contains(&"compact");
                self.delete = policies.contains(&"delete");
                return policies.iter().all(|policy| ["compact", "delete"].contains(policy)).then_some(());
            }
            _ => {}
        }
        Some(())
    }
}

/// The size of a record batch with this record alone, as the broker counts it (format version 2, uncompressed).
pub fn batch_size(record: &RecordRef<'_>) -> u64 {
    let field = |item: Option<&[u8]>| match item {
        Some(item) => varint(item.len() as i64) + item.len(),
        None => varint(-1),
    };
    let headers: usize = record.headers.iter().map(|(name, value)| field(Some(name)) + field(value)).sum();
    // One byte each: attributes, timestamp delta, offset delta.
    let body = 3 + field(record.key) + field(record.value) + varint(record.headers.len() as i64) + headers;
    (BATCH_OVERHEAD + varint(body as i64) + body) as u64
}

/// Bytes of a zig-zag varint.
fn varint(n: i64) -> usize {
    let zigzag = (n << 1) ^ (n >> 63);
    ((64 - (zigzag as u64 | 1).leading_zeros()) as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeadersRef;

    fn record(value: &[u8], timestamp: i64) -> RecordRef<'_> {
        RecordRef { key: Some(b"k"), value: Some(value), headers: HeadersRef::default(), timestamp }
    }

    #[test]
    fn the_size_is_that_of_a_batch_of_one() {
        // 61 + length 1 + attributes, deltas 3 + key 1 + 1 + value 1 + 3 + header count 1
        assert_eq!(batch_size(&record(b"abc", 0)), 72);
        assert_eq!([0, 63, 64, -64, -65, 8191, 8192].map(varint), [1, 1, 2, 1, 2, 2, 3]);
        let limits = TopicLimits::with("t", &[("max.message.bytes".into(), "72".into())]).unwrap();
        assert_eq!(limits.refusal("t", &record(b"abc", 0), 0), None);
        assert_eq!(limits.refusal("t", &record(b"abcd", 0), 0).unwrap().0, "output-too-large");
    }

    #[test]
    fn timestamps_are_bounded_ahead_by_default() {
        let limits = TopicLimits::with("t", &[]).unwrap();
        let now = 10_000_000;
        for (timestamp, refused) in
            [(now + 3_600_000, false), (now + 3_600_001, true), (-1, false), (1, false), (i64::MAX, true)]
        {
            let code = limits.refusal("t", &record(b"", timestamp), now).map(|(code, _)| code);
            assert_eq!(code, refused.then_some("output-timestamp-refused"), "{timestamp}");
        }
    }

    #[test]
    fn bad_settings_are_named() {
        for (name, value) in [("cleanup.policy", "compacted"), ("max.message.bytes", "1 MB")] {
            let fault = TopicLimits::with("t", &[(name.into(), value.into())]).unwrap_err();
            assert_eq!(fault.code, "topic-property");
            assert!(fault.message.contains(name), "{fault}");
        }
        assert!(TopicLimits::with("t", &[("segment.ms".into(), "whatever".into())]).is_ok());
    }
}
