//! Pass-through properties: of the Kafka client and of topics. Their names are checked, their values are the other side's business.

use super::errors::{Collector, Wrong};
use super::tree::{Entry, Node, Value};
use super::unknown::nearest;
use super::{librdkafka, walk};
use std::collections::BTreeMap;

/// Topic settings of Apache Kafka 4 (`org.apache.kafka.common.config.TopicConfig`).
const TOPIC_PROPERTIES: &[&str] = &[
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// First words of settings that other brokers of the same protocol add.
const VENDORS: &[&str] = &["confluent.", "redpanda."];

/// What S3-compatible stores are asked for, of the names of `object_store::aws::AmazonS3ConfigKey` and `ClientConfigKey`.
const STORE_PROPERTIES: &[&str] = &[
    "allow_http",
    "allow_invalid_certificates",
    "aws_access_key_id",
    "aws_allow_http",
    "aws_endpoint",
    "aws_region",
    "aws_secret_access_key",
    "aws_server_side_encryption",
    "aws_session_token",
    "aws_skip_signature",
    "aws_sse_kms_key_id",
    "aws_unsigned_payload",
    "aws_virtual_hosted_style_request",
    "connect_timeout",
    "proxy_url",
    "timeout",
];

/// Checks `[kafka.properties]`.
pub(super) fn check_client(table: &[Entry], path: &str, mistakes: &mut Collector) {
    check(table, path, mistakes, client_problem);
}

/// Checks `[topics.<topic>.properties]`.
pub(super) fn check_topic(table: &[Entry], path: &str, mistakes: &mut Collector) {
    check(table, path, mistakes, topic_problem);
}

/// Checks `[components.properties]`.
pub(super) fn check_store(table: &[Entry], path: &str, mistakes: &mut Collector) {
    check(table, path, mistakes, store_problem);
}

/// Names and values; a name whose dots are not quoted (`security.protocol = …`) is the same name. Where one repeats, the last wins
/// (and was reported).
pub(super) fn read(table: Option<&[Entry]>) -> BTreeMap<String, String> {
    let found = flat(table.unwrap_or_default(), "");
    found.into_iter().filter_map(|(name, entry)| Some((name, scalar(&entry.node)?))).collect()
}

/// A single value as text.
pub(super) fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text { text, .. } => Some(text.clone()),
        Value::Integer(n) => Some(n.to_string()),
        Value::Huge(n) => Some(n.clone()),
        Value::Float(n) => Some(n.to_string()),
        Value::Switch(on) => Some(on.to_string()),
        Value::Date(_) | Value::List(_) | Value::Table(_) | Value::Unresolved => None,
    }
}

fn check(table: &[Entry], path: &str, mistakes: &mut Collector, problem: fn(&str) -> Option<Wrong>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (name, entry) in flat(table, "") {
        let full = walk::join(path, &name);
        if let Some(first) = seen.insert(name.clone(), entry.at) {
            let hint = format!("it stands on line {} already: remove one of the two", mistakes.place(first).0);
            mistakes.add(entry.at, &full, Wrong::new("duplicate-key", "is set twice", hint));
        }
        if let Some(wrong) = problem(&name).or_else(|| not_scalar(&entry.node)) {
            mistakes.add(entry.at, &full, wrong);
        }
    }
}

fn not_scalar(node: &Node) -> Option<Wrong> {
    let wrong =
        || Wrong::wrong_type(format!("must be a single value, not {}", node.kind()), "write it as text in quotes");
    (scalar(node).is_none() && node.value != Value::Unresolved).then(wrong)
}

fn client_problem(name: &str) -> Option<Wrong> {
    if let Some(reason) = librdkafka::refused(name) {
        return Some(Wrong::new("refused-property", format!("may not be set: {reason}"), "remove it"));
    }
    let known = librdkafka::known();
    (!known.contains(&name)).then(|| unknown(name, known, "librdkafka has no property of this name"))
}

fn topic_problem(name: &str) -> Option<Wrong> {
    let known = TOPIC_PROPERTIES.contains(&name) || VENDORS.iter().any(|v| name.starts_with(v));
    (!known).then(|| unknown(name, TOPIC_PROPERTIES, "topics have no property of this name"))
}

fn store_problem(name: &str) -> Option<Wrong> {
    let known = STORE_PROPERTIES.contains(&name);
    (!known).then(|| unknown(name, STORE_PROPERTIES, "stores have no property of this name"))
}

fn unknown(name: &str, known: &'static [&'static str], message: &str) -> Wrong {
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "names are those of the client's or the broker's own documentation".to_owned(),
    };
    Wrong::new("unknown-property", message, hint)
}

/// Every value with its full name; dots that are not quoted are a part of it.
pub(super) fn flat<'a>(table: &'a [Entry], prefix: &str) -> Vec<(String, &'a Entry)> {
    let mut found = vec![];
    for entry in table {
        let name = if prefix.is_empty() { entry.key.clone() } else { format!("{prefix}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(inner) if !inner.is_empty() => found.extend(flat(inner, &name)),
            _ => found.push((name, entry)),
        }
    }
    found
}
