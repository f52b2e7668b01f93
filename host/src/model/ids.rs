//! Names: of tasks, groups, internal topics and transactional ids. Everything that Pelton creates on a cluster is named here.

use std::fmt;
use std::str::FromStr;
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

/// A record's place in a topic that is known otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub partition: i32,
    pub offset: i64,
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

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.partition, self.offset)
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

/// Where hosts tell each other where they can be asked: `<application>-hosts`.
pub fn hosts_topic(application: &str) -> String {
    format!("{application}-hosts")
}

/// The client id of an instance that writes there: `<application>-hosts-<instance>`.
pub fn hosts_id(application: &str, instance: &str) -> String {
    format!("{application}-hosts-{instance}")
}

/// Where a processor's dead letters go unless the file names a topic: `<application>-<processor>-dead-letters`.
pub fn dead_letter_topic(application: &str, processor: &str) -> String {
    format!("{application}-{processor}-dead-letters")
}

/// Where replays write down which letters of a dead-letter topic they have done: `<topic>-replayed`.
pub fn marks_topic(dead_letter_topic: &str) -> String {
    format!("{dead_letter_topic}-replayed")
}

/// Where an application's hosts read which version of each plugin is active: `<application>-versions`.
pub fn versions_topic(application: &str) -> String {
    format!("{application}-versions")
}

/// The transactional id of whoever changes a version: `<application>-deploy`. One at a time: the next one fences it.
pub fn deploy_id(application: &str) -> String {
    format!("{application}-deploy")
}

/// The transactional id of whoever works on a processor's dead letters: `<application>-dlq-<processor>`. One at a time: the next one
/// fences it.
pub fn letters_id(application: &str, processor: &str) -> String {
    format!("{application}-dlq-{processor}")
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

/// Reads `<partition>:<offset>`, as [`Place`] shows it.
impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Place, ()> {
        let (partition, offset) = text.split_once(':').ok_or(())?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (is_number(partition), partition.parse(), is_number(offset), offset.parse()) {
            (true, Ok(partition), true, Ok(offset)) => Ok(Place { partition, offset }),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_shown() {
        let place = Place { partition: 3, offset: i64::MAX };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "3", "3:", ":7", "-1:7", "3:-7", "+3:7", "3:7:9", "3: 7", "3:9223372036854775808"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
    }
}
