//! What the clients are told: the application's properties, then ours over them. Those that would break a promise have been refused
//! by `config::librdkafka`.

use crate::config::Kafka as Settings;
use crate::config::librdkafka::{for_consumers, for_producers};
use crate::model::log::{Delivery, GroupProtocol, GroupSpec};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

/// librdkafka's own default of `fetch.message.max.bytes`: the least that a partition may read ahead.
const FETCH_MESSAGE_BYTES: u64 = 1 << 20;

const POLL_INTERVAL: &str = "max.poll.interval.ms";

/// For lookups: metadata, offsets, settings of topics.
pub(super) fn lookup(settings: &Settings, isolation: &str) -> ClientConfig {
    let mut config = common(settings, for_consumers);
    config.remove(POLL_INTERVAL);
    config.set("isolation.level", isolation);
    config
}

/// For administration, which runs on a client of the producing kind.
pub(super) fn admin(settings: &Settings) -> ClientConfig {
    let mut config = common(settings, for_producers);
    config.remove("linger.ms").remove("batch.size");
    config
}

/// For a producer. `batch_bytes` bounds a request per partition: librdkafka does not split a batch that a topic finds too large.
pub(super) fn producer(settings: &Settings, id: &str, delivery: Delivery, batch_bytes: Option<u64>) -> ClientConfig {
    let mut config = common(settings, for_producers);
    let timeout = settings.transaction_timeout.as_millis().to_string();
    // With 0 every few records make a request of their own, and the broker is busy with those; a flush does not wait for it.
    default(&mut config, "linger.ms", "5");
    // Kafka's coordinator answers CONCURRENT_TRANSACTIONS for a moment after a commit; the default of 100 ms would be every commit's price.
    default(&mut config, "retry.backoff.ms", "1");
    default(&mut config, "queue.buffering.max.messages", "1000000");
    config.set("enable.idempotence", "true").set("partitioner", "murmur2_random");
    // The client's own limit is out of the way: each topic's limit is what counts.
    config.set("message.max.bytes", "1000000000");
    if let Some(bytes) = batch_bytes {
        config.set("batch.size", bytes.to_string());
    }
    match delivery {
        Delivery::ExactlyOnce => config.set("transactional.id", id).set("transaction.timeout.ms", timeout),
        Delivery::AtLeastOnce => config.set("client.id", id).set("message.timeout.ms", timeout),
    };
    config
}

/// For a consumer that is told what to read. It names a group, which it never joins, because librdkafka assigns nothing without.
///
/// An end is only known from an answer without records, which the broker holds back for `fetch.wait.max.ms`: a short one, as restores
/// wait for it.
pub(super) fn reader(settings: &Settings) -> ClientConfig {
    let mut config = consumer(settings, "pelton-reader", 1);
    if !settings.properties.contains_key("fetch.wait.max.ms") {
        config.set("fetch.wait.max.ms", "50");
    }
    config.set("queued.max.messages.kbytes", (FETCH_MESSAGE_BYTES * 16 / 1024).to_string());
    config
}

/// For a client that asks for a group's offsets and never joins it.
pub(super) fn observer(settings: &Settings, group: &str) -> ClientConfig {
    consumer(settings, group, 1)
}

/// For a member of a group; `partitions` is the most it may be given.
pub(super) fn member(settings: &Settings, spec: &GroupSpec, partitions: u64) -> ClientConfig {
    let mut config = consumer(settings, &spec.group, partitions);
    let several = spec.topics.len() > 1;
    if let Some(interval) = settings.properties.get(POLL_INTERVAL) {
        config.set(POLL_INTERVAL, interval);
    }
    match spec.protocol {
        GroupProtocol::Classic => {
            let assignor = if several { "range" } else { "cooperative-sticky" };
            config.set("group.instance.id", &spec.instance_id).set("partition.assignment.strategy", assignor);
            config.set("session.timeout.ms", spec.session_timeout.as_millis().to_string());
            let heartbeat = (spec.session_timeout.as_millis() / 3).clamp(1, 3_000);
            default(&mut config, "heartbeat.interval.ms", &heartbeat.to_string());
        }
        GroupProtocol::Consumer => {
            // librdkafka refuses classic settings here: session and heartbeat are the broker's (KIP-848).
            config.remove("heartbeat.interval.ms").remove("session.timeout.ms").remove("group.instance.id");
            let assignor = if several { "range" } else { "uniform" };
            config.set("group.protocol", "consumer").set("group.remote.assignor", assignor);
        }
    }
    config
}

