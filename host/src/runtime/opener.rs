//! Opening a task: committed offsets, the store, its restore, the guest. On threads of their own, so that a restoring task stops
//! nobody else.

use super::lineage::{self, Lineages};
use super::rollout::Rollout;
use super::thread;
use super::worker::{Handle, Opened, Returned};
use super::{Shared, plan};
use crate::changelog::{Progress, Restore, Step};
use crate::config::settings::Start;
use crate::delivery::{Lineage, Mishap};
use crate::metrics::StoreMetrics;
use crate::model::log::{Committed, Group, Source, TopicInfo};
use crate::model::state::StateView;
use crate::model::{Clock, Fault, TaskId, TopicPartition, Verdict};
use crate::plugin::{Guest, Traced};
use crate::state::{self, Stores};
use crate::task::{Input, Lease, Marker, Parts, ProcessorSpec, Trials, Version};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Between two attempts at something that the cluster could not do just now.
const RETRY: Duration = Duration::from_millis(200);
/// How long a restore waits for the next records before it looks whether it was cancelled.
const FETCH_WAIT: Duration = Duration::from_millis(200);

/// A pool of threads that open tasks.
#[derive(Clone)]
pub(super) struct Openers {
    /// `None` ends one thread.
    jobs: Sender<Option<Job>>,
}

/// One task to be opened. Shared with whoever may cancel it.
#[derive(Clone)]
pub(super) struct Job {
    inner: Arc<JobInner>,
}

struct JobInner {
    id: TaskId,
    spec: Arc<ProcessorSpec>,
    group: Arc<dyn Group>,
    lease: Lease,
    worker: Handle,
    wipe: bool,
    sources: Mutex<Option<Returned>>,
    cancelled: AtomicBool,
    /// Who waits for the cancellation.
    waiting: Mutex<Option<Sender<Returned>>>,
    finished: AtomicBool,
}

/// What the openers need beside the job.
pub(super) struct Tools {
    pub shared: Arc<Shared>,
    pub topics: HashMap<Arc<str>, TopicInfo>,
    pub stores: state::Shared,
    pub trials: Arc<Trials>,
    pub rollout: Arc<Rollout>,
}

impl Job {
    pub(super) fn new(
        id: TaskId,
        spec: Arc<ProcessorSpec>,
        owner: (Arc<dyn Group>, Lease),
        work: (Returned, Handle),
        wipe: bool,
    ) -> Job {
        let inner = JobInner {
            id,
            spec,
            group: owner.0,
            lease: owner.1,
            worker: work.1,
            wipe,
            sources: Mutex::new(Some(work.0)),
            cancelled: AtomicBool::new(false),
            waiting: Mutex::new(None),
            finished: AtomicBool::new(false),
        };
        Job { inner: Arc::new(inner) }
    }

    /// Asks the opener to give up. What comes back are the sources, unless the task is with its worker already.
    pub(super) fn cancel(&self) -> Receiver<Returned> {
        let (done, answer) = channel();
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.cancelled.store(true, Ordering::SeqCst);
        if self.inner.finished.load(Ordering::SeqCst) {
            // the sender is dropped: whoever waits is told that nothing comes from here
            return answer;
        }
        match self.take_sources() {
            // nobody has begun with it: whoever takes it from the queue finds nothing to do
            Some(sources) => {
                self.inner.finished.store(true, Ordering::SeqCst);
                let _ = done.send(sources);
            }
            None => *waiting = Some(done),
        }
        answer
    }

    fn take_sources(&self) -> Option<Returned> {
        self.inner.sources.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether this job has ended, by handing its task over or by giving up.
    pub(super) fn is_finished(&self) -> bool {
        self.inner.finished.load(Ordering::SeqCst)
    }

    fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::SeqCst)
    }

    /// Ends the job: hands the task to its worker, or gives the sources back.
    fn finish(&self, opened: Option<Opened>, sources: Returned) {
        let waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.finished.store(true, Ordering::SeqCst);
        match (opened, &*waiting) {
            (Some(opened), None) => self.inner.worker.add(opened),
            (Some(opened), Some(done)) => {
                let _ = done.send(opened.parts.close());
            }
            (None, Some(done)) => {
                let _ = done.send(sources);
            }
            (None, None) => {}
        }
    }
}

