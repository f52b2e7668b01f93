//! From the checked tree to [`Application`]. Total: what is missing or does not fit reads as its default or as empty.

use super::section::Section;
use super::settings::{
    Admin, Application, Components, DeadLetters, Input, Kafka, Limits, LogKind, Ordering, Oversize, Parking, Processor,
    Retry, Start, Topic,
};
use super::tree::{Entry, Node, Value};
use super::{codes, properties};
use crate::model::log::{Delivery, GroupProtocol};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The application that stands in the file `path`.
pub(super) fn application(document: &Node, path: &Path) -> Application {
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let root = Section::new(Some(document), "", folder);
    let own = root.section("application", "application");
    let log = root.section("log", "log");
    Application {
        id: own.text("id"),
        state_dir: own.path("state_dir"),
        commit_interval: own.duration("commit_interval"),
        commit_bytes: own.size("commit_bytes"),
        delivery: delivery(&own),
        workers: own.integer("workers").map_or_else(cores, |n| n as usize),
        group_protocol: group_protocol(&own),
        session_timeout: own.duration("session_timeout"),
        shutdown_grace: own.duration("shutdown_grace"),
        stuck_after: own.duration("stuck_after"),
        cache_bytes: own.size("cache"),
        write_buffer_bytes: own.size("write_buffers"),
        plugin_stack_bytes: own.size("plugin_stack"),
        admin: admin(&root.section("admin", "admin")),
        components: components(&root.section("components", "components"), &own.path("state_dir")),
        log: log_kind(&log, &root),
        topics: topics(&root),
        create_topics: log.switch("create_topics"),
        new_stores: Vec::new(),
        processors: processors(document, folder),
    }
}

fn admin(section: &Section<'_>) -> Admin {
    let path = |key| section.get(key).map(|_| section.path(key));
    Admin {
        listen: section.text("listen"),
        token: section.optional_text("token"),
        tls: path("tls_certificate").zip(path("tls_key")),
        behind_proxy: section.switch("behind_proxy"),
        advertise: section.optional_text("advertise"),
    }
}

/// The folder is absolute.
fn components(section: &Section<'_>, state_dir: &Path) -> Components {
    let folder = |path: PathBuf| path.display().to_string();
    let store = match section.optional_text("store") {
        Some(url) if url.contains("://") => url,
        Some(_) => folder(section.path("store")),
        None => folder(state_dir.join("components")),
    };
    Components { store, properties: properties::read(section.get("properties").and_then(|e| e.node.table())) }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn delivery(own: &Section<'_>) -> Delivery {
    match own.text("delivery").as_str() {
        "at-least-once" => Delivery::AtLeastOnce,
        _ => Delivery::ExactlyOnce,
    }
}

fn group_protocol(own: &Section<'_>) -> GroupProtocol {
    match own.text("group_protocol").as_str() {
        "consumer" => GroupProtocol::Consumer,
        _ => GroupProtocol::Classic,
    }
}

fn log_kind(log: &Section<'_>, root: &Section<'_>) -> LogKind {
    if log.text("kind") == "local" {
        return LogKind::Local { dir: log.path("dir") };
    }
    let properties = root.section("kafka", "kafka").get("properties");
    LogKind::Kafka(Kafka {
        brokers: log.text("brokers"),
        transaction_timeout: log.duration("transaction_timeout"),
        fetch_bytes: log.size("fetch_memory"),
        properties: properties::read(properties.and_then(|e| e.node.table())),
    })
}

fn topics(root: &Section<'_>) -> BTreeMap<String, Topic> {
    let all = root.section("topics", "topics");
    all.entries().iter().map(|e| (e.key.clone(), topic(&all.section(&e.key, "topics.<topic>")))).collect()
}

fn topic(section: &Section<'_>) -> Topic {
    Topic {
        partitions: section.integer("partitions").unwrap_or(1) as i32,
        replication: section.integer("replication").map(|n| n as i32),
        properties: properties::read(section.get("properties").and_then(|e| e.node.table())),
    }
}

fn processors(document: &Node, folder: &Path) -> Vec<Processor> {
    let list = document.get("processor").and_then(|e| e.node.list()).unwrap_or_default();
    list.iter().map(|node| processor(&Section::new(Some(node), "processor", folder))).collect()
}

fn processor(section: &Section<'_>) -> Processor {
    let inputs = section.section("inputs", "processor.inputs");
    let outputs = section.section("outputs", "processor.outputs");
    Processor {
        name: section.text("name"),
        plugin: section.path("plugin"),
        watch: section.switch("watch"),
        probation: section.duration("probation"),
        dead_letter_topic: section.optional_text("dead_letter_topic"),
        inputs: inputs.entries().iter().map(|e| (e.key.clone(), input(&inputs, e))).collect(),
        outputs: outputs.entries().iter().map(|e| (e.key.clone(), outputs.text(&e.key))).collect(),
        settings: section.get("settings").map_or_else(|| Json::Object(Default::default()), |e| json(&e.node)),
        limits: limits(&section.section("limits", "processor.limits")),
        ordering: if section.text("ordering") == "key" { Ordering::Key } else { Ordering::Partition },
        retry: retry(&section.section("retry", "processor.retry")),
        dead_letter: dead_letter(&section.section("dead_letter", "processor.dead_letter")),
        parking: parking(&section.section("parking", "processor.parking")),
    }
}

fn retry(section: &Section<'_>) -> Retry {
    Retry {
        first_delay: section.duration("first_delay"),
        factor: section.factor("factor"),
        max_delay: section.duration("max_delay"),
        max_attempts: section.integer("max_attempts").unwrap_or(1) as u32,
        codes: codes::read(section.get("codes").and_then(|e| e.node.table())),
    }
}

fn dead_letter(section: &Section<'_>) -> DeadLetters {
    DeadLetters {
        oversize: if section.text("oversize") == "stop" { Oversize::Stop } else { Oversize::Truncate },
        connect_headers: section.switch("connect_headers"),
        limit: section.letter_limit("limit"),
    }
}

fn parking(section: &Section<'_>) -> Parking {
    Parking { records: section.integer("records").unwrap_or_default() as usize, bytes: section.size("bytes") }
}

fn input(inputs: &Section<'_>, entry: &Entry) -> Input {
    if entry.node.table().is_none() {
        return Input { topic: inputs.text(&entry.key), start: Start::Earliest };
    }
    let section = inputs.section(&entry.key, "processor.inputs.<input>");
    let start = if section.text("start") == "latest" { Start::Latest } else { Start::Earliest };
    Input { topic: section.text("topic"), start }
}

fn limits(section: &Section<'_>) -> Limits {
    let count = |key| section.integer(key).unwrap_or_default();
    Limits {
        memory: section.size("memory"),
        memory_keep: section.size("memory_keep"),
        record_deadline: section.duration("record_deadline"),
        init_deadline: section.duration("init_deadline"),
        batch_records: count("batch_records") as usize,
        batch_bytes: section.size("batch_bytes") as usize,
        emits: count("emits") as usize,
        output_bytes: section.size("output_bytes"),
        log_lines: count("log_lines") as u32,
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Text { text, .. } | Value::Huge(text) | Value::Date(text) => Json::from(text.as_str()),
        Value::Integer(n) => Json::from(*n),
        Value::Float(n) => Json::from(*n),
        Value::Switch(on) => Json::from(*on),
        Value::List(nodes) => nodes.iter().map(json).collect(),
        Value::Table(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), json(&e.node))).collect()),
        Value::Unresolved => Json::Null,
    }
}
