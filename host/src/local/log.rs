//! The embedded log as the rooms above see it.

use super::clean;
use super::group::{LocalGroup, LocalMember};
use super::inner::{DATABASE, Inner, lock};
use super::producer::LocalProducer;
use super::source::LocalSource;
use crate::model::log::{
    Committed, Delivery, Ends, Group, GroupListener, GroupSpec, Log, Member, Producer, Source, TopicInfo, TopicSpec,
};
use crate::model::{Clock, Fault, TopicPartition};
use std::path::Path;
use std::sync::Arc;

/// A handle of an embedded log. Handles of one folder within a process share it.
#[derive(Clone)]
pub struct LocalLog {
    inner: Arc<Inner>,
}

impl LocalLog {
    /// Opens the log in `dir`, making it where it is missing.
    ///
    /// `Fatal`: `log-in-use` (another process has it: its id and command are named), `log-not-writable`, `log-io`,
    /// `log-corrupt`.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<LocalLog, Fault> {
        Ok(LocalLog { inner: Inner::open(dir, clock)? })
    }

    /// Whether there is nothing in `dir` yet, so that [`LocalLog::open`] would make a log.
    pub fn is_absent(dir: &Path) -> bool {
        match std::fs::metadata(dir) {
            Ok(found) => found.is_dir() && !dir.join(DATABASE).exists(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Deletes a topic, its records and the offsets committed for it. Its readers and producers get `topic-missing`.
    pub fn delete_topic(&self, name: &str) -> Result<(), Fault> {
        self.inner.delete(name)
    }

    /// A group as seen from outside: it can be asked for its offsets.
    pub fn group(&self, name: &str) -> Arc<dyn Group> {
        Arc::new(LocalGroup::observer(self.inner.clone(), name))
    }

    #[cfg(test)]
    pub(super) fn record_count(&self, topic: &str, partition: i32) -> i64 {
        self.inner.existing(topic).unwrap().partition(partition).unwrap().get().records
    }
}

impl Log for LocalLog {
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Fault> {
        Ok(self.inner.topic(name).map(|topic| topic.info()))
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        let mut topics: Vec<TopicInfo> = self.inner.state().topics.values().map(|topic| topic.info()).collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(topics)
    }

    fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault> {
        self.inner.create(spec)
    }

    fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault> {
        Ok(self.inner.existing(&partition.topic)?.partition(partition.partition)?.ends())
    }

    fn delete_records(&self, partition: &TopicPartition, before: i64) -> Result<(), Fault> {
        let _commit = lock(&self.inner.commit);
        clean::delete_before(&self.inner, partition, before)
    }

    fn producer(&self, id: &str, delivery: Delivery) -> Result<Box<dyn Producer>, Fault> {
        Ok(Box::new(LocalProducer::new(self.inner.clone(), id, delivery)))
    }

    fn join(&self, spec: GroupSpec, listener: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault> {
        Ok(Box::new(LocalMember::new(self.inner.clone(), spec, listener)))
    }

    fn committed(&self, group: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        self.group(group).committed(partitions)
    }

    fn reader(&self, partition: &TopicPartition, offset: i64) -> Result<Box<dyn Source>, Fault> {
        Ok(Box::new(LocalSource::new(self.inner.clone(), partition, Some(offset))?))
    }
}
