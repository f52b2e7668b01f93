//! A task on the embedded log, with real stores and a guest that obeys its records; the producer's calls are written down.

use super::recorder::{Loss, recorder};
use crate::changelog::{Restore, spec as changelog_spec};
use crate::config::{self, DeadLetters, Limits, Parking, Retry, Start};
use crate::local::LocalLog;
use crate::metrics::{CommitMetrics, ProcessorMetrics};
use crate::model::log::*;
use crate::model::manifest::Context;
use crate::model::state::StateView;
use crate::model::{Batch, Clock, Failure, HeadersRef, RecordRef, TaskId, TopicPartition};
use crate::plugin::tests::puppet::{WIT, component, file};
use crate::plugin::{Component, Engine, Guest, Traced};
use crate::state::{Shared, Stores};
use crate::task::{CommitError, Input, InputSpec, Lease, Outbox, Parts, ProcessorSpec, Routes, Step, Task, commit};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// What the log's own `out` takes; the tests say how much the task believes.
pub(crate) const OUT_BYTES: u64 = 2000;
/// What the log's own `dead` takes.
pub(crate) const DEAD_BYTES: u64 = 60_000;
/// As long as a call may take here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(16);

/// Time that the test moves, in milliseconds: the same on the wall and monotonic.
pub(crate) struct Hand(AtomicI64);

impl Hand {
    pub(crate) fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as i64, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.wall_ms() as u64)
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

/// One task with everything around it.
pub(crate) struct Rig {
    pub(crate) log: LocalLog,
    pub(crate) clock: Arc<Hand>,
    pub(crate) engine: Engine,
    pub(crate) group: Arc<dyn Group>,
    pub(crate) out: Outbox,
    pub(crate) tasks: Vec<Task>,
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
    /// Loses the answers of commits while it is set.
    pub(crate) loss: Arc<Mutex<Option<Loss>>>,
    /// The ownership number of the partition.
    pub(crate) number: Arc<AtomicU64>,
    _member: Box<dyn Member>,
    folder: TempDir,
}

/// The actor on the engine that all tests share, for those that tick nothing.
pub(crate) fn actor() -> (Engine, Arc<Component>) {
    static LOADED: OnceLock<(Engine, Arc<Component>)> = OnceLock::new();
    LOADED.get_or_init(fresh_actor).clone()
}

/// The actor on an engine of its own, for tests that tick it.
pub(crate) fn fresh_actor() -> (Engine, Arc<Component>) {
    let engine = Engine::new(None).unwrap();
    let (_dir, path) = file(&component(include_str!("actor.wat"), WIT, "aggregate-plugin"));
    let component = engine.load(&path).unwrap();
    (engine, component)
}

/// A processor of the actor.
pub(crate) fn processor(component: Arc<Component>) -> ProcessorSpec {
    ProcessorSpec {
        application: "app".into(),
        name: "proc".into(),
        inputs: vec![InputSpec { name: "input".into(), topic: "in".into(), start: Start::Earliest }],
        outputs: vec![("output".into(), "out".into())],
        stores: component.manifest.stores.clone(),
        changelogs: vec!["app-proc-store-changelog".into()],
        dead_letters: "dead".into(),
        partitions: 1,
        limits: Limits { record_deadline: DEADLINE, ..Limits::default() },
        ordering: config::Ordering::Partition,
        retry: Retry::default(),
        dead_letter: DeadLetters::default(),
        parking: Parking::default(),
        letters: None,
        settings: "{}".into(),
        component,
        metrics: ProcessorMetrics::new("proc"),
        stopped: AtomicBool::new(false),
    }
}

impl Rig {
    /// A task over `records` of key and value; `""` is the null key. Offsets begin at 0.
    pub(crate) fn new(records: &[(&str, &str)]) -> Rig {
        Rig::with(records, actor(), |_| ())
    }

    /// `believed` changes what the task believes of its topics, by name.
    pub(crate) fn with(
        records: &[(&str, &str)],
        loaded: (Engine, Arc<Component>),
        believed: impl Fn(&mut TopicInfo),
    ) -> Rig {
        Rig::made(records, loaded, believed, |_| ())
    }

    /// A task of the actor with other settings of its processor.
    pub(crate) fn set(records: &[(&str, &str)], settings: impl FnOnce(&mut ProcessorSpec)) -> Rig {
        Rig::made(records, actor(), |_| (), settings)
    }

