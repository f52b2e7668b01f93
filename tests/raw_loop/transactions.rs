//! Transactions: begun with the first record, committed with its offsets every so often.

use crate::native::{Reports, Topic, hurry};
use crate::options::Options;
use rdkafka::consumer::{Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

const CALL: Duration = Duration::from_secs(10);
/// Of one wait for reports.
const WAIT_MS: i32 = 100;
/// Sends between looks at the delivery reports. librdkafka keeps a record until its report is served.
const SERVE_AFTER: u32 = 256;
/// Records between looks at the clock.
const LOOK_AFTER: u32 = 32;

pub(crate) struct Transactions {
    /// Before its client, so that it goes first.
    reports: Reports,
    pub(crate) producer: BaseProducer,
    input: String,
    /// The next offset of each partition, −1 where nothing was read since the last commit.
    offsets: Vec<i64>,
    open: bool,
    every: Duration,
    lingers: bool,
    next: Instant,
    unserved: u32,
    unlooked: u32,
}

impl Transactions {
    pub(crate) fn new(options: &Options) -> Transactions {
        let producer: BaseProducer = options.producer().create().expect("a producer");
        producer.init_transactions(CALL).expect("transactions can be begun");
        Transactions {
            reports: Reports::of(&producer),
            producer,
            input: options.input.clone(),
            offsets: Vec::new(),
            open: false,
            every: options.commit_every,
            lingers: options.lingers(),
            next: Instant::now(),
            unserved: 0,
            unlooked: 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Takes note of a record that is about to be processed.
    pub(crate) fn reads(&mut self, partition: i32, offset: i64) {
        if !self.open {
            self.producer.begin_transaction().expect("a transaction begins");
            self.open = true;
        }
        let place = partition as usize;
        if place >= self.offsets.len() {
            self.offsets.resize(place + 1, -1);
        }
        self.offsets[place] = offset + 1;
    }

    /// Produces to a topic by its name.
    pub(crate) fn send(&mut self, topic: &str, key: Option<&[u8]>, value: Option<&[u8]>, timestamp: Option<i64>) {
        let mut record = BaseRecord::<[u8], [u8]>::to(topic);
        (record.key, record.payload, record.timestamp) = (key, value, timestamp);
        while let Err((error, back)) = self.producer.send(record) {
            let full = matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
            assert!(full, "produce to {topic}: {error}");
            self.reports.serve(WAIT_MS);
            record = back;
        }
        self.sent();
    }

    /// Produces to a topic that is resolved.
    pub(crate) fn send_to(&mut self, topic: &Topic, key: Option<&[u8]>, value: Option<&[u8]>, timestamp: i64) {
        while let Err(code) = topic.produce(&self.producer, key, value, timestamp) {
            assert!(code == RDKafkaErrorCode::QueueFull, "produce: {code}");
            self.reports.serve(WAIT_MS);
        }
        self.sent();
    }

    /// After each send: serves delivery reports now and then.
    fn sent(&mut self) {
        self.unserved += 1;
        if self.unserved >= SERVE_AFTER {
            self.unserved = 0;
            while self.reports.serve(0) {}
        }
    }

    /// Whether it is time to commit. Looks at the clock now and then, or, where the loop is `idle`, always.
    pub(crate) fn due(&mut self, idle: bool) -> bool {
        self.unlooked += 1;
        if !self.open || (self.unlooked < LOOK_AFTER && !idle) {
            return false;
        }
        self.unlooked = 0;
        Instant::now() >= self.next
    }

    pub(crate) fn commit<C: ConsumerContext, K: Consumer<C>>(&mut self, consumer: &K) {
        self.next = Instant::now() + self.every;
        // rdkafka's own flush, and so a commit with records on their way, sleeps in steps of 100 ms.
        if self.lingers {
            hurry(&self.producer);
        }
        while self.producer.in_flight_count() > 0 {
            self.reports.serve(WAIT_MS);
        }
        let member = consumer.group_metadata().expect("a member of a group");
        let offsets = self.take_offsets();
        self.producer.send_offsets_to_transaction(&offsets, &member, CALL).expect("offsets are taken");
        self.producer.commit_transaction(CALL).expect("the transaction is committed");
        self.open = false;
    }

    fn take_offsets(&mut self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in self.offsets.iter_mut().enumerate().filter(|(_, offset)| **offset >= 0) {
            list.add_partition_offset(&self.input, partition as i32, Offset::Offset(*offset)).expect("a valid offset");
            *offset = -1;
        }
        list
    }
}
