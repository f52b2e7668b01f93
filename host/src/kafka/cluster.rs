//! What can be asked of the cluster as a whole: topics, their limits and ids, where partitions begin and end.

use super::context::{Context, Told};
use super::source::Consumer;
use super::{CALL, faults, options, raw};
use crate::config::Kafka as Settings;
use crate::model::log::{Ends, OffsetCommit, TopicInfo, TopicLimits, TopicSpec};
use crate::model::{Clock, Fault, TopicPartition, Verdict};
use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::{Offset, TopicPartitionList};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// Between two looks at a topic that was just made.
const SETTLE: Duration = Duration::from_millis(50);
/// Topic settings whose value means "no bound".
const UNBOUNDED: i64 = i64::MAX;

pub(super) struct Cluster {
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    admin: AdminClient<Context>,
    /// Two clients, because librdkafka asks for ends under the client's isolation level.
    committed: Consumer,
    uncommitted: Consumer,
    told: Told,
}

struct Unpark(Thread);

impl Cluster {
    pub(super) fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Cluster, Fault> {
        let told = Told::default();
        let context = || Context::new(Arc::clone(&clock), told.clone());
        let failed = |error| faults::of(&error, "making a kafka client");
        let lookup = |isolation| options::lookup(&settings, isolation).create_with_context(context());
        let (committed, uncommitted) =
            (lookup("read_committed").map_err(failed)?, lookup("read_uncommitted").map_err(failed)?);
        let admin = options::admin(&settings).create_with_context(context()).map_err(failed)?;
        Ok(Cluster { admin, committed, uncommitted, settings, clock, told })
    }

    /// Of one more client.
    pub(super) fn context(&self) -> Context {
        Context::new(Arc::clone(&self.clock), self.told.clone())
    }

    /// Says whether a broker answers.
    pub(super) fn reach(&self) -> Result<(), Fault> {
        let brokers = &self.settings.brokers;
        self.metadata(None).map(drop).map_err(|fault| match fault.code {
            "broker-away" => fault.during(format!("reaching kafka at {brokers}")).hint("is a broker running there?"),
            _ => fault.during(format!("reaching kafka at {brokers}")),
        })
    }

    pub(super) fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Fault> {
        let metadata = self.metadata(Some(name))?;
        let Some(topic) = metadata.topics().iter().find(|topic| topic.name() == name) else { return Ok(None) };
        match topic.error().map(Code::from) {
            None => self.describe(topic).map(Some),
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(None),
            Some(code) => Err(faults::of_code(code, format!("looking up topic {name}"))),
        }
    }

