//! Topics and records of a Kafka cluster, straight through rdkafka: what the host does is judged by another client.

use crate::broker::broker;
use crate::record::Rec;
use crate::wait::secs;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::groups::GroupInfo;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::{ClientConfig, Timestamp};
use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// Which records a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    Committed,
    Uncommitted,
}

/// A producer that remembers what was refused.
pub struct Feeder {
    producer: BaseProducer<Refusals>,
}

#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Vec<String>>>);

impl ClientContext for Refusals {}

impl ProducerContext for Refusals {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.0.lock().unwrap().push(error.to_string());
        }
    }
}

/// Creates a topic with Kafka's names for its settings. Retention is off: records of tests are stamped in the past, and the broker
/// would delete them at its first look.
pub fn create_topic(name: &str, partitions: i32, settings: &[(&str, &str)]) {
    let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1)).set("retention.ms", "-1");
    let topic = settings.iter().fold(topic, |topic, (key, value)| topic.set(key, value));
    let done = block_on(admin().create_topics([&topic], &options())).expect("create_topics answers");
    done.into_iter().for_each(|r| drop(r.unwrap_or_else(|e| panic!("topic {name}: {e:?}"))));
    crate::wait::until("the new topic is known", LIMIT, || (partition_count(name) == partitions).then_some(()));
}

pub fn delete_topic(name: &str) {
    let done = block_on(admin().delete_topics(&[name], &options())).expect("delete_topics answers");
    done.into_iter().for_each(|r| drop(r.unwrap_or_else(|e| panic!("topic {name}: {e:?}"))));
    crate::wait::until("the topic is gone", LIMIT, || (partition_count(name) == 0).then_some(()));
}

/// Deletes what is before `offset`. A topic that is only compacted refuses it.
pub fn delete_records(topic: &str, partition: i32, offset: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(offset)).unwrap();
    let done = block_on(admin().delete_records(&list, &options())).expect("delete_records answers");
    done.elements().iter().for_each(|e| e.error().unwrap_or_else(|e| panic!("{topic}/{partition}: {e}")));
}

/// [`delete_records`] of a compacted topic, before the offset given for each partition: the policy is widened meanwhile.
pub fn truncate_compacted(topic: &str, offsets: &[i64]) {
    alter(topic, &[("cleanup.policy", "compact,delete")]);
    offsets.iter().enumerate().for_each(|(p, &offset)| delete_records(topic, p as i32, offset));
    alter(topic, &[("cleanup.policy", "compact")]);
}

/// Gives a topic these settings in place of all that it had; retention stays off.
pub fn alter(topic: &str, settings: &[(&str, &str)]) {
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("retention.ms", "-1");
    let change = settings.iter().fold(change, |change, (key, value)| change.set(key, value));
    let done = block_on(admin().alter_configs([&change], &options())).expect("alter_configs answers");
    done.into_iter().for_each(|r| drop(r.unwrap_or_else(|e| panic!("topic {topic}: {e:?}"))));
}

/// Names of all topics.
pub fn topics() -> Vec<String> {
    let metadata = any_consumer().fetch_metadata(None, LIMIT).expect("metadata");
    metadata.topics().iter().map(|t| t.name().to_owned()).collect()
}

/// 0 where the topic does not exist.
pub fn partition_count(topic: &str) -> i32 {
    match any_consumer().fetch_metadata(Some(topic), LIMIT) {
        Ok(metadata) => metadata.topics().first().map_or(0, |t| t.partitions().len() as i32),
        Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition)) => 0,
        Err(e) => panic!("metadata of {topic}: {e}"),
    }
}

/// The first offset and the end of a partition, as uncommitted readers see it.
pub fn ends(topic: &str, partition: i32) -> (i64, i64) {
    any_consumer().fetch_watermarks(topic, partition, LIMIT).unwrap_or_else(|e| panic!("ends of {topic}: {e}"))
}

/// The sum of all ends: grows with every record.
pub fn total(topic: &str) -> i64 {
    let consumer = any_consumer();
    let end = |p| consumer.fetch_watermarks(topic, p, LIMIT).map_or(0, |(_, high)| high);
    (0..partition_count(topic)).map(end).sum()
}

/// What a group has committed, by partition, as seen by committed readers.
pub fn committed(group: &str, topic: &str) -> Vec<Option<i64>> {
    let committed = commits(group, topic);
    committed.elements().iter().map(|e| e.offset().to_raw().filter(|&offset| offset >= 0)).collect()
}