    fn made(
        records: &[(&str, &str)],
        (engine, component): (Engine, Arc<Component>),
        believed: impl Fn(&mut TopicInfo),
        settings: impl FnOnce(&mut ProcessorSpec),
    ) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hand(AtomicI64::new(1_000_000)));
        let log = LocalLog::open(&folder.path().join("log"), clock.clone()).unwrap();
        create(&log);
        feed(&log, records);
        let (member, source) = join(&log);
        let group = member.group();
        let (calls, loss) = (Arc::default(), Arc::default());
        let mut out = Outbox::new(recorder(&log, &calls, &loss));
        let mut resolve = |name: &str| {
            let mut info = log.topic(name).unwrap().unwrap();
            believed(&mut info);
            out.resolve(&info).unwrap()
        };
        let mut spec = processor(component);
        settings(&mut spec);
        let spec = Arc::new(spec);
        let changelogs = vec![resolve(&spec.changelogs[0])];
        let routes = Routes { outputs: vec![resolve("out")], changelogs, dead_letters: resolve("dead") };
        let number = Arc::default();
        let mut rig =
            Rig { log, clock, engine, group, out, tasks: Vec::new(), calls, loss, number, _member: member, folder };
        let parts = rig.parts(spec, source);
        rig.tasks.push(Task::new(parts, 7, routes));
        rig
    }

    /// Another task of the same partition, which takes the lease.
    pub(crate) fn parts(&self, spec: Arc<ProcessorSpec>, source: Box<dyn Source>) -> Parts {
        let stores = Arc::new(Mutex::new(self.stores(&spec)));
        let log = Arc::new(Traced { task: id() });
        let view: Arc<Mutex<dyn StateView>> = stores.clone();
        let guest = Guest::new(spec.component.clone(), context(), spec.limits.clone(), Some(view), log);
        Parts {
            id: id(),
            spec,
            group: self.group.clone(),
            lease: Lease::take(&self.number),
            inputs: vec![Input::new(source, 0, -1)],
            stores: Some(stores),
            guest,
        }
    }

    fn stores(&self, spec: &ProcessorSpec) -> Stores {
        let dir = self.folder.path().join("stores");
        let mut stores = Stores::open(&dir, &spec.stores, &Shared::new(1 << 20, 4 << 20), self.clock.clone()).unwrap();
        let changelog = [TopicPartition::new(spec.changelogs[0].clone(), 0)];
        let log = Arc::new(self.log.clone());
        let mut restore = Restore::start(log, &changelog, &mut stores, self.clock.clone()).unwrap();
        restore.run(&mut stores, Duration::ZERO, |_| ()).unwrap();
        stores
    }

    /// Takes the task away and gives back what one is made of.
    pub(crate) fn take_apart(&mut self) -> Parts {
        let task = self.tasks.remove(0);
        let spec = task.spec.clone();
        let source = task.close().remove(0);
        self.parts(spec, source)
    }

    /// A source of the input that the group did not give.
    pub(crate) fn log_reader(&self) -> Box<dyn Source> {
        self.log.reader(&TopicPartition::new("in", 0), 0).unwrap()
    }

    /// The processor of a task made later.
    pub(crate) fn spec(&self) -> Arc<ProcessorSpec> {
        Arc::new(processor(actor().1))
    }

    pub(crate) fn info(&self, topic: &str) -> TopicInfo {
        self.log.topic(topic).unwrap().unwrap()
    }

    pub(crate) fn task(&mut self) -> &mut Task {
        &mut self.tasks[0]
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(crate) fn step(&mut self) -> Step {
        self.tasks[0].step(&mut self.out, &*self.clock).unwrap()
    }

    /// Steps until there is nothing to do now.
    pub(crate) fn work(&mut self) -> Step {
        loop {
            match self.step() {
                Step::Worked | Step::Yielded => {}
                rest => return rest,
            }
        }
    }

    /// Lets every wait for a retry pass, and works until there is nothing left to do. How long each wait was.
    pub(crate) fn wait_out(&mut self) -> Vec<Duration> {
        let mut waits = Vec::new();
        while let Step::Until(due) = self.work() {
            waits.push(due - self.now());
            // the hand moves whole milliseconds
            self.clock.pass(due - self.now() + Duration::from_millis(1));
        }
        waits
    }

    pub(crate) fn commit(&mut self) -> Result<(), CommitError> {
        commit(&mut self.out, &mut self.tasks, (&CommitMetrics::default(), &*self.clock))
    }

    /// Works and commits as a worker does: refusals are told to the task, which goes back and tries again, so often at most.
    pub(crate) fn settle(&mut self, aborts: usize) {
        for _ in 0..=aborts {
            self.work();
            match self.commit() {
                Ok(()) => return,
                Err(CommitError::Refused(refusals)) => self.refuse(refusals),
                Err(other) => panic!("{other:?}"),
            }
        }
        panic!("refused more than {aborts} times");
    }

    /// One failure per input record, then back to the last commit.
    pub(crate) fn refuse(&mut self, refusals: Vec<Refusal>) {
        let mut seen = HashSet::new();
        for Refusal { origin, code, message } in refusals {
            assert_eq!(origin.slot, 7, "traced to its task");
            if seen.insert(origin) {
                self.task().refuse(origin.input as usize, origin.offset, Failure::new(code, message));
            }
        }
        self.abort();
    }

    /// Replaces the producer by a new one of the same identity, as after a fencing; no commit's answer is lost any more.
    pub(crate) fn new_producer(&mut self) {
        *self.loss.lock().unwrap() = None;
        self.out.replace(recorder(&self.log, &self.calls, &self.loss)).unwrap();
    }

    pub(crate) fn abort(&mut self) {
        self.task().rewind();
        self.out.abort().unwrap();
    }

    /// Key and value of everything in a topic.
    pub(crate) fn read(&self, topic: &str) -> Vec<(String, String)> {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        self.batch(topic).iter().map(|(_, record)| (text(record.key), text(record.value))).collect()
    }

    pub(crate) fn values(&self, topic: &str) -> Vec<String> {
        self.read(topic).into_iter().map(|(_, value)| value).collect()
    }

    /// The headers of each dead letter.
    pub(crate) fn letters(&self) -> Vec<BTreeMap<String, String>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let all = |record: RecordRef<'_>| {
            record.headers.iter().map(|(name, value)| (text(name), text(value.unwrap_or_default()))).collect()
        };
        self.batch("dead").iter().map(|(_, record)| all(record)).collect()
    }

    /// Offset and code of each dead letter.
    pub(crate) fn buried(&self) -> Vec<(String, String)> {
        let of =
            |letter: &BTreeMap<String, String>| (letter["pelton-source-offset"].clone(), letter["pelton-code"].clone());
        self.letters().iter().map(of).collect()
    }

    /// Committed counts by key.
    pub(crate) fn counts(&mut self) -> BTreeMap<String, u8> {
        let stores = self.tasks[0].stores().unwrap();
        let entries = stores.dump(0).unwrap().map(Result::unwrap);
        entries.map(|(key, value)| (String::from_utf8_lossy(&key).into_owned(), value[0])).collect()
    }

    /// The group's committed offset of the input.
    pub(crate) fn committed(&self) -> Option<i64> {
        self.group.committed(&[TopicPartition::new("in", 0)]).unwrap()[0].offset
    }

    fn batch(&self, topic: &str) -> Batch {
        let mut source = self.log.reader(&TopicPartition::new(topic, 0), 0).unwrap();
        let mut batch = Batch::default();
        while !source.at_end() {
            source.fetch(&mut batch, FetchLimit { records: usize::MAX, bytes: usize::MAX }, Duration::ZERO).unwrap();
        }
        batch
    }
}

