//! A group as workers see it: what it has committed, and the proof of membership that goes with offsets.

use super::source::Consumer;
use super::{CALL, Cluster, faults, options, raw};
use crate::model::log::{Committed, Group, OffsetCommit};
use crate::model::{Fault, TopicPartition};
use rdkafka::consumer::{CommitMode, Consumer as _, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::{Offset, TopicPartitionList};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Clients that ask for what groups have committed and never join them. As many as there are groups that somebody asks for.
#[derive(Default)]
pub(super) struct Observers {
    groups: Mutex<HashMap<String, Arc<Consumer>>>,
}

#[derive(Clone)]
pub(super) struct KafkaGroup {
    name: Arc<str>,
    /// The member's consumer; gone when the member is.
    member: Weak<Consumer>,
    cluster: Arc<Cluster>,
    /// A client of its own that never joins, made when first asked: on the member's connection a question would wait behind a join.
    observer: Arc<Mutex<Option<Arc<Consumer>>>>,
}

impl KafkaGroup {
    pub(super) fn new(name: String, member: Weak<Consumer>, cluster: Arc<Cluster>) -> KafkaGroup {
        KafkaGroup { name: name.into(), member, cluster, observer: Arc::default() }
    }

    /// What goes with offsets into a transaction. Never that of a consumer outside the group: the broker would take it.
    pub(super) fn metadata(&self) -> Result<ConsumerGroupMetadata, Fault> {
        let member = self.member.upgrade().ok_or_else(|| self.no_member())?;
        let before = raw::membership(member.client());
        let metadata = member.group_metadata().ok_or_else(|| self.no_member())?;
        // rdkafka does not show what its metadata holds; equal answers before and after it do.
        let joined = before.as_ref().is_some_and(|(generation, id)| *generation >= 0 && !id.is_empty());
        if !joined || raw::membership(member.client()) != before {
            return Err(self.no_member());
        }
        Ok(metadata)
    }

    /// Commits offsets outside any transaction, as a member.
    pub(super) fn commit(&self, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        self.metadata()?;
        let member = self.member.upgrade().ok_or_else(|| self.no_member())?;
        let list = commits(offsets)?;
        member
            .commit(&list, CommitMode::Sync)
            .map_err(|error| faults::of(&error, format!("committing offsets of group {}", self.name)))
    }

    fn no_member(&self) -> Fault {
        Fault::transient("not-a-member", format!("group {} has no member here to commit offsets", self.name))
    }

    fn observer(&self) -> Result<Arc<Consumer>, Fault> {
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = &*observer {
            return Ok(Arc::clone(observer));
        }
        let made: Consumer = options::observer(&self.cluster.settings, &self.name)
            .create_with_context(self.cluster.context())
            .map_err(|error| faults::of(&error, format!("observing group {}", self.name)))?;
        Ok(Arc::clone(observer.insert(Arc::new(made))))
    }
}

impl Group for KafkaGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn committed(&self, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        let observer = self.observer()?;
        // Its logs and errors come to a queue that nobody else serves.
        while observer.poll(Duration::ZERO).is_some() {}
        observer.context().caught_up();
        ask(&observer, &self.name, partitions)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Observers {
    /// What a group has committed, past transactions that are open.
    pub(super) fn last_committed(
        &self,
        cluster: &Cluster,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Vec<Committed>, Fault> {
        let observer = self.get(cluster, group)?;
        // Its logs and errors come to a queue that nobody else serves.
        while observer.poll(Duration::ZERO).is_some() {}
        observer.context().caught_up();
        ask(&observer, group, partitions)
    }

    fn get(&self, cluster: &Cluster, group: &str) -> Result<Arc<Consumer>, Fault> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = groups.get(group) {
            return Ok(Arc::clone(observer));
        }
        let mut config = options::observer(&cluster.settings, group);
        // The client asks for settled offsets only (KIP-447) where it reads committed records only.
        config.set("isolation.level", "read_uncommitted");
        let made: Consumer = config
            .create_with_context(cluster.context())
            .map_err(|error| faults::of(&error, format!("observing group {group}")))?;
        Ok(Arc::clone(groups.entry(group.to_owned()).or_insert_with(|| Arc::new(made))))
    }
}

fn ask(observer: &Consumer, group: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for partition in partitions {
        list.add_partition(&partition.topic, partition.partition);
    }
    let list = observer.committed_offsets(list, CALL).map_err(|error| unsettled(&error, group))?;
    let read = |partition: &TopicPartition| {
        let Some(element) = list.find_partition(&partition.topic, partition.partition) else {
            return Ok(Committed::default());
        };
        element.error().map_err(|error| unsettled(&error, group))?;
        let Offset::Offset(offset) = element.offset() else { return Ok(Committed::default()) };
        Ok(Committed { offset: Some(offset), metadata: element.metadata().to_owned() })
    };
    partitions.iter().map(read).collect()
}

fn unsettled(error: &KafkaError, group: &str) -> Fault {
    let doing = format!("reading the committed offsets of group {group}");
    match error.rdkafka_error_code() {
        // The client asks again while a transaction holds offsets (KIP-447), until the time is up.
        Some(Code::OperationTimedOut | Code::UnstableOffsetCommit | Code::TimedOutQueue) => {
            Fault::transient("offsets-unstable", format!("{doing}: no answer in time"))
                .hint("a transaction that holds offsets of the group may be open, or the coordinator is away")
        }
        _ => faults::of(error, doing),
    }
}

/// Offsets as librdkafka takes them.
pub(super) fn commits(offsets: &[OffsetCommit]) -> Result<TopicPartitionList, Fault> {
    let mut list = TopicPartitionList::with_capacity(offsets.len());
    for commit in offsets {
        let mut element = list.add_partition(&commit.partition.topic, commit.partition.partition);
        element
            .set_offset(Offset::Offset(commit.offset))
            .map_err(|error| faults::of(&error, format!("committing {} at {}", commit.partition, commit.offset)))?;
        if !commit.metadata.is_empty() {
            element.set_metadata(&commit.metadata);
        }
    }
    Ok(list)
}
