//! A task on the embedded log, with real stores and a guest that obeys its records; the producer's calls are written down.

pub(crate) use super::world::{CHANGELOG, DEAD_BYTES, Hand, INPUTS, OUT_BYTES, PARKED};

use super::recorder::{Loss, recorder};
use super::world::{create, feed, join};
use crate::changelog::Restore;
use crate::config::{self, DeadLetters, Limits, Parking, Retry, Start};
use crate::local::LocalLog;
use crate::metrics::{CommitMetrics, PluginMetrics, ProcessorMetrics};
use crate::model::log::*;
use crate::model::manifest::Context;
use crate::model::state::StateView;
use crate::model::{Clock, Failure, Fault, TaskId, TopicPartition};
use crate::plugin::tests::puppet::{WIT, component, file};
use crate::plugin::{Component, Engine, Guest, Traced};
use crate::state::{Shared, Stores};
use crate::task::{
    CommitError, Input, InputSpec, Lease, Marker, Outbox, Parts, ProcessorSpec, Routes, Step, Task, Trials, commit,
};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// As long as a call may take here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(16);

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
    routes: Routes,
    _member: Box<dyn Member>,
    folder: TempDir,
}

/// How one task's life ends and the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The stores were closed: they have everything that is committed.
    Closed,
    /// The stores are lost: another host restores them.
    Lost,
    /// The stores are as they were at [`Rig::keep_stores`].
    Older,
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
        inputs: vec![input("input", INPUTS[0])],
        outputs: vec![("output".into(), "out".into())],
        stores: component.manifest.stores.clone(),
        changelogs: vec![CHANGELOG.into()],
        dead_letters: "dead".into(),
        partitions: 1,
        limits: Limits { record_deadline: DEADLINE, ..Limits::default() },
        delivery: Delivery::ExactlyOnce,
        ordering: config::Ordering::Partition,
        retry: Retry::default(),
        dead_letter: DeadLetters::default(),
        parking: Parking::default(),
        letters: None,
        news: Mutex::default(),
        failures: Mutex::default(),
        settings: "{}".into(),
        versions: crate::task::Versions::new(component),
        metrics: ProcessorMetrics::new("proc"),
        stopped: AtomicBool::new(false),
    }
}

pub(crate) fn input(name: &str, topic: &str) -> InputSpec {
    InputSpec { name: name.into(), topic: topic.into(), start: Start::Earliest }
}