fn consumer(settings: &Settings, group: &str, partitions: u64) -> ClientConfig {
    let mut config = common(settings, for_consumers);
    // Of members only: librdkafka refuses one below the session time-out, which is 45 s where nobody sets it.
    config.remove(POLL_INTERVAL);
    // The default of 1000 ms stops fetching for a second whenever the local queue is full.
    default(&mut config, "fetch.queue.backoff.ms", "10");
    config.set("group.id", group).set("isolation.level", "read_committed");
    config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
    config.set("auto.offset.reset", "error").set("enable.partition.eof", "true");
    let least = config.get("fetch.message.max.bytes").and_then(|v| v.parse().ok()).unwrap_or(FETCH_MESSAGE_BYTES);
    let share = (settings.fetch_bytes / partitions.max(1)).max(least) / 1024;
    config.set("queued.max.messages.kbytes", share.clamp(1, 2_097_151).to_string());
    config
}

fn common(settings: &Settings, wanted: fn(&str) -> bool) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set_log_level(RDKafkaLogLevel::Info);
    settings.properties.iter().filter(|(name, _)| wanted(name)).for_each(|(name, value)| {
        config.set(name, value);
    });
    default(&mut config, "client.id", "pelton");
    default(&mut config, "reconnect.backoff.max.ms", "1000");
    default(&mut config, "log.connection.close", "false");
    config.set("bootstrap.servers", &settings.brokers);
    config
}

fn default(config: &mut ClientConfig, name: &str, value: &str) {
    if config.get(name).is_none() {
        config.set(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn settings(properties: &[(&str, &str)]) -> Settings {
        let properties = properties.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Settings { brokers: "here:1".into(), properties, ..Settings::default() }
    }

    fn spec(topics: &[&str], protocol: GroupProtocol) -> GroupSpec {
        GroupSpec {
            group: "g".into(),
            topics: topics.iter().map(|&topic| topic.into()).collect(),
            protocol,
            instance_id: "i".into(),
            session_timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn several_inputs_stay_together() {
        let config = |topics: &[&str], protocol| member(&settings(&[]), &spec(topics, protocol), 8);
        let strategy = "partition.assignment.strategy";
        assert_eq!(config(&["a"], GroupProtocol::Classic).get(strategy), Some("cooperative-sticky"));
        assert_eq!(config(&["a", "b"], GroupProtocol::Classic).get(strategy), Some("range"));
        assert_eq!(config(&["a"], GroupProtocol::Consumer).get("group.remote.assignor"), Some("uniform"));
        assert_eq!(config(&["a", "b"], GroupProtocol::Consumer).get("group.remote.assignor"), Some("range"));
    }

    #[test]
    fn a_short_poll_interval_is_for_members_alone() {
        let short = settings(&[("max.poll.interval.ms", "11000")]);
        assert_eq!(member(&short, &spec(&["a"], GroupProtocol::Classic), 8).get(POLL_INTERVAL), Some("11000"));
        for config in [reader(&short), observer(&short, "g"), lookup(&short, "read_committed")] {
            assert_eq!(config.get(POLL_INTERVAL), None);
            assert!(config.create_native_config().is_ok());
        }
    }

    #[test]
    fn the_new_protocol_gets_no_classic_settings() {
        let config = member(&settings(&[("heartbeat.interval.ms", "1")]), &spec(&["a"], GroupProtocol::Consumer), 8);
        for name in
            ["heartbeat.interval.ms", "session.timeout.ms", "group.instance.id", "partition.assignment.strategy"]
        {
            assert_eq!(config.get(name), None, "{name}");
        }
        assert!(config.create_native_config().is_ok());
    }

    #[test]
    fn read_ahead_is_divided_among_partitions_and_never_less_than_one_fetch() {
        let kbytes = |partitions| {
            let config = member(&settings(&[]), &spec(&["a"], GroupProtocol::Classic), partitions);
            config.get("queued.max.messages.kbytes").map(str::to_owned)
        };
        assert_eq!(kbytes(8).as_deref(), Some("32768"));
        assert_eq!(kbytes(10_000).as_deref(), Some("1024"));
    }

    #[test]
    fn properties_go_to_the_clients_they_are_for_and_ours_win() {
        let settings = settings(&[("linger.ms", "7"), ("fetch.wait.max.ms", "20"), ("enable.idempotence", "false")]);
        let producer = producer(&settings, "id", Delivery::ExactlyOnce, None);
        assert_eq!(producer.get("linger.ms"), Some("7"));
        assert_eq!(producer.get("enable.idempotence"), Some("true"));
        assert_eq!(producer.get("fetch.wait.max.ms"), None);
        assert_eq!(reader(&settings).get("fetch.wait.max.ms"), Some("20"));
        assert_eq!(reader(&settings).get("linger.ms"), None);
    }
}
