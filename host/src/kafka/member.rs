//! One membership in a group: what the group gives becomes sources, what it takes is given back only after the listener has agreed.

use super::group::KafkaGroup;
use super::raw::Queue;
use super::source::{Consumer, KafkaSource, Signals};
use super::{Cluster, faults, options};
use crate::model::log::{Group, GroupListener, GroupProtocol, GroupSpec, Member, Source};
use crate::model::{Fault, TopicPartition};
use rdkafka::consumer::{Consumer as _, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::{Message, Offset, TopicPartitionList};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Rounds of serving the group while it is being left, a tenth of a second each. What the listener takes comes on top.
const LEAVING_ROUNDS: usize = 100;

pub(super) struct KafkaMember {
    consumer: Arc<Consumer>,
    group: Arc<KafkaGroup>,
    protocol: GroupProtocol,
}

/// What a member holds, changed in the rebalance callback on the member's polling thread.
pub(super) struct Assignments {
    /// Set once, after the consumer has been made with the context that holds this.
    consumer: OnceLock<Weak<Consumer>>,
    listener: Arc<dyn GroupListener>,
    held: Mutex<HashMap<TopicPartition, Arc<Signals>>>,
    failed: Mutex<Option<Fault>>,
}

impl KafkaMember {
    pub(super) fn join(
        cluster: &Arc<Cluster>,
        spec: GroupSpec,
        listener: Arc<dyn GroupListener>,
    ) -> Result<KafkaMember, Fault> {
        let doing = format!("joining group {}", spec.group);
        let partitions = cluster.partitions_of(&spec.topics)?;
        let context = cluster.context().with_assignments(Assignments::new(listener));
        let consumer: Consumer = options::member(&cluster.settings, &spec, partitions)
            .create_with_context(context)
            .map_err(|error| faults::of(&error, &doing))?;
        let consumer = Arc::new(consumer);
        if let Some(assignments) = consumer.context().assignments() {
            let _ = assignments.consumer.set(Arc::downgrade(&consumer));
        }
        let topics: Vec<&str> = spec.topics.iter().map(|topic| &**topic).collect();
        consumer.subscribe(&topics).map_err(|error| faults::of(&error, &doing))?;
        let group = Arc::new(KafkaGroup::new(spec.group, Arc::downgrade(&consumer), Arc::clone(cluster)));
        Ok(KafkaMember { consumer, group, protocol: spec.protocol })
    }

    fn trouble(&self, error: &KafkaError) -> Result<(), Fault> {
        if let KafkaError::PartitionEOF(partition) = error {
            self.rewind(|held| held.partition == *partition);
            return Ok(());
        }
        let doing = format!("being a member of group {}", self.group.name());
        if let Some((code, reason)) = self.consumer.client().fatal_error() {
            return Err(self.ended(code, &reason, &doing));
        }
        match error.rdkafka_error_code() {
            // A rebalance follows, in which the partitions count as lost.
            Some(Code::PollExceeded) => Ok(()),
            // Metadata may lag behind a topic's creation; whether it exists is checked at start.
            Some(code @ (Code::UnknownTopicOrPartition | Code::UnknownTopic)) => {
                Err(Fault::transient("topic-missing", format!("{doing}: {}", faults::describe(code))))
            }
            _ => Err(faults::of(error, doing)),
        }
    }

    /// librdkafka has given this membership up.
    fn ended(&self, code: Code, reason: &str, doing: &str) -> Fault {
        let waits = matches!(code, Code::UnreleasedInstanceId | Code::FencedInstanceId);
        if waits && self.protocol == GroupProtocol::Consumer {
            // The coordinator frees the identity when its session ends; nothing here is wrong.
            return Fault::transient("group-waits", format!("{doing}: {}", faults::describe(code)));
        }
        let fault = faults::of_code(code, doing);
        if fault.verdict == crate::model::Verdict::Fatal {
            return fault;
        }
        Fault::fatal("group-ended", format!("{doing}: {reason}")).hint("restart the process")
    }

    fn rewind(&self, which: impl Fn(&TopicPartition) -> bool) {
        let Some(assignments) = self.consumer.context().assignments() else { return };
        for (partition, signals) in assignments.held().iter().filter(|(partition, _)| which(partition)) {
            tracing::warn!(%partition, "a record came to the member's own queue; the partition is read again");
            signals.rewind.store(true, Ordering::Release);
        }
    }

    fn failed(&self) -> Result<(), Fault> {
        let assignments = self.consumer.context().assignments();
        let fault = assignments.and_then(|a| a.failed.lock().unwrap_or_else(PoisonError::into_inner).take());
        fault.map_or(Ok(()), Err)
    }
}

impl Member for KafkaMember {
    fn poll(&mut self, wait: Duration) -> Result<(), Fault> {
        match self.consumer.poll(wait) {
            None => {}
            Some(Ok(message)) => self.rewind(|p| &*p.topic == message.topic() && p.partition == message.partition()),
            Some(Err(error)) => self.trouble(&error)?,
        }
        self.failed()
    }

    fn group(&self) -> Arc<dyn Group> {
        Arc::clone(&self.group) as Arc<dyn Group>
    }

    fn leave(&mut self) -> Result<(), Fault> {
        if self.consumer.closed() {
            return Ok(());
        }
        let doing = format!("leaving group {}", self.group.name());
        if let Err(error) = self.consumer.close_queue() {
            // a client that was ended takes nothing back by itself
            if let Some(assignments) = self.consumer.context().assignments() {
                assignments.lose();
            }
            return Err(faults::of(&error, &doing));
        }
        for _ in 0..LEAVING_ROUNDS {
            if self.consumer.closed() {
                return self.failed();
            }
            let _ = self.consumer.poll(Duration::from_millis(100));
        }
        Err(Fault::transient("group-not-left", format!("{doing}: no answer in time")))
    }
}

impl Assignments {
    fn new(listener: Arc<dyn GroupListener>) -> Assignments {
        Assignments { consumer: OnceLock::new(), listener, held: Mutex::default(), failed: Mutex::default() }
    }

    /// Takes over what the group gives. Each partition's queue is cut off and the partition paused before the assign, so that
    /// nothing is fetched before the source's first seek and nothing ever comes to the member's own queue. The offset is only a
    /// placeholder: with a definite one librdkafka starts the fetcher at once, and a seek finds it running.
    pub(super) fn assign(&self, consumer: &Consumer, list: &mut TopicPartitionList) -> KafkaResult<()> {
        let sources = self.sources(list);
        list.set_all_offsets(Offset::Offset(0))?;
        if list.count() > 0 {
            consumer.pause(list)?;
        }
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_assign(list)?,
            _ => consumer.assign(list)?,
        }
        if !sources.is_empty() {
            self.listener.assigned(sources);
        }
        Ok(())
    }

    /// Gives back what the group takes, after the listener has let go of it.
    pub(super) fn revoke(&self, consumer: &Consumer, list: &TopicPartitionList) -> KafkaResult<()> {
        let partitions = named(list);
        if consumer.assignment_lost() {
            self.part(&partitions);
            self.listener.lost(&partitions);
        } else if !partitions.is_empty() {
            self.listener.revoked(&partitions);
            self.part(&partitions);
        }
        match consumer.rebalance_protocol() {
            RebalanceProtocol::Cooperative => consumer.incremental_unassign(list),
            _ => consumer.unassign(),
        }
    }

    /// Everything held may belong to others already.
    fn lose(&self) {
        let partitions: Vec<TopicPartition> = self.held().keys().cloned().collect();
        if !partitions.is_empty() {
            self.part(&partitions);
            self.listener.lost(&partitions);
        }
    }

    pub(super) fn fail(&self, fault: Fault) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    fn sources(&self, list: &TopicPartitionList) -> Vec<Box<dyn Source>> {
        let Some(consumer) = self.consumer.get().and_then(Weak::upgrade) else { return Vec::new() };
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(list.count());
        for partition in named(list) {
            let queue = Queue::of_partition(consumer.client(), &partition.topic, partition.partition);
            let Some(queue) = queue else { continue };
            let signals = Arc::new(Signals::default());
            self.held().insert(partition.clone(), Arc::clone(&signals));
            sources.push(Box::new(KafkaSource::paused(queue, Arc::clone(&consumer), partition, signals)));
        }
        sources
    }

    /// From here on the sources read nothing, whoever still holds them.
    fn part(&self, partitions: &[TopicPartition]) {
        let mut held = self.held();
        for signals in partitions.iter().filter_map(|partition| held.remove(partition)) {
            signals.gone.store(true, Ordering::Release);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TopicPartition, Arc<Signals>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(list: &TopicPartitionList) -> Vec<TopicPartition> {
    list.elements().iter().map(|element| TopicPartition::new(element.topic(), element.partition())).collect()
}
