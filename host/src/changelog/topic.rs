//! How a changelog topic is made, and what one that exists must be like.

use crate::model::Fault;
use crate::model::ids::changelog_topic;
use crate::model::log::{TopicInfo, TopicSpec};

/// A changelog may hold what its input may, with our overhead.
const EXTRA_MESSAGE_BYTES: u64 = 64 << 10;

/// The changelog of a store: compacted, one partition per task, open to any timestamp.
///
/// `delete.retention.ms` stays at Kafka's day: it is how long a host may be away and still go on from its own state.
pub fn spec(
    application: &str,
    processor: &str,
    store: &str,
    partitions: i32,
    input_max_message_bytes: u64,
) -> TopicSpec {
    let max_message_bytes = input_max_message_bytes.saturating_add(EXTRA_MESSAGE_BYTES).min(i32::MAX as u64);
    let properties = [
        ("cleanup.policy", "compact".to_owned()),
        ("max.message.bytes", max_message_bytes.to_string()),
        ("message.timestamp.before.max.ms", i64::MAX.to_string()),
        ("message.timestamp.after.max.ms", i64::MAX.to_string()),
    ];
    TopicSpec {
        name: changelog_topic(application, processor, store),
        partitions,
        replication: None,
        properties: properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// Whether a topic can be the changelog of a processor with that many partitions.
///
/// `Fatal`: `changelog-policy` (it loses keys, or grows for ever), `changelog-partitions`.
pub fn check(info: &TopicInfo, partitions: i32) -> Result<(), Fault> {
    let name = &info.name;
    if info.limits.delete || !info.limits.compact {
        let problem =
            if info.limits.delete { "deletes old records, so keys would be lost" } else { "is not compacted" };
        return Err(Fault::fatal("changelog-policy", format!("changelog {name} {problem}")).hint(format!(
            "set it with: kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config cleanup.policy=compact"
        )));
    }
    if info.partitions != partitions {
        let message =
            format!("changelog {name} has {} partitions, the processor's inputs have {partitions}", info.partitions);
        return Err(Fault::fatal("changelog-partitions", message).hint(
            "a store's keys stay on the partition of their input: move to a new application id, or delete the changelog and \
             process the inputs from their start",
        ));
    }
    Ok(())
}
