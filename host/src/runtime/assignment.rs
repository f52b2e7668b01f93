//! What one processor's group has given this host: sources wait until a partition number is complete over all inputs, then become a
//! task on a worker; at revocation the task is committed and let go before the group goes on.

use super::Shared;
use super::opener::{Job, Openers};
use super::worker::{Handle, Returned};
use crate::model::log::{Group, GroupListener, Source};
use crate::model::{Clock, Fault, TaskId, TopicPartition};
use crate::task::{Lease, ProcessorSpec};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Opens a task again with sources that a worker gave back.
pub(super) trait Reopen: Send + Sync {
    /// `wipe`: the store is not believed any more and is rebuilt from its changelog.
    fn reopen(&self, task: TaskId, sources: Returned, wipe: bool);
}

/// One processor's partitions on this host.
pub(super) struct Assignment {
    shared: Arc<Shared>,
    spec: Arc<ProcessorSpec>,
    workers: Vec<Handle>,
    /// So that two processors do not start on the same worker.
    shift: usize,
    openers: Openers,
    group: Mutex<Option<Arc<dyn Group>>>,
    owned: Mutex<BTreeMap<i32, Slot>>,
}

/// How this host has a partition number.
#[derive(Clone)]
pub(super) enum Held {
    /// Not yet all of its inputs.
    InPart,
    Opening,
    /// Its worker has it, or is about to.
    Working(Handle),
}

/// What is held of one partition number.
#[derive(Default)]
struct Slot {
    /// Ownership number of the partition; every task that is opened takes a new one.
    number: Arc<AtomicU64>,
    /// Sources that wait for the other inputs of this partition number.
    waiting: Vec<Box<dyn Source>>,
    /// The task that is being opened, or that its worker has.
    work: Option<Job>,
}

impl Assignment {
    pub(super) fn new(
        shared: Arc<Shared>,
        spec: Arc<ProcessorSpec>,
        workers: (Vec<Handle>, usize),
        openers: Openers,
    ) -> Arc<Self> {
        let assignment = Assignment {
            shared,
            spec,
            workers: workers.0,
            shift: workers.1,
            openers,
            group: Mutex::default(),
            owned: Mutex::default(),
        };
        assignment.say();
        Arc::new(assignment)
    }

    /// Tells the group when it is joined; nothing is assigned before.
    pub(super) fn joined(&self, group: Arc<dyn Group>) {
        self.spec.metrics.group.member(true);
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = Some(group);
    }

    pub(super) fn group(&self) -> Option<Arc<dyn Group>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn spec(&self) -> &Arc<ProcessorSpec> {
        &self.spec
    }

    /// Whether nothing is being opened and every worker is idle.
    pub(super) fn is_idle(&self) -> bool {
        let opening = self.lock().values().any(|slot| slot.work.as_ref().is_some_and(|job| !job.is_finished()));
        !opening && self.workers.iter().all(Handle::is_idle)
    }

    /// Partition numbers that this host works on.
    pub(super) fn partitions(&self) -> Vec<i32> {
        self.lock().iter().filter(|(_, slot)| slot.work.is_some()).map(|(&partition, _)| partition).collect()
    }

    /// Every partition number that this host has something of.
    pub(super) fn held(&self) -> BTreeMap<i32, Held> {
        let owned = self.lock();
        owned.iter().filter_map(|(&partition, slot)| Some((partition, self.held_as(partition, slot)?))).collect()
    }

    /// The same of one.
    pub(super) fn held_at(&self, partition: i32) -> Option<Held> {
        self.lock().get(&partition).and_then(|slot| self.held_as(partition, slot))
    }