/// What a group keeps beside the offset of each partition; empty where nothing is kept.
pub fn metadata(group: &str, topic: &str) -> Vec<String> {
    commits(group, topic).elements().iter().map(|e| e.metadata().to_owned()).collect()
}

fn commits(group: &str, topic: &str) -> TopicPartitionList {
    let consumer: BaseConsumer = config().set("group.id", group).create().unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_range(topic, 0, partition_count(topic) - 1);
    consumer.committed_offsets(list, LIMIT).expect("committed offsets")
}

/// How many members of a classic group have partitions of a topic; 0 while the group is not settled.
pub fn holders(group: &str, topic: &str) -> usize {
    let groups = any_consumer().fetch_group_list(Some(group), LIMIT).expect("a list of groups");
    let names = |bytes: &[u8]| bytes.windows(topic.len()).any(|window| window == topic.as_bytes());
    let holders = |group: &GroupInfo| group.members().iter().filter(|m| m.assignment().is_some_and(names)).count();
    groups.groups().iter().filter(|group| group.state() == "Stable").map(holders).sum()
}

/// Joins a group as the static member of that id, whoever else has it.
pub fn join_as(group: &str, topic: &str, instance_id: &str) -> BaseConsumer {
    let mut config = config();
    config.set("group.id", group).set("group.instance.id", instance_id).set("session.timeout.ms", "6000");
    config.set("partition.assignment.strategy", "cooperative-sticky").set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    consumer.subscribe(&[topic]).expect("a topic");
    consumer
}

/// Lets a member take part; what it reads is dropped.
pub fn serve(member: &BaseConsumer) {
    drop(member.poll(Duration::from_millis(100)));
}

/// How often the members of a classic group have been given their partitions: the broker keeps a record of each time, whose key is
/// the number 2 and the group's name.
pub fn generations(group: &str) -> usize {
    let length = u16::try_from(group.len()).expect("a short name").to_be_bytes();
    let key = [&[0, 2], &length[..], group.as_bytes()].concat();
    let records = read("__consumer_offsets", Isolation::Uncommitted);
    records.iter().filter(|r| r.key.as_deref() == Some(&*key)).count()
}

/// Every record that is readable now, in partition and offset order.
pub fn read(topic: &str, isolation: Isolation) -> Vec<Rec> {
    read_at(&broker().address, topic, isolation)
}

/// [`read`] through another address.
pub fn read_at(address: &str, topic: &str, isolation: Isolation) -> Vec<Rec> {
    let consumer = reader(address, isolation);
    let partitions = partition_count(topic);
    (0..partitions).for_each(|p| settle(&consumer, topic, p));
    let mut list = TopicPartitionList::new();
    (0..partitions).for_each(|p| list.add_partition_offset(topic, p, Offset::Beginning).unwrap());
    consumer.assign(&list).unwrap();
    let mut records = drain(&consumer, partitions);
    records.sort_by_key(|r| (r.partition, r.offset));
    records
}

