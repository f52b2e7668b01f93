//! The properties that librdkafka knows, and those that Pelton sets itself. (Stands in for the list that is generated from the client.)

/// Every property name of the client, sorted.
pub fn known() -> &'static [&'static str] {
    &[
        "bootstrap.servers",
        "client.id",
        "compression.type",
        "enable.auto.commit",
        "enable.idempotence",
        "fetch.message.max.bytes",
        "group.id",
        "isolation.level",
        "linger.ms",
        "max.poll.interval.ms",
        "metadata.broker.list",
        "sasl.mechanisms",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "session.timeout.ms",
        "ssl.ca.location",
        "transactional.id",
    ]
}

/// Why a property may not be set: it would break a promise, or has a setting of its own. `None` where it may.
pub fn refused(name: &str) -> Option<&'static str> {
    match name {
        "bootstrap.servers" | "metadata.broker.list" => Some("set `log.brokers`"),
        "enable.auto.commit" => Some("offsets are committed in the transaction only"),
        "enable.idempotence" | "transactional.id" => Some("transactions are Pelton's own"),
        "group.id" => Some("groups are named after application and processor"),
        "isolation.level" => Some("only committed records are read"),
        "session.timeout.ms" => Some("set `application.session_timeout`"),
        _ => None,
    }
}
