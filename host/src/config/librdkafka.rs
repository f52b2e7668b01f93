//! What librdkafka calls its properties, and which of them an application may not set, with the reason.
//!
//! The names are those of `CONFIGURATION.md` of librdkafka 2.12.1 (in the crate `rdkafka-sys`), less those that take a pointer.

/// A property that would break a promise, and why.
struct Refused(&'static str, &'static str);

/// Every property that librdkafka knows by name.
pub fn known() -> &'static [&'static str] {
    KNOWN
}

/// Why an application may not set the property; `None` where it may.
pub fn refused(name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|refused| refused.0 == name).map(|refused| refused.1)
}

/// Whether the property means something to a consumer.
pub fn for_consumers(name: &str) -> bool {
    !PRODUCER_ONLY.contains(&name)
}

/// Whether the property means something to a producer.
pub fn for_producers(name: &str) -> bool {
    !CONSUMER_ONLY.contains(&name)
}

const REFUSED: &[Refused] = &[
    Refused("acks", "fewer acknowledgements than all would lose outputs"),
    Refused("allow.auto.create.topics", "a missing topic is an error; `create_topics` makes those that the file names"),
    Refused("auto.commit.enable", "offsets are committed with the outputs, never by a timer"),
    Refused("auto.commit.interval.ms", "offsets are committed with the outputs, never by a timer"),
    Refused(
        "auto.offset.reset",
        "where to start is a setting of each input; a lost offset is an error, never a silent jump",
    ),
    Refused("background_event_cb", "set in code only"),
    Refused("bootstrap.servers", "use `brokers`"),
    Refused("delivery.report.only.error", "every acknowledgement is counted"),
    Refused("enable.auto.commit", "offsets are committed with the outputs, never by a timer"),
    Refused("enable.auto.offset.store", "offsets are committed with the outputs, never by the client"),
    Refused("enable.gapless.guarantee", "it turns a refused record into the end of the producer"),
    Refused("enable.idempotence", "without it a retry would double outputs"),
    Refused("enable.partition.eof", "restores and idling rely on it"),
    Refused("group.id", "groups are named after application and processor"),
    Refused(
        "group.instance.id",
        "it is kept in the state folder, so that a restarted host takes its own partitions back",
    ),
    Refused("group.protocol", "use the application's `group_protocol`"),
    Refused("group.protocol.type", "groups of consumers only"),
    Refused("group.remote.assignor", "equal partition numbers of a processor's inputs must stay together"),
    Refused("interceptors", "set in code only"),
    Refused("isolation.level", "records of aborted transactions must not be read"),
    Refused("log.queue", "logs are taken from the client's queue"),
    Refused("message.max.bytes", "size is the topic's setting `max.message.bytes`; it is checked per record"),
    Refused("message.send.max.retries", "giving up on a retry would break the order of records"),
    Refused("metadata.broker.list", "use `brokers`"),
    Refused("offset.store.method", "offsets live in the group, with the outputs"),
    Refused("offset.store.path", "offsets live in the group, with the outputs"),
    Refused("offset.store.sync.interval.ms", "offsets live in the group, with the outputs"),
    Refused("partition.assignment.strategy", "equal partition numbers of a processor's inputs must stay together"),
    Refused("partitioner", "a key must land on the partition that Kafka's default partitioner gives it"),
    Refused("partitioner_cb", "set in code only"),
    Refused("plugin.library.paths", "it loads foreign code into the process"),
    Refused("queued.max.messages.kbytes", "use `fetch_bytes`; it is divided among the partitions"),
    Refused("request.required.acks", "fewer acknowledgements than all would lose outputs"),
    Refused("retries", "giving up on a retry would break the order of records"),
    Refused("session.timeout.ms", "use the application's `session_timeout`"),
    Refused("test.mock.broker.rtt", "there is no broker behind it"),
    Refused("test.mock.num.brokers", "there is no broker behind it"),
    Refused("transaction.timeout.ms", "use `transaction_timeout`"),
    Refused("transactional.id", "it is kept in the state folder, so that a restarted host fences its own past"),
];