impl Openers {
    /// Starts `threads` openers, to be ended by [`Openers::stop`] and joined: they hold the log and the stores' caches, and a
    /// thread that still does when the process ends races with the destructors of the C++ libraries below.
    pub(super) fn start(tools: &Arc<Tools>, threads: usize) -> Result<(Openers, Vec<JoinHandle<()>>), Fault> {
        let (jobs, queue) = channel::<Option<Job>>();
        let queue = Arc::new(Mutex::new(queue));
        let mut started = Vec::new();
        for index in 0..threads {
            let (tools, queue) = (tools.clone(), queue.clone());
            let run = move || serve(&tools, &queue);
            started.push(thread::start(format!("opener-{index}"), &format!("opener {index}"), run)?);
        }
        Ok((Openers { jobs }, started))
    }

    /// Ends as many threads as were started, each after the job that it is at.
    pub(super) fn stop(&self, threads: usize) {
        (0..threads).for_each(|_| drop(self.jobs.send(None)));
    }

    pub(super) fn push(&self, job: Job) {
        // openers outlive every assignment; an unsent job would only mean that the process is ending
        let _ = self.jobs.send(Some(job));
    }
}

fn serve(tools: &Tools, queue: &Mutex<Receiver<Option<Job>>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Some(job)) = job else { return };
        if let Some(sources) = job.take_sources() {
            Opening { tools, job: &job }.run(sources);
            tools.shared.restores.done(&job.inner.id);
        }
    }
}

/// One job at work.
struct Opening<'a> {
    tools: &'a Tools,
    job: &'a Job,
}

