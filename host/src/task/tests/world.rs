//! What a task's rig stands on: time that the test moves, the embedded log with its topics, and a membership that was given them.

use crate::changelog::spec as changelog_spec;
use crate::local::LocalLog;
use crate::model::ids::PARKED_STORE;
use crate::model::log::*;
use crate::model::{Clock, HeadersRef, RecordRef, TopicPartition};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the log's own `out` takes; the tests say how much the task believes.
pub(crate) const OUT_BYTES: u64 = 2000;
/// What the log's own `dead` takes.
pub(crate) const DEAD_BYTES: u64 = 60_000;
/// The changelog of the actor's store, and that of the park.
pub(crate) const CHANGELOG: &str = "app-proc-store-changelog";
pub(crate) const PARKED: &str = "app-proc-pelton-parked-changelog";
/// The first input and, where there are two, the second.
pub(crate) const INPUTS: [&str; 2] = ["in", "side"];

/// Time that the test moves, in nanoseconds: the same on the wall and monotonic.
pub(crate) struct Hand(AtomicU64);

impl Hand {
    pub(super) fn new() -> Arc<Hand> {
        Arc::new(Hand(AtomicU64::new(1_000_000_000_000)))
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn wall_ms(&self) -> i64 {
        self.monotonic().as_millis() as i64
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Default)]
struct Listener(Mutex<Vec<Box<dyn Source>>>);

impl GroupListener for Listener {
    fn assigned(&self, sources: Vec<Box<dyn Source>>) {
        self.0.lock().unwrap().extend(sources);
    }

    fn revoked(&self, _: &[TopicPartition]) {}

    fn lost(&self, _: &[TopicPartition]) {}
}

pub(super) fn create(log: &LocalLog) {
    for (name, bytes) in [(INPUTS[0], 1 << 20), (INPUTS[1], 1 << 20), ("out", OUT_BYTES), ("dead", DEAD_BYTES)] {
        let properties = vec![("max.message.bytes".to_owned(), bytes.to_string())];
        log.create_topic(&TopicSpec { name: name.into(), partitions: 1, replication: None, properties }).unwrap();
    }
    for store in ["store", PARKED_STORE] {
        log.create_topic(&changelog_spec("app", "proc", store, 1, 1 << 20)).unwrap();
    }
}

/// Appends records of key and value; `""` is the null key.
pub(super) fn feed(log: &LocalLog, topic: &str, records: &[(&str, &str)]) {
    let mut producer = log.producer("feed", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic(topic).unwrap();
    producer.begin().unwrap();
    for (key, value) in records {
        let key = (!key.is_empty()).then_some(key.as_bytes());
        let record = RecordRef { key, value: Some(value.as_bytes()), headers: HeadersRef::default(), timestamp: 5 };
        producer.send(to, Some(0), record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
    }
    producer.commit().unwrap();
}

/// Joins the group; the sources of the topics, in their order.
pub(super) fn join(log: &LocalLog, topics: &[Arc<str>]) -> (Box<dyn Member>, Vec<Box<dyn Source>>) {
    let listener = Arc::new(Listener::default());
    let spec = GroupSpec {
        group: "app-proc".into(),
        topics: topics.to_vec(),
        protocol: GroupProtocol::Classic,
        instance_id: "i".into(),
        session_timeout: Duration::from_secs(10),
    };
    let mut member = log.join(spec, listener.clone()).unwrap();
    member.poll(Duration::ZERO).unwrap();
    let sources = std::mem::take(&mut *listener.0.lock().unwrap());
    (member, sources)
}