#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "acks", "allow.auto.create.topics", "api.version.fallback.ms", "api.version.request",
    "api.version.request.timeout.ms", "auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset",
    "batch.num.messages", "batch.size", "bootstrap.servers", "broker.address.family", "broker.address.ttl",
    "broker.version.fallback", "check.crcs", "client.dns.lookup", "client.id", "client.rack", "compression.codec",
    "compression.level", "compression.type", "connections.max.idle.ms", "consume.callback.max.messages",
    "coordinator.query.interval.ms", "debug", "delivery.report.only.error", "delivery.timeout.ms",
    "enable.auto.commit", "enable.auto.offset.store", "enable.gapless.guarantee", "enable.idempotence",
    "enable.metrics.push", "enable.partition.eof", "enable.random.seed", "enable.sasl.oauthbearer.unsecure.jwt",
    "enable.ssl.certificate.verification", "fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes",
    "fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms", "group.id", "group.instance.id",
    "group.protocol", "group.protocol.type", "group.remote.assignor", "heartbeat.interval.ms", "https.ca.location",
    "https.ca.pem", "interceptors", "internal.termination.signal", "isolation.level", "linger.ms",
    "log.connection.close", "log.queue", "log.thread.name", "log_level", "max.in.flight",
    "max.in.flight.requests.per.connection", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "message.copy.max.bytes", "message.max.bytes", "message.send.max.retries", "message.timeout.ms",
    "metadata.broker.list", "metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy", "msg_order_cmp", "offset.store.method", "offset.store.path",
    "offset.store.sync.interval.ms", "partition.assignment.strategy", "partitioner", "plugin.library.paths",
    "produce.offset.report", "queue.buffering.backpressure.threshold", "queue.buffering.max.kbytes",
    "queue.buffering.max.messages", "queue.buffering.max.ms", "queued.max.messages.kbytes", "queued.min.messages",
    "queuing.strategy", "receive.message.max.bytes", "reconnect.backoff.jitter.ms", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "request.required.acks", "request.timeout.ms", "retries", "retry.backoff.max.ms",
    "retry.backoff.ms", "sasl.kerberos.keytab", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.principal", "sasl.kerberos.service.name", "sasl.mechanism", "sasl.mechanisms",
    "sasl.oauthbearer.assertion.algorithm", "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds", "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include", "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub", "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.jwt.template.file", "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase", "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions", "sasl.oauthbearer.grant.type", "sasl.oauthbearer.metadata.authentication.type",
    "sasl.oauthbearer.method", "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url", "sasl.password",
    "sasl.username", "security.protocol", "session.timeout.ms", "socket.blocking.max.ms",
    "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable",
    "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms", "ssl.ca.certificate.stores",
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites",
    "ssl.crl.location", "ssl.curves.list", "ssl.endpoint.identification.algorithm", "ssl.engine.id",
    "ssl.engine.location", "ssl.key.location", "ssl.key.password", "ssl.key.pem", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.providers", "ssl.sigalgs.list", "statistics.interval.ms",
    "sticky.partitioning.linger.ms", "topic.blacklist", "topic.metadata.propagation.max.ms",
    "topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.fast.interval.ms",
    "topic.metadata.refresh.interval.ms", "topic.metadata.refresh.sparse", "transaction.timeout.ms",
    "transactional.id",
];

#[rustfmt::skip]
const CONSUMER_ONLY: &[&str] = &[
    "auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset", "check.crcs",
    "consume.callback.max.messages", "coordinator.query.interval.ms", "enable.auto.commit",
    "enable.auto.offset.store", "enable.partition.eof", "fetch.error.backoff.ms", "fetch.max.bytes",
    "fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms", "group.id",
    "group.instance.id", "group.protocol", "group.protocol.type", "group.remote.assignor", "heartbeat.interval.ms",
    "isolation.level", "max.partition.fetch.bytes", "max.poll.interval.ms", "offset.store.method",
    "offset.store.path", "offset.store.sync.interval.ms", "partition.assignment.strategy",
    "queued.max.messages.kbytes", "queued.min.messages", "session.timeout.ms",
];

#[rustfmt::skip]
const PRODUCER_ONLY: &[&str] = &[
    "acks", "batch.num.messages", "batch.size", "compression.codec", "compression.level", "compression.type",
    "delivery.report.only.error", "delivery.timeout.ms", "enable.gapless.guarantee", "enable.idempotence",
    "linger.ms", "message.send.max.retries", "message.timeout.ms", "msg_order_cmp", "partitioner",
    "produce.offset.report", "queue.buffering.backpressure.threshold", "queue.buffering.max.kbytes",
    "queue.buffering.max.messages", "queue.buffering.max.ms", "queuing.strategy", "request.required.acks",
    "request.timeout.ms", "retries", "sticky.partitioning.linger.ms", "transaction.timeout.ms", "transactional.id",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_promise_is_refused() {
        for name in ["enable.auto.commit", "isolation.level", "acks", "transactional.id", "partitioner", "group.id"] {
            assert!(refused(name).is_some(), "{name}");
        }
        for name in ["security.protocol", "sasl.password", "linger.ms", "compression.type", "fetch.message.max.bytes"] {
            assert!(refused(name).is_none() && known().contains(&name), "{name}");
        }
    }

    #[test]
    fn reasons_are_written_like_all_messages() {
        for Refused(name, reason) in REFUSED {
            assert!(!reason.ends_with('.') && reason.starts_with(|c: char| c.is_lowercase()), "{name}: {reason}");
        }
    }

    #[test]
    fn each_side_gets_its_own() {
        assert!(for_producers("linger.ms") && !for_consumers("linger.ms"));
        assert!(for_consumers("fetch.wait.max.ms") && !for_producers("fetch.wait.max.ms"));
        assert!(for_consumers("security.protocol") && for_producers("security.protocol"));
    }
}
