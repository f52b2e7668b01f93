//! Values of the park's store: the whole record but its key, and what is remembered of its failures.

use super::key::Place;
use crate::delivery::Attempts;
use crate::model::{Batch, Column, Fault, HeadersRef, RecordRef};
use serde::{Deserialize, Serialize};

/// First byte of the encoding.
const VERSION: u8 = 1;
/// The codec's name, as stores know theirs.
pub(super) const CODEC: &str = "pelton-parked";

/// A parked record as it is stored. Its place, and its key, are in the store's key.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry<'a> {
    /// Failures so far; 0 for a record that waits behind another one.
    count: u32,
    /// Wall-clock milliseconds since the epoch; 0 without a failure.
    first_ms: i64,
    last_ms: i64,
    due_ms: i64,
    timestamp: i64,
    #[serde(borrow)]
    value: Option<&'a [u8]>,
    #[serde(borrow)]
    headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

impl<'a> Entry<'a> {
    pub(super) fn new(record: &RecordRef<'a>, attempts: Option<&Attempts>) -> Entry<'a> {
        let failed = |of: fn(&Attempts) -> i64| attempts.map_or(0, of);
        Entry {
            count: attempts.map_or(0, |attempts| attempts.count),
            first_ms: failed(|attempts| attempts.first_ms),
            last_ms: failed(|attempts| attempts.last_ms),
            due_ms: failed(|attempts| attempts.due_ms),
            timestamp: record.timestamp,
            value: record.value,
            headers: record.headers.iter().collect(),
        }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, Fault> {
        postcard::to_extend(self, vec![VERSION])
            .map_err(|error| Fault::fatal("state-encoding", format!("a parked record cannot be written: {error}")))
    }

    /// `Corrupt` `parked-unreadable`.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Entry<'a>, Fault> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|error| unreadable(&error.to_string())),
            Some((version, _)) => Err(unreadable(&format!("version {version}, this program reads {VERSION}"))),
            None => Err(unreadable("empty")),
        }
    }

    /// What is remembered of the failures of the record at `offset`; `None` where it has not been tried.
    pub(super) fn attempts(&self, offset: i64) -> Option<Attempts> {
        let Entry { count, first_ms, last_ms, due_ms, .. } = *self;
        (count > 0).then_some(Attempts { offset, count, first_ms, last_ms, due_ms })
    }

    /// The record as a batch of its own, of the input and partition that `batch` has.
    pub(super) fn fill(&self, place: &Place<'_>, batch: &mut Batch) {
        let names: Column = self.headers.iter().map(|(name, _)| Some(*name)).collect();
        let values: Column = self.headers.iter().map(|(_, value)| *value).collect();
        let headers = HeadersRef::new(names.view(), values.view());
        batch.push(
            place.offset,
            RecordRef { key: Some(place.key), value: self.value, headers, timestamp: self.timestamp },
        );
        batch.attempt = self.count;
    }

    /// Bytes of value and headers.
    pub(super) fn bytes(&self) -> u64 {
        let size = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + size(*value)).sum();
        (size(self.value) + headers) as u64
    }
}

fn unreadable(what: &str) -> Fault {
    Fault::corrupt("parked-unreadable", format!("a parked record cannot be read: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::batch_size;
    use crate::task::park::form::logged;
    use crate::task::park::key;
    use proptest::prelude::*;

    type Bytes = Option<Vec<u8>>;

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::option::of(prop::collection::vec(any::<u8>(), 0..200))
    }

    proptest! {
        #[test]
        fn the_whole_record_comes_back(
            key in prop::collection::vec(any::<u8>(), 0..200),
            (value, timestamp) in (bytes(), any::<i64>()),
            headers in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), bytes()), 0..5),
            attempts in prop::option::of((1u32.., any::<i64>(), any::<i64>(), any::<i64>())),
        ) {
            let names: Column = headers.iter().map(|(name, _)| Some(&name[..])).collect();
            let values: Column = headers.iter().map(|(_, value)| value.as_deref()).collect();
            let headers = HeadersRef::new(names.view(), values.view());
            let record = RecordRef { key: Some(&key), value: value.as_deref(), headers, timestamp };
            let place = Place { key: &key, topic: "t", offset: 7 };
            let attempts = attempts
                .map(|(count, first_ms, last_ms, due_ms)| Attempts { offset: 7, count, first_ms, last_ms, due_ms });
            let stored = Entry::new(&record, attempts.as_ref()).encode().unwrap();
            let entry = Entry::decode(&stored).unwrap();
            prop_assert_eq!(entry.attempts(7), attempts);
            let (mut found, mut expected) = (Batch::default(), Batch::default());
            entry.fill(&place, &mut found);
            expected.push(7, record);
            expected.attempt = attempts.map_or(0, |attempts| attempts.count);
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(entry.bytes() + key.len() as u64, found.bytes() as u64);
            let topic = "t".repeat(249);
            let key = key::encode(&Place { topic: &topic, ..place });
            let found = RecordRef { key: Some(&key), value: Some(&stored), headers: HeadersRef::default(), timestamp: 1 };
            prop_assert!(batch_size(&found) <= logged(&record), "more than the room that is kept");
        }

        #[test]
        fn other_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Entry::decode(&bytes);
        }
    }

    #[test]
    fn another_version_is_not_read() {
        let record = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: 1 };
        let mut stored = Entry::new(&record, None).encode().unwrap();
        stored[0] = 2;
        assert_eq!(Entry::decode(&stored).unwrap_err().code, "parked-unreadable");
        assert!(Entry::decode(&[]).is_err());
    }
}
