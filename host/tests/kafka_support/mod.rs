//! What the tests against a real broker share. The broker is named by `PELTON_TEST_BROKERS`; without it they fail.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use pelton::config;
use pelton::kafka::Kafka;
use pelton::model::log::{
    Delivery, FetchLimit, Group, GroupListener, GroupProtocol, GroupSpec, Log, Origin, Producer, Source, TopicSpec,
};
use pelton::model::{Batch, Fault, Headers, RecordRef, SystemClock, TopicPartition};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A hang is a failure after this time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) const ALL: FetchLimit = FetchLimit { records: 10_000, bytes: 64 << 20 };

/// A record that owns its fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rec {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) timestamp: i64,
}

pub(crate) fn rec(key: &str, value: &str) -> Rec {
    Rec { key: Some(key.into()), value: Some(value.into()), headers: Vec::new(), timestamp: 1_000_000_000_000 }
}

pub(crate) fn settings() -> config::Kafka {
    let brokers = std::env::var("PELTON_TEST_BROKERS")
        .expect("PELTON_TEST_BROKERS must name a running Kafka: start one with scripts/kafka start DIR");
    config::Kafka { brokers, ..config::Kafka::default() }
}

pub(crate) fn kafka() -> Kafka {
    connect(&settings())
}

pub(crate) fn connect(settings: &config::Kafka) -> Kafka {
    Kafka::connect(settings, Arc::new(SystemClock::default())).unwrap()
}

/// A name that no other test uses.
pub(crate) fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    format!("{name}-{}-{now}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn create(log: &Kafka, name: &str, partitions: i32, properties: &[(&str, &str)]) -> String {
    let name = unique(name);
    let properties = properties.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    log.create_topic(&TopicSpec { name: name.clone(), partitions, replication: None, properties }).unwrap();
    until("the topic is known", || log.topic(&name).unwrap().filter(|topic| topic.partitions == partitions));
    name
}

pub(crate) fn producer(log: &Kafka, id: &str) -> Box<dyn Producer> {
    log.producer(id, Delivery::ExactlyOnce).unwrap()
}

pub(crate) fn origin(offset: i64) -> Origin {
    Origin { slot: 1, input: 0, offset }
}

/// Sends in the open transaction.
pub(crate) fn send(producer: &mut dyn Producer, topic: &str, partition: i32, records: &[Rec]) {
    let to = producer.topic(topic).unwrap();
    for (i, rec) in records.iter().enumerate() {
        rec.borrow(|record| producer.send(to, Some(partition), record, origin(i as i64)).unwrap());
    }
}

/// One transaction with these records.
pub(crate) fn write(producer: &mut dyn Producer, topic: &str, partition: i32, records: &[Rec]) {
    producer.begin().unwrap();
    send(producer, topic, partition, records);
    assert_eq!(producer.flush().unwrap(), []);
    producer.commit().unwrap();
}

/// Reads from the source's position to the end.
pub(crate) fn drain(source: &mut dyn Source) -> Vec<(i64, Rec)> {
    let (mut batch, start) = (Batch::default(), Instant::now());
    while !source.at_end() {
        assert!(start.elapsed() < PATIENCE, "no end of {} at {}", source.partition(), source.position());
        source.fetch(&mut batch, ALL, Duration::from_millis(100)).unwrap();
    }
    records(&batch)
}

pub(crate) fn read(log: &Kafka, topic: &str, partition: i32, from: i64) -> Vec<(i64, Rec)> {
    drain(&mut *log.reader(&TopicPartition::new(topic, partition), from).unwrap())
}

pub(crate) fn values(records: &[(i64, Rec)]) -> Vec<String> {
    records.iter().map(|(_, rec)| String::from_utf8(rec.value.clone().unwrap()).unwrap()).collect()
}

pub(crate) fn records(batch: &Batch) -> Vec<(i64, Rec)> {
    batch.iter().map(|(offset, record)| (offset, Rec::of(record))).collect()
}

/// Repeats until there is an answer.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// Seeks as a task does: again while the client is not ready.
pub(crate) fn seek(source: &mut dyn Source, offset: i64) {
    until("a seek is taken", || match source.seek(offset) {
        Ok(()) => Some(()),
        Err(fault) if fault.verdict == pelton::model::Verdict::Transient => None,
        Err(fault) => panic!("{fault}"),
    });
}