/// Waits until a reader sees what lies before the end of now. A commit is acknowledged before its markers are in every partition
/// (KIP-98, 4.3), and a killed host leaves its transaction open for the time-out of 10 s and a turn of the coordinator: until then
/// nothing behind it is read, though it is committed.
fn settle(reader: &BaseConsumer, topic: &str, partition: i32) {
    let (_, end) = ends(topic, partition);
    let begin = Instant::now();
    loop {
        let seen = reader.fetch_watermarks(topic, partition, LIMIT).unwrap_or_else(|e| panic!("ends of {topic}: {e}"));
        if seen.1 >= end || begin.elapsed() > LIMIT {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Produces and waits for every acknowledgement.
pub fn produce(topic: &str, records: &[Rec]) {
    let feeder = Feeder::new();
    records.iter().for_each(|r| feeder.send(topic, r));
    feeder.flush();
}

/// Produces one record through another address; what the client says where it has not got through after `limit`.
pub fn try_produce(address: &str, topic: &str, record: &Rec, limit: Duration) -> Result<(), String> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", address).set("message.timeout.ms", limit.as_millis().to_string());
    let feeder = Feeder::with(&mut config);
    feeder.send(topic, record);
    feeder.serve();
    let refused = feeder.producer.context().0.lock().unwrap();
    refused.first().map_or(Ok(()), |error| Err(error.to_lowercase()))
}

/// Produces in a transaction that is aborted: only uncommitted readers ever see it.
pub fn produce_aborted(topic: &str, records: &[Rec]) {
    let feeder = Feeder::with(config().set("transactional.id", format!("aborting-{topic}")));
    feeder.producer.init_transactions(LIMIT).unwrap();
    feeder.producer.begin_transaction().unwrap();
    records.iter().for_each(|r| feeder.send(topic, r));
    feeder.flush();
    feeder.producer.abort_transaction(LIMIT).unwrap();
}

impl Default for Feeder {
    fn default() -> Self {
        Feeder::new()
    }
}

impl Feeder {
    pub fn new() -> Feeder {
        Feeder::with(&mut config())
    }

    fn with(config: &mut ClientConfig) -> Feeder {
        let config =
            config.set("partitioner", "murmur2_random").set("linger.ms", "5").set("message.max.bytes", "4000000");
        Feeder { producer: config.create_with_context(Refusals::default()).unwrap() }
    }

    pub fn send(&self, topic: &str, rec: &Rec) {
        let mut record = base_record(topic, rec);
        loop {
            self.producer.poll(Duration::ZERO);
            match self.producer.send(record) {
                Ok(()) => return,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => record = back,
                Err((error, _)) => panic!("produce to {topic}: {error}"),
            }
        }
    }

    /// Waits for every acknowledgement; none may be a refusal.
    pub fn flush(&self) {
        self.serve();
        let refused = self.producer.context().0.lock().unwrap();
        assert!(refused.is_empty(), "refused: {:?}", refused.first());
    }

    /// Serves the queue until nothing is on its way; rdkafka's own flush sleeps in steps of 100 ms.
    fn serve(&self) {
        let end = Instant::now() + LIMIT;
        while self.producer.in_flight_count() > 0 {
            assert!(Instant::now() < end, "records were not acknowledged within {LIMIT:?}");
            self.producer.poll(Duration::from_millis(1));
        }
    }
}

fn base_record<'a>(topic: &'a str, rec: &'a Rec) -> BaseRecord<'a, [u8], [u8]> {
    let mut record = BaseRecord::to(topic).timestamp(rec.timestamp);
    record.partition = Some(rec.partition).filter(|&p| p >= 0);
    record.key = rec.key.as_deref();
    record.payload = rec.value.as_deref();
    if !rec.headers.is_empty() {
        let add = |all: OwnedHeaders, (key, value): &(String, Option<Vec<u8>>)| {
            all.insert(Header { key, value: value.as_deref() })
        };
        record.headers = Some(rec.headers.iter().fold(OwnedHeaders::new(), add));
    }
    record
}

fn drain(consumer: &BaseConsumer, partitions: i32) -> Vec<Rec> {
    // a partition that grows meanwhile says more than once that its end is reached
    let (mut records, mut ended) = (Vec::new(), HashSet::new());
    let mut end = Instant::now() + LIMIT;
    while ended.len() < partitions as usize {
        assert!(Instant::now() < end, "the ends were not reached within {LIMIT:?}; {} records", records.len());
        match consumer.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                records.push(from_message(&message));
                end = Instant::now() + LIMIT;
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(ended.insert(partition)),
            // a new client says so while its first connection is replaced
            Some(Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AllBrokersDown))) => {}
            Some(Err(error)) => panic!("consume: {error}"),
        }
    }
    records
}

fn from_message(message: &BorrowedMessage<'_>) -> Rec {
    let headers =
        message.headers().map(|all| all.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect());
    Rec {
        partition: message.partition(),
        offset: message.offset(),
        timestamp: match message.timestamp() {
            Timestamp::CreateTime(ms) | Timestamp::LogAppendTime(ms) => ms,
            Timestamp::NotAvailable => -1,
        },
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
    }
}

fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &broker().address);
    config
}

/// For questions; one for all tests, because a client costs threads and connections.
fn any_consumer() -> &'static BaseConsumer {
    static CONSUMER: OnceLock<BaseConsumer> = OnceLock::new();
    // the client asks for ends under its isolation level, and reads committed records only unless told otherwise
    let make = || config().set("group.id", "pelton-tests").set("isolation.level", "read_uncommitted").create();
    CONSUMER.get_or_init(|| make().expect("a consumer"))
}

fn reader(address: &str, isolation: Isolation) -> BaseConsumer {
    let level = match isolation {
        Isolation::Committed => "read_committed",
        Isolation::Uncommitted => "read_uncommitted",
    };
    ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("group.id", "pelton-tests")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", level)
        .create()
        .expect("a consumer")
}

fn admin() -> AdminClient<DefaultClientContext> {
    config().create().expect("an admin client")
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(secs(20))).request_timeout(Some(secs(20)))
}

/// Runs one future to its end; the admin client has a polling thread of its own that wakes us.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park_timeout(secs(1)),
        }
    }
}
