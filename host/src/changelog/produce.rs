//! A commit's state changes on their way to the changelog.

use crate::model::log::{Producer, TopicRef};
use crate::model::{Fault, HeadersRef, RecordRef};
use crate::state::Stores;

/// Sends one record for each key of the store that this commit has changed; a deletion is a tombstone.
///
/// The timestamp is the host's, since records carry any. A record that the log refuses is the failure of the input record that
/// wrote the key last.
pub fn produce(
    stores: &Stores,
    store: usize,
    producer: &mut dyn Producer,
    to: (TopicRef, i32),
    now_ms: i64,
) -> Result<(), Fault> {
    let (topic, partition) = to;
    stores.overlay(store).try_for_each(|change| {
        let record =
            RecordRef { key: Some(change.key), value: change.value, headers: HeadersRef::default(), timestamp: now_ms };
        producer.send(topic, Some(partition), record, change.origin)
    })
}