impl Rec {
    pub(crate) fn borrow<T>(&self, with: impl FnOnce(RecordRef<'_>) -> T) -> T {
        let mut headers = Headers::default();
        headers.start();
        self.headers.iter().for_each(|(name, value)| headers.add(name, value.as_deref()));
        let headers_ref = headers.iter().next().unwrap();
        let (key, value) = (self.key.as_deref(), self.value.as_deref());
        with(RecordRef { key, value, headers: headers_ref, timestamp: self.timestamp })
    }

    pub(crate) fn of(record: RecordRef<'_>) -> Rec {
        Rec {
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.iter().map(|(n, v)| (n.to_vec(), v.map(<[u8]>::to_vec))).collect(),
            timestamp: record.timestamp,
        }
    }
}

/// A member polled on a thread of its own, as the runtime does, with what its group gave and took.
pub(crate) struct Membership {
    pub(crate) held: Arc<Held>,
    pub(crate) group: Arc<dyn Group>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Fault>>>,
}

/// What a member holds. Sources are taken out by tests and put back.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) sources: Mutex<BTreeMap<TopicPartition, Box<dyn Source>>>,
    /// How often partitions were given, revoked and lost.
    pub(crate) told: Mutex<Vec<(&'static str, usize)>>,
    /// While true, `revoked` waits.
    pub(crate) closed: Mutex<bool>,
    pub(crate) opened: Condvar,
    pub(crate) revoking: AtomicBool,
}

impl GroupListener for Held {
    fn assigned(&self, sources: Vec<Box<dyn Source>>) {
        self.told.lock().unwrap().push(("assigned", sources.len()));
        let mut held = self.sources.lock().unwrap();
        sources.into_iter().for_each(|source| drop(held.insert(source.partition().clone(), source)));
    }

    fn revoked(&self, partitions: &[TopicPartition]) {
        self.revoking.store(true, Ordering::SeqCst);
        let mut closed = self.closed.lock().unwrap();
        while *closed {
            closed = self.opened.wait(closed).unwrap();
        }
        self.told.lock().unwrap().push(("revoked", partitions.len()));
        self.drop_all(partitions);
        self.revoking.store(false, Ordering::SeqCst);
    }

    fn lost(&self, partitions: &[TopicPartition]) {
        self.told.lock().unwrap().push(("lost", partitions.len()));
        self.drop_all(partitions);
    }
}

impl Held {
    pub(crate) fn partitions(&self) -> Vec<TopicPartition> {
        self.sources.lock().unwrap().keys().cloned().collect()
    }

    pub(crate) fn numbers(&self, topic: &str) -> Vec<i32> {
        self.partitions().into_iter().filter(|p| &*p.topic == topic).map(|p| p.partition).collect()
    }

    pub(crate) fn open(&self) {
        *self.closed.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn drop_all(&self, partitions: &[TopicPartition]) {
        let mut held = self.sources.lock().unwrap();
        partitions.iter().for_each(|partition| drop(held.remove(partition)));
    }
}

pub(crate) fn spec(group: &str, topics: &[&str], protocol: GroupProtocol, instance: &str) -> GroupSpec {
    GroupSpec {
        group: group.into(),
        topics: topics.iter().map(|&topic| topic.into()).collect(),
        protocol,
        instance_id: instance.into(),
        session_timeout: Duration::from_secs(6),
    }
}

impl Membership {
    pub(crate) fn join(log: &Kafka, spec: GroupSpec) -> Membership {
        let held = Arc::new(Held::default());
        let mut member = log.join(spec, Arc::clone(&held) as Arc<dyn GroupListener>).unwrap();
        let (group, stop) = (member.group(), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::SeqCst) {
                    if let Err(fault) = member.poll(Duration::from_millis(50))
                        && fault.verdict == pelton::model::Verdict::Fatal
                    {
                        return Some(fault);
                    }
                }
                member.leave().unwrap();
                None
            }
        });
        Membership { held, group, stop, thread: Some(thread) }
    }

    pub(crate) fn wait_for(&self, count: usize) {
        until("the group gives partitions", || (self.held.partitions().len() == count).then_some(()));
    }

    /// Leaves, and tells how the member's life ended.
    pub(crate) fn leave(mut self) -> Option<Fault> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits until the member ends by itself.
    pub(crate) fn ended(mut self) -> Option<Fault> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.held.open();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