/// Settings: records wait by key, as a plan makes them.
pub(crate) fn by_key(spec: &mut ProcessorSpec) {
    spec.ordering = config::Ordering::Key;
    spec.changelogs.push(PARKED.into());
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

    pub(crate) fn made(
        records: &[(&str, &str)],
        (engine, component): (Engine, Arc<Component>),
        believed: impl Fn(&mut TopicInfo),
        settings: impl FnOnce(&mut ProcessorSpec),
    ) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::new();
        let log = LocalLog::open(&folder.path().join("log"), clock.clone()).unwrap();
        create(&log);
        feed(&log, INPUTS[0], records);
        let mut spec = processor(component);
        settings(&mut spec);
        let spec = Arc::new(spec);
        let topics: Vec<Arc<str>> = spec.inputs.iter().map(|input| input.topic.clone()).collect();
        let (member, sources) = join(&log, &topics);
        let group = member.group();
        let (calls, loss) = (Arc::default(), Arc::default());
        let mut out = Outbox::new(recorder(&log, &calls, &loss, spec.delivery));
        let mut resolve = |name: &str| {
            let mut info = log.topic(name).unwrap().unwrap();
            believed(&mut info);
            out.resolve(&info).unwrap()
        };
        let changelogs = spec.changelogs.iter().map(|name| resolve(name)).collect();
        let routes = Routes { outputs: vec![resolve("out")], changelogs, dead_letters: resolve("dead") };
        let number = Arc::default();
        let (tasks, _member) = (Vec::new(), member);
        let mut rig = Rig { log, clock, engine, group, out, tasks, calls, loss, number, routes, _member, folder };
        rig.open(&spec, sources);
        rig
    }

    fn open(&mut self, spec: &Arc<ProcessorSpec>, sources: Vec<Box<dyn Source>>) {
        let parts = self.parts(spec.clone(), sources);
        self.tasks.push(Task::new(parts, 7, self.routes.clone()));
    }

    /// What another task of the same partition is made of, which takes the lease.
    pub(crate) fn parts(&self, spec: Arc<ProcessorSpec>, sources: Vec<Box<dyn Source>>) -> Parts {
        let stores = Arc::new(Mutex::new(self.stores(&spec)));
        let log = Arc::new(Traced { task: id(), metrics: PluginMetrics::new("proc") });
        let view: Arc<Mutex<dyn StateView>> = stores.clone();
        let version = spec.versions.current();
        let guest = Guest::new(version.component.clone(), context(), spec.limits.clone(), Some(view), log);
        let topics = spec.inputs.iter().map(|input| &*input.topic);
        let marker = Marker::open(&self.folder.path().join("marker"), topics, &Arc::<Trials>::default()).unwrap();
        let inputs = sources.into_iter().map(|source| self.input(source)).collect();
        Parts {
            id: id(),
            spec,
            group: self.group.clone(),
            lease: Lease::take(&self.number),
            inputs,
            stores: Some(stores),
            guest,
            version,
            marker,
        }
    }

    /// From the committed offset, or else from the start, as an opener does.
    fn input(&self, source: Box<dyn Source>) -> Input {
        let found = self.group.committed(&[source.partition().clone()]).unwrap().remove(0);
        let (start, committed) = (found.offset.unwrap_or(0), found.offset.unwrap_or(-1));
        Input::new(source, start, committed).recall(&found.metadata, &*self.clock)
    }

    fn stores(&self, spec: &ProcessorSpec) -> Stores {
        let shared = Shared::new(1 << 20, 4 << 20);
        let mut stores = Stores::open(&self.dir(), &spec.all_stores(), &shared, self.clock.clone()).unwrap();
        let changelogs: Vec<TopicPartition> =
            spec.changelogs.iter().map(|name| TopicPartition::new(name.clone(), 0)).collect();
        let log = Arc::new(self.log.clone());
        let mut restore = Restore::start(log, &changelogs, (&mut stores, &[]), self.clock.clone()).unwrap();
        restore.run(&mut stores, Duration::ZERO, |_| ()).unwrap();
        stores
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("stores")
    }

    /// Takes the task away and gives back what one is made of.
    pub(crate) fn take_apart(&mut self) -> Parts {
        let task = self.tasks.remove(0);
        let spec = task.spec.clone();
        let sources = task.close();
        self.parts(spec, sources)
    }

    /// The task ends in the middle of what it does, and another one begins, with other settings where `settings` says so.
    pub(crate) fn restart_with(&mut self, how: Restart, settings: impl FnOnce(&mut ProcessorSpec)) {
        let task = self.tasks.remove(0);
        self.out.abort().unwrap();
        let mut spec = processor(task.version().component.clone());
        let old = &task.spec;
        (spec.inputs, spec.changelogs, spec.delivery) = (old.inputs.clone(), old.changelogs.clone(), old.delivery);
        (spec.retry, spec.ordering, spec.parking) = (old.retry.clone(), old.ordering, old.parking.clone());
        settings(&mut spec);
        let sources = task.close();
        match how {
            Restart::Closed => {}
            Restart::Lost => std::fs::remove_dir_all(self.dir()).unwrap(),
            Restart::Older => self.bring_back_stores(),
        }
        self.open(&Arc::new(spec), sources);
    }

    pub(crate) fn restart(&mut self, how: Restart) {
        self.restart_with(how, |_| ());
    }

    /// The host dies in the middle of what it does: what is on disk stays as it is.
    pub(crate) fn die(&mut self) {
        let path = self.folder.path().join("marker").join("marker");
        let page = std::fs::read(&path).unwrap();
        let task = self.tasks.remove(0);
        let spec = task.spec.clone();
        let sources = task.close();
        std::fs::write(path, page).unwrap();
        self.new_producer();
        self.open(&spec, sources);
    }

    /// Remembers the stores as they are now, for a restart that finds them so.
    pub(crate) fn keep_stores(&mut self) {
        let task = self.tasks.remove(0);
        self.out.abort().unwrap();
        let (spec, sources) = (task.spec.clone(), task.close());
        let kept = self.folder.path().join("kept");
        let _ = std::fs::remove_dir_all(&kept);
        copy(&self.dir(), &kept);
        self.open(&spec, sources);
    }

    fn bring_back_stores(&self) {
        let kept = self.folder.path().join("kept");
        if kept.exists() {
            std::fs::remove_dir_all(self.dir()).unwrap();
            copy(&kept, &self.dir());
        }
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

    pub(crate) fn feed(&self, topic: &str, records: &[(&str, &str)]) {
        feed(&self.log, topic, records);
    }

    pub(crate) fn step(&mut self) -> Step {
        self.try_step().unwrap()
    }

    pub(crate) fn try_step(&mut self) -> Result<Step, Fault> {
        self.tasks[0].step(&mut self.out, &*self.clock)
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
            self.clock.pass(due - self.now());
        }
        waits
    }

    pub(crate) fn commit(&mut self) -> Result<(), CommitError> {
        commit(&mut self.out, &mut self.tasks, (&CommitMetrics::new(0), &*self.clock))
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
                self.task().refuse(origin.input, origin.offset, Failure::new(code, message));
            }
        }
        self.abort();
    }

    /// Replaces the producer by a new one of the same identity, as after a fencing; no commit's answer is lost any more.
    pub(crate) fn new_producer(&mut self) {
        *self.loss.lock().unwrap() = None;
        let delivery = self.tasks.first().map_or(Delivery::ExactlyOnce, |task| task.spec.delivery);
        self.out.replace(recorder(&self.log, &self.calls, &self.loss, delivery)).unwrap();
    }

    pub(crate) fn abort(&mut self) {
        self.task().rewind();
        self.out.abort().unwrap();
    }

    /// What the worker makes of a commit without an answer; false where the task cannot tell and is opened anew.
    pub(crate) fn resolve(&mut self) -> bool {
        self.new_producer();
        if self.tasks[0].has_progress() {
            let partitions = self.task().partitions();
            let found = self.group.committed(&partitions).unwrap();
            match self.task().resolve(&found) {
                Some(true) => self.tasks[0].settle(&self.out),
                Some(false) => {}
                None => {
                    self.restart(Restart::Closed);
                    return false;
                }
            }
        }
        self.task().rewind();
        true
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

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() { copy(&source, &target) } else { std::fs::copy(&source, &target).map(drop).unwrap() }
    }
}