pub(crate) fn id() -> TaskId {
    TaskId { processor: "proc".into(), partition: 0 }
}

fn context() -> Context {
    Context {
        application: "app".into(),
        processor: "proc".into(),
        partition: 0,
        inputs: vec![("input".into(), "in".into())],
        outputs: vec![("output".into(), "out".into())],
        stores: vec!["store".into()],
        settings: "{}".into(),
        max_record_bytes: OUT_BYTES as u32,
    }
}

fn create(log: &LocalLog) {
    for (name, bytes) in [("in", 1 << 20), ("out", OUT_BYTES), ("dead", DEAD_BYTES)] {
        let properties = vec![("max.message.bytes".to_owned(), bytes.to_string())];
        log.create_topic(&TopicSpec { name: name.into(), partitions: 1, replication: None, properties }).unwrap();
    }
    log.create_topic(&changelog_spec("app", "proc", "store", 1, 1 << 20)).unwrap();
}

fn feed(log: &LocalLog, records: &[(&str, &str)]) {
    let mut producer = log.producer("feed", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic("in").unwrap();
    producer.begin().unwrap();
    for (key, value) in records {
        let key = (!key.is_empty()).then_some(key.as_bytes());
        let record = RecordRef { key, value: Some(value.as_bytes()), headers: HeadersRef::default(), timestamp: 5 };
        producer.send(to, Some(0), record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
    }
    producer.commit().unwrap();
}

fn join(log: &LocalLog) -> (Box<dyn Member>, Box<dyn Source>) {
    let listener = Arc::new(Listener::default());
    let spec = GroupSpec {
        group: "app-proc".into(),
        topics: vec!["in".into()],
        protocol: GroupProtocol::Classic,
        instance_id: "i".into(),
        session_timeout: Duration::from_secs(10),
    };
    let mut member = log.join(spec, listener.clone()).unwrap();
    member.poll(Duration::ZERO).unwrap();
    let source = listener.0.lock().unwrap().pop().unwrap();
    (member, source)
}