    pub(super) fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        let metadata = self.metadata(None)?;
        metadata.topics().iter().filter(|topic| topic.error().is_none()).map(|topic| self.describe(topic)).collect()
    }

    pub(super) fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault> {
        // -1: the broker's default replication (KIP-464).
        let replication = TopicReplication::Fixed(spec.replication.unwrap_or(-1));
        let mut topic = NewTopic::new(&spec.name, spec.partitions, replication);
        for (name, value) in &spec.properties {
            topic = topic.set(name, value);
        }
        let doing = format!("creating topic {}", spec.name);
        let options = AdminOptions::new().request_timeout(Some(CALL)).operation_timeout(Some(CALL));
        let answers = block_on(self.admin.create_topics([&topic], &options)).map_err(|e| faults::of(&e, &doing))?;
        match answers.into_iter().next() {
            Some(Err((_, code))) if code != Code::TopicAlreadyExists => Err(refused_topic(code, &doing)),
            _ => self.settle(&spec.name),
        }
    }

    /// Waits until a topic that was made can be used: what brokers know, and what our clients have remembered of its absence, lags
    /// behind.
    fn settle(&self, name: &str) -> Result<(), Fault> {
        let end = self.clock.monotonic() + CALL;
        loop {
            match self.has_leaders(name) {
                Ok(true) => return Ok(()),
                Err(fault) if !lags(&fault) => return Err(fault),
                _ if self.clock.monotonic() > end => return Err(unsettled(name)),
                _ => std::thread::park_timeout(SETTLE),
            }
        }
    }

    /// Whether every partition of a topic answers both clients.
    fn has_leaders(&self, name: &str) -> Result<bool, Fault> {
        let Some(info) = self.topic(name)? else { return Ok(false) };
        (0..info.partitions).try_for_each(|p| self.ends(&TopicPartition::new(name, p)).map(drop))?;
        Ok(info.partitions > 0)
    }

    pub(super) fn delete_records(&self, partition: &TopicPartition, before: i64) -> Result<(), Fault> {
        let doing = format!("deleting the records of {partition} before offset {before}");
        let failed = |error: KafkaError| undeleted(&error, &doing);
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&partition.topic, partition.partition, Offset::Offset(before)).map_err(failed)?;
        let options = AdminOptions::new().request_timeout(Some(CALL)).operation_timeout(Some(CALL));
        let answers = block_on(self.admin.delete_records(&list, &options)).map_err(failed)?;
        answers.elements().iter().try_for_each(|answer| answer.error().map_err(failed))
    }

    pub(super) fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault> {
        let (start, stable) = self.watermarks(&self.committed, partition)?;
        let (_, end) = self.watermarks(&self.uncommitted, partition)?;
        Ok(Ends { start, stable, end })
    }

    /// A question per broker, not per partition.
    pub(super) fn ends_of(&self, partitions: &[TopicPartition]) -> Result<Vec<Ends>, Fault> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let starts = self.offsets(&self.committed, partitions, Offset::Beginning)?;
        let stable = self.offsets(&self.committed, partitions, Offset::End)?;
        let ends = self.offsets(&self.uncommitted, partitions, Offset::End)?;
        let all = starts.into_iter().zip(stable).zip(ends);
        Ok(all.map(|((start, stable), end)| Ends { start, stable, end }).collect())
    }

    /// Where partitions begin or end, as the client's isolation level has it.
    fn offsets(&self, client: &Consumer, partitions: &[TopicPartition], at: Offset) -> Result<Vec<i64>, Fault> {
        self.serve();
        let failed =
            |error: KafkaError| faults::of(&error, format!("looking up the ends of {} partitions", partitions.len()));
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            list.add_partition_offset(&partition.topic, partition.partition, at).map_err(failed)?;
        }
        let found = client.offsets_for_times(list, CALL).map_err(failed)?;
        let read = |partition: &TopicPartition| {
            let element = found.find_partition(&partition.topic, partition.partition);
            let unknown = || Fault::transient("kafka-error", format!("looking up the ends of {partition}: no answer"));
            let element = element.ok_or_else(unknown)?;
            element.error().map_err(|error| faults::of(&error, format!("looking up the ends of {partition}")))?;
            match element.offset() {
                Offset::Offset(offset) => Ok(offset),
                _ => Err(unknown()),
            }
        };
        partitions.iter().map(read).collect()
    }

    /// Says whether offsets count in the topics that are there now. librdkafka takes a topic that was made again for the old one and
    /// reads on at the old offset (2.12.1, `rd_kafka_topic_metadata_update`), so this is asked after the records were fetched and
    /// before their offsets are sent.
    pub(super) fn check(&self, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        let mut names: Vec<&str> = Vec::new();
        for commit in offsets.iter().filter(|commit| !commit.topic_id.is_empty()) {
            if !names.contains(&&*commit.partition.topic) {
                names.push(&commit.partition.topic);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let ids = self.ids(&names)?;
        let now =
            |topic: &str| names.iter().zip(&ids).find(|(name, _)| **name == topic).and_then(|(_, id)| id.as_deref());
        offsets.iter().try_for_each(|commit| commit.check(now(&commit.partition.topic)))
    }

    fn ids(&self, names: &[&str]) -> Result<Vec<Option<String>>, Fault> {
        raw::topic_ids(self.admin.inner(), names, CALL).ok_or_else(|| {
            Fault::transient("broker-away", format!("asking for the ids of {}: no answer in time", names.join(", ")))
        })
    }

    /// How many partitions the topics have together.
    pub(super) fn partitions_of(&self, topics: &[Arc<str>]) -> Result<u64, Fault> {
        topics.iter().map(|topic| Ok(self.count(&self.metadata(Some(topic))?, topic))).sum()
    }

    fn count(&self, metadata: &Metadata, name: &str) -> u64 {
        let topic = metadata.topics().iter().find(|topic| topic.name() == name);
        topic.map_or(0, |topic| topic.partitions().len() as u64)
    }

    fn describe(&self, topic: &MetadataTopic) -> Result<TopicInfo, Fault> {
        let name = topic.name().to_owned();
        let id = self.ids(&[&name])?.remove(0).ok_or_else(|| {
            Fault::transient("topic-not-yet-there", format!("topic {name} is known to one broker, and not to another"))
        })?;
        let limits = self.limits(&name)?;
        Ok(TopicInfo { partitions: i32::try_from(topic.partitions().len()).unwrap_or(i32::MAX), name, id, limits })
    }

    fn limits(&self, name: &str) -> Result<TopicLimits, Fault> {
        let doing = format!("reading the settings of topic {name}");
        let options = AdminOptions::new().request_timeout(Some(CALL));
        let answer = block_on(self.admin.describe_configs([&ResourceSpecifier::Topic(name)], &options));
        match answer.map_err(|error| faults::of(&error, &doing))?.into_iter().next() {
            Some(Ok(settings)) => Ok(limits(&settings)),
            Some(Err(code)) => Err(faults::of_code(code, doing)),
            None => Err(Fault::transient("kafka-error", format!("{doing}: no answer"))),
        }
    }

    fn metadata(&self, topic: Option<&str>) -> Result<Metadata, Fault> {
        self.serve();
        let doing = || topic.map_or_else(|| "looking up topics".into(), |name| format!("looking up topic {name}"));
        self.committed.fetch_metadata(topic, CALL).map_err(|error| faults::of(&error, doing()))
    }

    fn watermarks(&self, client: &Consumer, partition: &TopicPartition) -> Result<(i64, i64), Fault> {
        self.serve();
        client
            .fetch_watermarks(&partition.topic, partition.partition, CALL)
            .map_err(|error| faults::of(&error, format!("looking up the ends of {partition}")))
    }

    /// Takes logs and errors from queues that nobody else serves.
    fn serve(&self) {
        for client in [&self.committed, &self.uncommitted] {
            while client.poll(Duration::ZERO).is_some() {}
            client.context().caught_up();
        }
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an administrative call. rdkafka completes it from a thread of its own; its request time-out bounds it.
fn block_on<T>(future: impl Future<Output = Result<T, KafkaError>>) -> Result<T, KafkaError> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Task::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn lags(fault: &Fault) -> bool {
    fault.verdict == Verdict::Transient || ["topic-missing", "partition-missing"].contains(&fault.code)
}

fn unsettled(name: &str) -> Fault {
    Fault::transient("topic-not-yet-there", format!("topic {name}: created, but not yet to be seen")).hint("try again")
}

fn undeleted(error: &KafkaError, doing: &str) -> Fault {
    match error.rdkafka_error_code() {
        Some(code @ Code::PolicyViolation) => {
            Fault::fatal("delete-refused", format!("{doing}: {}", faults::describe(code)))
                .hint("the topic is only compacted: its records cannot be deleted from the front")
        }
        _ => faults::of(error, doing),
    }
}

fn refused_topic(code: Code, doing: &str) -> Fault {
    match code {
        Code::InvalidPartitions | Code::InvalidReplicationFactor | Code::InvalidConfig | Code::PolicyViolation => {
            Fault::fatal("topic-refused", format!("{doing}: {}", faults::describe(code)))
                .hint("check the topic's partitions, replication and properties")
        }
        _ => faults::of_code(code, doing),
    }
}

fn limits(settings: &ConfigResource) -> TopicLimits {
    let text = |name| settings.get(name).and_then(|entry| entry.value.as_deref()).unwrap_or_default();
    let number = |name, otherwise: i64| text(name).parse().unwrap_or(otherwise);
    let policies = || text("cleanup.policy").split(',').map(str::trim);
    TopicLimits {
        max_message_bytes: u64::try_from(number("max.message.bytes", 1_048_588)).unwrap_or(u64::MAX),
        timestamp_before_ms: number("message.timestamp.before.max.ms", UNBOUNDED),
        timestamp_after_ms: number("message.timestamp.after.max.ms", UNBOUNDED),
        compact: policies().any(|policy| policy == "compact"),
        delete: policies().any(|policy| policy == "delete"),
        delete_retention_ms: number("delete.retention.ms", 86_400_000),
    }
}