impl Opening<'_> {
    fn run(&self, sources: Returned) {
        match self.prepare(&sources) {
            Ok(Some(ready)) => self.job.finish(Some(self.assemble(ready, sources)), Vec::new()),
            Ok(None) => self.job.finish(None, sources),
            Err(fault) => {
                self.job.finish(None, sources);
                self.tools.shared.ending.fail(fault.during(format!("task {}: opening", self.job.inner.id)));
            }
        }
    }

    /// Everything that may fail or take long. `None` where the job was cancelled.
    fn prepare(&self, sources: &[Box<dyn Source>]) -> Result<Option<Ready>, Fault> {
        let partitions: Vec<TopicPartition> = sources.iter().map(|source| source.partition().clone()).collect();
        let Some(committed) =
            self.patiently("reading committed offsets", || self.job.inner.group.committed(&partitions))?
        else {
            return Ok(None);
        };
        let mut starts = Vec::new();
        for (partition, committed) in partitions.iter().zip(&committed) {
            if self.belongs(partition, committed)?.is_none() {
                return Ok(None);
            }
            let Some(start) = self.patiently("finding the start", || self.start(partition, committed))? else {
                return Ok(None);
            };
            starts.push(start);
        }
        let Some(version) = self.version(&committed)? else { return Ok(None) };
        let marker = self.marker()?;
        let stores = match self.stores(&version)? {
            None => return Ok(None),
            Some(stores) => stores,
        };
        Ok(Some(Ready { starts, committed, stores, marker, version }))
    }

    /// The topics are those of this host's start, and the offset may be from before, or of a host that started later.
    fn belongs(&self, place: &TopicPartition, committed: &Committed) -> Result<Option<()>, Fault> {
        let (shared, spec, topics) = (&self.tools.shared, &*self.job.inner.spec, &self.tools.topics);
        let lineages = Lineages { log: &*shared.log, application: &shared.application, spec, topics };
        self.patiently("comparing topics", || lineages.check_one(place, committed))
    }

    /// The version to run: none that is older than what the offsets were committed with, by whichever host.
    fn version(&self, committed: &[Committed]) -> Result<Option<Arc<Version>>, Fault> {
        let sequences = committed.iter().filter_map(|found| Lineage::decode(&found.metadata)).map(|l| l.sequence);
        let (least, spec) = (sequences.max().unwrap_or(0), &self.job.inner.spec);
        let known = self.patiently("its version", || self.tools.rollout.is_known(&spec.name, least, RETRY))?;
        Ok(known.map(|()| spec.versions.current()))
    }

    /// Repeats what fails in passing, saying so in health, until it succeeds or the job is cancelled.
    fn patiently<T>(&self, what: &str, mut attempt: impl FnMut() -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        let subject = format!("task {}", self.job.inner.id);
        while !self.job.is_cancelled() {
            match attempt() {
                Ok(value) => return Ok(Some(value)),
                Err(fault) if fault.verdict == Verdict::Transient => {
                    self.tools.shared.health.impair(subject.clone(), format!("{what}: {fault}"));
                    std::thread::park_timeout(RETRY);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }

    /// Where to read from: the committed offset, else what the input's `start` says.
    fn start(&self, partition: &TopicPartition, committed: &Committed) -> Result<i64, Fault> {
        let ends = self.tools.shared.log.ends(partition)?;
        match committed.offset {
            Some(offset) if offset < ends.start => Err(deleted(partition, offset, ends.start)),
            Some(offset) if offset > ends.end => Err(beyond(partition, offset, ends.end)),
            Some(offset) => Ok(offset),
            None => Ok(match self.policy(partition) {
                Start::Earliest => ends.start,
                Start::Latest => ends.end,
            }),
        }
    }

    fn policy(&self, partition: &TopicPartition) -> Start {
        let inputs = &self.job.inner.spec.inputs;
        inputs.iter().find(|input| input.topic == partition.topic).map_or(Start::Earliest, |input| input.start)
    }

    fn marker(&self) -> Result<Marker, Fault> {
        let (id, application) = (&self.job.inner.id, &self.tools.shared.application);
        let dir = application.state_dir.join("tasks").join(format!("{}-{}", id.processor, id.partition));
        // by their ids: a record of a topic that was made again is another one
        let topics = self.job.inner.spec.inputs.iter().map(|input| self.topic_id(&input.topic));
        Marker::open(&dir, topics, &self.tools.trials)
    }

    fn topic_id(&self, topic: &str) -> &str {
        self.tools.topics.get(topic).map_or("", |info| &info.id)
    }

    /// Opens and restores the stores. The outer `None`: cancelled; the inner: a plugin without stores, and nothing parked.
    #[allow(clippy::type_complexity, reason = "two different absences, named in the comment")]
    fn stores(&self, version: &Version) -> Result<Option<Option<Arc<Mutex<Stores>>>>, Fault> {
        if self.job.inner.spec.changelogs.is_empty() {
            return Ok(Some(None));
        }
        let (mut wipe, mut wiped) = (self.job.inner.wipe, false);
        loop {
            match self.open_and_restore(&mut wipe, version) {
                Ok(None) => return Ok(None),
                Ok(Some(stores)) => return Ok(Some(Some(Arc::new(Mutex::new(stores))))),
                Err(fault) if fault.verdict == Verdict::Corrupt && !wiped => {
                    tracing::warn!(task = %self.job.inner.id, %fault, "rebuilding the store from its changelog");
                    let (code, message) = (fault.code.to_owned(), fault.to_string());
                    let time_ms = self.tools.shared.clock.wall_ms();
                    self.job.inner.spec.note(Mishap { time_ms, code, message, place: None });
                    (wipe, wiped) = (true, true);
                }
                Err(fault) if fault.verdict == Verdict::Transient => {
                    self.tools.shared.health.impair(format!("task {}", self.job.inner.id), fault.to_string());
                    std::thread::park_timeout(RETRY);
                    if self.job.is_cancelled() {
                        return Ok(None);
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// `wipe` is taken back once it is done, so that a rebuild goes on where a hiccup of the cluster stopped it.
    fn open_and_restore(&self, wipe: &mut bool, version: &Version) -> Result<Option<Stores>, Fault> {
        let (job, shared) = (&self.job.inner, &self.tools.shared);
        let dir = self.folder();
        if std::mem::take(wipe) {
            Stores::wipe(&dir)?;
        }
        let specs = job.spec.stores_of(&version.component);
        let mut stores = Stores::open(&dir, &specs, &self.tools.stores, Arc::new(shared.clock))?;
        let changelogs: Vec<TopicPartition> =
            job.spec.changelogs.iter().map(|name| TopicPartition::new(name.clone(), job.id.partition)).collect();
        let new = self.new_stores();
        let mut restore = Restore::start(shared.log.clone(), &changelogs, (&mut stores, &new), Arc::new(shared.clock))?;
        let mut counted = 0;
        while !self.job.is_cancelled() {
            self.restoring(restore.progress());
            let step = restore.step(&mut stores, FETCH_WAIT)?;
            self.count_restored(&restore.progress(), &mut counted);
            if step == Step::Done {
                self.restored(&restore.progress());
                return Ok(Some(stores));
            }
        }
        Ok(None)
    }

    fn restoring(&self, progress: Progress) {
        let (id, shared) = (&self.job.inner.id, &self.tools.shared);
        shared.health.impair(format!("task {id}"), format!("restoring: {progress}"));
        shared.restores.report(id, progress);
    }

    /// Stores that may begin empty, as the command line said.
    fn new_stores(&self) -> Vec<&str> {
        let named = self.tools.shared.application.new_stores.iter().filter_map(|new| new.split_once('/'));
        named.filter(|(processor, _)| *processor == &*self.job.inner.id.processor).map(|(_, store)| store).collect()
    }

    /// Counts what was read since the last look, so that a rate can be seen while it goes on.
    fn count_restored(&self, progress: &Progress, counted: &mut u64) {
        let (spec, more) = (&self.job.inner.spec, progress.records.saturating_sub(*counted));
        if let ([store, ..], true) = (&spec.all_stores()[..], more > 0) {
            // a task's stores are restored together, and counted under the first
            StoreMetrics::new(&spec.name, &store.name).restored(more);
        }
        *counted = progress.records;
    }

    fn restored(&self, progress: &Progress) {
        if progress.records > 0 {
            let (records, rate) = (progress.records, progress.records_per_second as u64);
            tracing::info!(task = %self.job.inner.id, records, rate, "restored from the changelog");
        }
    }

    fn folder(&self) -> PathBuf {
        let (id, application) = (&self.job.inner.id, &self.tools.shared.application);
        application.state_dir.join("stores").join(&*id.processor).join(id.partition.to_string())
    }

    fn assemble(&self, ready: Ready, sources: Returned) -> Opened {
        let (job, tools) = (&self.job.inner, self.tools);
        let spec = &job.spec;
        let context = plan::context(spec, job.id.partition, &tools.topics);
        // the guest sees its own stores only, by their numbers
        let view = ready.stores.clone().map(|stores| stores as Arc<Mutex<dyn StateView>>);
        let view = view.filter(|_| !spec.stores.is_empty());
        let log = Arc::new(Traced { task: job.id.clone(), metrics: spec.metrics.plugin.clone() });
        let guest = Guest::new(ready.version.component.clone(), context, spec.limits.clone(), view, log);
        let inputs = self.inputs(sources, &ready);
        let find = |names: &mut dyn Iterator<Item = &Arc<str>>| {
            names.filter_map(|name| tools.topics.get(name).cloned()).collect::<Vec<_>>()
        };
        let dead_letters = find(&mut std::iter::once(&spec.dead_letters)).remove(0);
        Opened {
            outputs: find(&mut spec.outputs.iter().map(|(_, topic)| topic)),
            changelogs: find(&mut spec.changelogs.iter()),
            dead_letters,
            parts: Parts {
                id: job.id.clone(),
                spec: spec.clone(),
                group: job.group.clone(),
                lease: job.lease.clone(),
                inputs,
                stores: ready.stores,
                guest,
                version: ready.version,
                marker: ready.marker,
            },
        }
    }

    /// In the order that batches index: the group gives sources in any order.
    fn inputs(&self, sources: Returned, ready: &Ready) -> Vec<Input> {
        let clock = &self.tools.shared.clock;
        let places = ready.starts.iter().zip(&ready.committed);
        let mut inputs: Vec<Input> = sources
            .into_iter()
            .zip(places)
            .map(|(source, (&start, committed))| {
                let before = Lineage::decode(&committed.metadata).unwrap_or_default();
                let lineage =
                    lineage::of(&self.job.inner.spec, &self.tools.topics, &source.partition().topic).after(&before);
                let topic_id = self.topic_id(&source.partition().topic);
                let lineage = Lineage { sequence: ready.version.sequence, ..lineage };
                let input = Input::new(source, start, committed.offset.unwrap_or(-1)).of(topic_id, lineage);
                input.recall(&committed.metadata, clock)
            })
            .collect();
        let rank = |topic: &Arc<str>| self.job.inner.spec.inputs.iter().position(|input| input.topic == *topic);
        inputs.sort_by_key(|input| rank(&input.partition().topic));
        inputs
    }
}

struct Ready {
    /// Per source: where it starts, and what the group has committed.
    starts: Vec<i64>,
    committed: Vec<Committed>,
    stores: Option<Arc<Mutex<Stores>>>,
    marker: Marker,
    version: Arc<Version>,
}

fn deleted(partition: &TopicPartition, offset: i64, start: i64) -> Fault {
    let message =
        format!("{partition}: the committed offset {offset} is before the first record that is still there ({start})");
    Fault::fatal("offset-deleted", message)
        .hint("retention has deleted unread records: raise it, and reset the group's offset to accept the loss")
}

fn beyond(partition: &TopicPartition, offset: i64, end: i64) -> Fault {
    let message = format!("{partition}: the committed offset {offset} is past the end of the partition ({end})");
    Fault::fatal("offset-beyond-end", message).hint("was the topic deleted and created again? reset the group's offset")
}