    fn held_as(&self, partition: i32, slot: &Slot) -> Option<Held> {
        match &slot.work {
            Some(job) if job.is_finished() => Some(Held::Working(self.worker(partition).clone())),
            Some(_) => Some(Held::Opening),
            None => (!slot.waiting.is_empty()).then_some(Held::InPart),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Slot>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task on every partition number whose inputs are all here.
    fn open_complete(&self, owned: &mut BTreeMap<i32, Slot>, wipe: bool) {
        for (&partition, slot) in owned.iter_mut() {
            let complete = slot.waiting.len() == self.spec.inputs.len();
            if complete && slot.work.is_none() {
                let sources = std::mem::take(&mut slot.waiting);
                slot.work = self.open(partition, sources, &slot.number, wipe);
            }
        }
    }

    fn open(&self, partition: i32, sources: Vec<Box<dyn Source>>, number: &Arc<AtomicU64>, wipe: bool) -> Option<Job> {
        let group = self.group()?;
        let id = TaskId { processor: self.spec.name.clone(), partition };
        let lease = Lease::take(number);
        self.shared.health.impair(format!("task {id}"), "opening");
        let worker = self.worker(partition).clone();
        let job = Job::new(id, self.spec.clone(), (group, lease), (sources, worker), wipe);
        self.openers.push(job.clone());
        Some(job)
    }

    fn worker(&self, partition: i32) -> &Handle {
        &self.workers[(partition as usize + self.shift) % self.workers.len()]
    }

    /// Takes partitions away. `commit`: what was done on them is committed first where that is possible.
    fn take_back(&self, partitions: &[TopicPartition], commit: bool) {
        let mut numbers: Vec<i32> = partitions.iter().map(|tp| tp.partition).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut returned = Vec::new();
        // again where a worker handed a task back to be opened anew in the meantime
        while self.holds(&numbers) {
            let answers = self.ask_for(&numbers, commit);
            returned.append(&mut self.collect(answers, &numbers));
        }
        let mut owned = self.lock();
        for partition in &numbers {
            if let Some(slot) = owned.get_mut(partition) {
                returned.append(&mut slot.waiting);
            }
            self.shared.health.clear(&format!("task {}/{partition}", self.spec.name));
            self.spec.metrics.group.lag(*partition, None);
        }
        // what another input still holds of a partition number waits for its fellow to come back
        returned.retain(|source| !partitions.contains(source.partition()));
        for source in returned {
            owned.entry(source.partition().partition).or_default().waiting.push(source);
        }
        drop(owned);
        self.say();
    }

    fn holds(&self, numbers: &[i32]) -> bool {
        let owned = self.lock();
        numbers.iter().any(|number| owned.get(number).is_some_and(|slot| slot.work.is_some()))
    }

    /// Asks whoever holds each task to let go, and returns where the answers come.
    fn ask_for(&self, numbers: &[i32], commit: bool) -> Vec<Receiver<Returned>> {
        let mut answers = Vec::new();
        let mut running: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
        for partition in numbers {
            let Some(job) = self.lock().get_mut(partition).and_then(|slot| slot.work.take()) else { continue };
            let worker = (*partition as usize + self.shift) % self.workers.len();
            answers.push(job.cancel());
            // an opening that was just finished is with its worker already: asked in any case
            running
                .entry(worker)
                .or_default()
                .push(TaskId { processor: self.spec.name.clone(), partition: *partition });
        }
        for (worker, ids) in running {
            let worker = &self.workers[worker];
            answers.push(if commit { worker.release(ids) } else { worker.drop_tasks(ids) });
        }
        answers
    }

    fn collect(&self, answers: Vec<Receiver<Returned>>, numbers: &[i32]) -> Returned {
        let mut returned = Vec::new();
        let budget = self.shared.application.revocation_budget();
        let end = self.shared.clock.monotonic() + budget;
        for answer in answers {
            match answer.recv_timeout(end.saturating_sub(self.shared.clock.monotonic())) {
                Ok(mut sources) => returned.append(&mut sources),
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => returned.append(&mut self.insist(&answer, numbers, budget / 2)),
            }
        }
        returned
    }

    /// The budget is used up: whatever a worker holds of these partitions can no longer be committed. If it does not let go even now,
    /// only the end of the process protects the partitions' next owner.
    fn insist(&self, answer: &Receiver<Returned>, numbers: &[i32], last_wait: Duration) -> Returned {
        tracing::error!(processor = %self.spec.name, ?numbers, "revocation is taking too long; aborting");
        self.end_leases(numbers);
        match answer.recv_timeout(last_wait) {
            Ok(sources) => sources,
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
            Err(RecvTimeoutError::Timeout) => {
                let message = format!("processor {}: a worker does not let go of revoked partitions", self.spec.name);
                self.shared.ending.exit_now(Fault::fatal("worker-stuck", message))
            }
        }
    }

    /// Nothing that is open on these partitions can be committed any more.
    fn end_leases(&self, numbers: &[i32]) {
        let owned = self.lock();
        for slot in numbers.iter().filter_map(|number| owned.get(number)) {
            slot.number.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Tells health and metrics whether this host works on anything.
    fn say(&self) {
        let subject = format!("processor {}", self.spec.name);
        let owned = self.partitions().len();
        self.spec.metrics.group.owns(owned);
        if owned == 0 {
            self.shared.health.impair(subject, "has no partitions on this host: waiting for its consumer group");
        } else {
            self.shared.health.clear(&subject);
        }
    }
}

impl GroupListener for Assignment {
    fn assigned(&self, sources: Vec<Box<dyn Source>>) {
        let mut owned = self.lock();
        for source in sources {
            owned.entry(source.partition().partition).or_default().waiting.push(source);
        }
        self.open_complete(&mut owned, false);
        drop(owned);
        self.spec.metrics.group.member(true);
        self.spec.metrics.group.rebalanced();
        tracing::info!(processor = %self.spec.name, partitions = ?self.partitions(), "partitions assigned");
        self.say();
    }

    fn revoked(&self, partitions: &[TopicPartition]) {
        self.take_back(partitions, true);
        self.spec.metrics.group.rebalanced();
        tracing::info!(processor = %self.spec.name, left = ?self.partitions(), "partitions revoked");
    }

    fn lost(&self, partitions: &[TopicPartition]) {
        let numbers: Vec<i32> = partitions.iter().map(|partition| partition.partition).collect();
        self.end_leases(&numbers);
        self.take_back(partitions, false);
        self.spec.metrics.group.rebalanced();
        self.spec.metrics.group.lost(partitions.len());
        // until it is given some again
        self.spec.metrics.group.member(false);
        tracing::warn!(processor = %self.spec.name, left = ?self.partitions(), "partitions lost");
    }
}

impl Reopen for Assignment {
    fn reopen(&self, task: TaskId, mut sources: Returned, wipe: bool) {
        let mut owned = self.lock();
        let slot = owned.entry(task.partition).or_default();
        slot.waiting.append(&mut sources);
        slot.work = None;
        self.open_complete(&mut owned, wipe);
    }
}
