//! What no setting can be blamed for alone: settings that contradict each other.

use super::errors::{Collector, Wrong};
use super::names;
use super::settings::{Application, LogKind, Ordering, Processor};
use super::tree::{Entry, Node};
use super::unknown::nearest;
use super::{admin, units, walk};
use crate::model::ids;
use std::collections::BTreeSet;

/// Checks the application as a whole; `document` gives the places.
pub(super) fn check(application: &Application, document: &Node, mistakes: &mut Collector) {
    let mut checks = Checks { application, document, mistakes };
    checks.log_kind();
    checks.admin();
    checks.commit_interval();
    checks.unused_topics();
    checks.processors();
}

struct Checks<'a> {
    application: &'a Application,
    document: &'a Node,
    mistakes: &'a mut Collector,
}

impl Checks<'_> {
    fn log_kind(&mut self) {
        let Some(log) = self.document.get("log") else { return };
        let kind = log.node.get("kind").map(|e| super::properties::scalar(&e.node).unwrap_or_default());
        let (needed, refused, example) = match kind.as_deref() {
            Some("kafka") => ("brokers", "dir", "\"127.0.0.1:9092\""),
            Some("local") => ("dir", "brokers", "\"log\""),
            _ => return,
        };
        if log.node.get(needed).is_none() {
            let hint = format!("add {needed} = {example} under [log]");
            let message = format!("is missing: it is needed with kind = \"{}\"", kind.as_deref().unwrap_or_default());
            self.mistakes.add(log.node.at, &format!("log.{needed}"), Wrong::new("missing-key", message, hint));
        }
        if let Some(entry) = log.node.get(refused) {
            let message = format!("has no meaning with kind = \"{}\"", kind.as_deref().unwrap_or_default());
            let wrong = Wrong::new("conflict", message, "remove it, or change log.kind");
            self.mistakes.add(entry.at, &format!("log.{refused}"), wrong);
        }
    }

    fn admin(&mut self) {
        if let Some((key, wrong)) = admin::problem(self.document, &self.application.admin) {
            self.at(&["admin", key], &walk::join("admin", key), wrong);
        }
    }

    fn commit_interval(&mut self) {
        let LogKind::Kafka(kafka) = &self.application.log else { return };
        let most = kafka.transaction_timeout / 3;
        let path = ["application", "commit_interval"];
        if most.is_zero() || self.application.commit_interval <= most {
            return;
        }
        let timeout = units::show_duration(kafka.transaction_timeout);
        let message = format!("is more than a third of log.transaction_timeout ({timeout})");
        let hint = format!("at most {} with it; or raise log.transaction_timeout", units::show_duration(most));
        self.at(&path, "application.commit_interval", Wrong::new("conflict", message, hint));
    }

    /// A section of [topics] that no processor touches is most likely a misspelt name, and its settings would be lost.
    fn unused_topics(&mut self) {
        if self.mistakes.has_below("processor") {
            return; // a topic named there may not have been understood
        }
        let used: BTreeSet<&str> = self.application.processors.iter().flat_map(topics_of).collect();
        for topic in self.application.topics.keys().filter(|t| !used.contains(t.as_str())) {
            let hint = match nearest(topic, used.iter().copied()) {
                Some(near) => format!("did you mean [topics.{near}]?"),
                None => "remove the section".to_owned(),
            };
            let wrong = Wrong::new("conflict", "is a topic that no processor reads or writes", hint);
            self.at(&["topics", topic], &walk::join("topics", topic), wrong);
        }
    }

    fn processors(&mut self) {
        let nodes = self.document.get("processor").and_then(|e| e.node.list()).unwrap_or_default();
        let application = self.application;
        for (i, (processor, node)) in application.processors.iter().zip(nodes).enumerate() {
            let earlier = &application.processors[..i];
            if !processor.name.is_empty() && earlier.iter().any(|p| p.name == processor.name) {
                let message = format!("two processors are named `{}`", processor.name);
                let hint = "give one of them another name: it names the consumer group and the changelogs";
                self.mistakes.add(place(node, "name"), "processor.name", Wrong::new("conflict", message, hint));
            }
            self.name_length(processor, node);
            self.loops(processor, node);
            self.inputs_apart(processor, node);
            self.deadlines(processor, node);
            self.delays(processor, node);
        }
    }

    fn name_length(&mut self, processor: &Processor, node: &Node) {
        // a park is a store, and its name is longer than that of many
        let needed = if processor.ordering == Ordering::Key { ids::PARKED_STORE.len() } else { 1 };
        if names::store_name_room(&self.application.id, &processor.name) >= needed as isize {
            return;
        }
        let message = format!(
            "leaves no room for a store in the names of changelogs (at most {} characters)",
            names::TOPIC_NAME_MAX
        );
        let wrong = Wrong::new("invalid-name", message, "shorten it, or application.id");
        self.mistakes.add(place(node, "name"), "processor.name", wrong);
    }

    /// A processor that reads what it writes would feed itself for ever.
    fn loops(&mut self, processor: &Processor, node: &Node) {
        let reads: BTreeSet<&str> = processor.inputs.values().map(|i| i.topic.as_str()).collect();
        for (output, topic) in &processor.outputs {
            let entry = node.get("outputs").and_then(|e| e.node.get(output));
            self.written(topic, &reads, (entry, node), &walk::join("processor.outputs", output));
        }
        if let Some(topic) = &processor.dead_letter_topic {
            self.written(topic, &reads, (node.get("dead_letter_topic"), node), "processor.dead_letter_topic");
        }
    }

    fn written(&mut self, topic: &str, reads: &BTreeSet<&str>, place: (Option<&Entry>, &Node), path: &str) {
        let at = place.0.map_or(place.1.at, |e| e.at);
        if !topic.is_empty() && reads.contains(topic) {
            let message = format!("the processor also reads the topic `{topic}`, so it would feed itself for ever");
            self.mistakes.add(at, path, Wrong::new("conflict", message, "write to another topic"));
        }
        if names::is_internal(&self.application.id, topic) {
            let message = format!("`{topic}` is the name of a changelog of this application");
            self.mistakes.add(at, path, Wrong::new("conflict", message, "write to another topic"));
        }
    }

    /// Each topic is one input, so that a record has one input.
    fn inputs_apart(&mut self, processor: &Processor, node: &Node) {
        let mut seen = BTreeSet::new();
        for (input, spec) in &processor.inputs {
            if !spec.topic.is_empty() && !seen.insert(&spec.topic) {
                let at = node.get("inputs").and_then(|e| e.node.get(input)).map_or(node.at, |e| e.at);
                let message = format!("another input of the processor reads the topic `{}` already", spec.topic);
                let hint = "name each topic once, or use two processors";
                self.mistakes.add(at, &walk::join("processor.inputs", input), Wrong::new("conflict", message, hint));
            }
        }
    }

    fn deadlines(&mut self, processor: &Processor, node: &Node) {
        let deadline = processor.limits.record_deadline;
        let bounds = [
            (self.application.stuck_after, "application.stuck_after"),
            (self.application.revocation_budget(), "half of max.poll.interval.ms"),
        ];
        if let Some((bound, name)) = bounds.into_iter().find(|(bound, _)| deadline >= *bound) {
            let at = node.get("limits").map_or(node.at, |e| place(&e.node, "record_deadline"));
            let message = format!("is not below {name} ({})", units::show_duration(bound));
            let wrong = Wrong::new("conflict", message, format!("lower it, or raise {name}"));
            self.mistakes.add(at, "processor.limits.record_deadline", wrong);
        }
    }

    fn delays(&mut self, processor: &Processor, node: &Node) {
        let (first, longest) = (processor.retry.first_delay, processor.retry.max_delay);
        if first > longest {
            let at = node.get("retry").map_or(node.at, |e| place(&e.node, "first_delay"));
            let message = format!("is more than processor.retry.max_delay ({})", units::show_duration(longest));
            let wrong = Wrong::new("conflict", message, "lower it, or raise processor.retry.max_delay");
            self.mistakes.add(at, "processor.retry.first_delay", wrong);
        }
    }

    fn at(&mut self, keys: &[&str], path: &str, wrong: Wrong) {
        let mut at = 0;
        let mut node = self.document;
        for key in keys {
            let Some(entry) = node.get(key) else { break };
            (node, at) = (&entry.node, entry.at);
        }
        self.mistakes.add(at, path, wrong);
    }
}

fn topics_of(processor: &Processor) -> impl Iterator<Item = &str> {
    let inputs = processor.inputs.values().map(|i| i.topic.as_str());
    let outputs = processor.outputs.values().map(String::as_str);
    inputs.chain(outputs).chain(processor.dead_letter_topic.as_deref())
}

fn place(node: &Node, key: &str) -> usize {
    node.get(key).map_or(node.at, |e| e.at)
}
