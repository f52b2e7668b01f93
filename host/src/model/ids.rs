//! Names: of tasks, groups, internal topics and transactional ids. Everything that Pelton creates on a cluster is named here.

use std::fmt;
use std::sync::Arc;

/// How names of stores of our own begin; a plugin's may not.
pub const OWN_STORES: &str = "pelton-";
/// The store in which a task parks records whose key waits.
pub const PARKED_STORE: &str = "pelton-parked";

/// A topic and one of its partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: Arc<str>,
    pub partition: i32,
}

/// One processor × one partition number, of all its inputs: the unit of ownership, order and state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    pub processor: Arc<str>,
    pub partition: i32,
}

impl TopicPartition {
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        TopicPartition { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.processor, self.partition)
    }
}

/// The consumer group of a processor: `<application>-<processor>`.
pub fn group(application: &str, processor: &str) -> String {
    format!("{application}-{processor}")
}

/// The changelog of a store: `<application>-<processor>-<store>-changelog`.
pub fn changelog_topic(application: &str, processor: &str, store: &str) -> String {
    format!("{application}-{processor}-{store}-changelog")
}

/// Where a processor's dead letters go unless the file names a topic: `<application>-<processor>-dead-letters`.
pub fn dead_letter_topic(application: &str, processor: &str) -> String {
    format!("{application}-{processor}-dead-letters")
}

/// The transactional id of one worker of one instance: `<application>-<instance>-<worker>`. Stable over restarts, so that a
/// restart fences its own past.
pub fn transactional_id(application: &str, instance: &str, worker: usize) -> String {
    format!("{application}-{instance}-{worker}")
}

/// The static member id of one instance in a processor's group.
pub fn member_id(application: &str, instance: &str, processor: &str) -> String {
    format!("{application}-{processor}-{instance}")
}
