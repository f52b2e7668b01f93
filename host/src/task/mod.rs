//! One partition of a processor: its life cycle, its batch loop, its commit. A task is owned by one worker; nothing here is shared
//! but its stores, which the running guest reads.

mod accept;
pub mod commit;
mod input;
mod intake;
mod letters;
pub mod lifecycle;
mod outbox;
mod pacing;
mod spec;
mod step;
#[cfg(test)]
pub(crate) mod tests;

pub use commit::{CommitError, commit};
pub use input::Input;
pub use lifecycle::{State, stops_processor};
pub use outbox::{OutTopic, Outbox};
pub use spec::{InputSpec, Lease, ProcessorSpec, Routes};
pub use step::Step;

use crate::delivery::Attempts;
use crate::metrics::Traffic;
use crate::model::log::{Committed, Group, Source};
use crate::model::{Fault, TaskId, TopicPartition};
use crate::plugin::{Call, Guest};
use crate::state::Stores;
use intake::Intake;
use pacing::Pacing;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A partition at work.
pub struct Task {
    pub id: TaskId,
    pub spec: Arc<ProcessorSpec>,
    pub group: Arc<dyn Group>,
    /// The task's slot in its worker: outputs are traced back to the task by it.
    slot: u16,
    lease: Lease,
    routes: Routes,
    intake: Intake,
    guest: Guest,
    call: Option<Running>,
    stores: Option<Arc<Mutex<Stores>>>,
    pacing: Pacing,
    state: State,
    /// What is remembered of the record that is being retried, by input.
    retrying: BTreeMap<u32, Attempts>,
    /// When the retried record is due, on the monotonic clock.
    due: Duration,
    /// What was accepted since the last commit, in records and bytes.
    tally: Tally,
    /// One past the last acknowledged offset of each changelog, taken after the flush of the commit under way.
    acked: Vec<Option<i64>>,
}

/// What a task has done since its last commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    traffic: Traffic,
    /// By code, as metrics know them.
    dead_letters: BTreeMap<&'static str, u64>,
    /// How many records and letters the processor's count of letters knows of.
    told: (u64, u64),
}

/// A call in flight, and when it began on the monotonic clock.
struct Running {
    call: Call,
    since: Duration,
    records: usize,
}

/// What a task is made of, opened and restored.
pub struct Parts {
    pub id: TaskId,
    pub spec: Arc<ProcessorSpec>,
    pub group: Arc<dyn Group>,
    pub lease: Lease,
    pub inputs: Vec<Input>,
    pub stores: Option<Arc<Mutex<Stores>>>,
    pub guest: Guest,
}

impl Parts {
    /// Closes the stores, then gives the sources back.
    pub fn close(self) -> Vec<Box<dyn Source>> {
        drop(self.guest);
        close(&self.id, self.stores);
        self.inputs.into_iter().map(Input::into_source).collect()
    }
}

/// Closes stores with everything committed on disk.
fn close(task: &TaskId, stores: Option<Arc<Mutex<Stores>>>) {
    let stores =
        stores.and_then(Arc::into_inner).map(|stores| stores.into_inner().unwrap_or_else(PoisonError::into_inner));
    if let Some(Err(fault)) = stores.map(Stores::close) {
        // nothing is lost: the store reopens older, and its changelog brings back the rest
        tracing::warn!(%task, %fault, "closing the stores");
    }
}

impl Task {
    /// A task that is ready to run in the worker slot `slot`, its outputs resolved by that worker's outbox.
    pub fn new(parts: Parts, slot: u16, routes: Routes) -> Task {
        let limits = &parts.spec.limits;
        let pacing = Pacing::new(limits.batch_records, limits.batch_bytes);
        Task {
            id: parts.id,
            group: parts.group,
            slot,
            lease: parts.lease,
            routes,
            intake: Intake::new(parts.inputs),
            guest: parts.guest,
            call: None,
            stores: parts.stores,
            pacing,
            state: State::Running,
            retrying: BTreeMap::new(),
            due: Duration::ZERO,
            tally: Tally::default(),
            acked: Vec::new(),
            spec: parts.spec,
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// Whether a commit would move anything: offsets, state or dead letters.
    pub fn has_progress(&self) -> bool {
        self.intake.has_progress()
    }

    /// Whether nothing is uncommitted, and either the processor is stopped or every input is read to its end with nothing in
    /// flight or waiting for a retry.
    pub fn is_idle(&self) -> bool {
        let worked_off = self.call.is_none() && self.intake.at_end() && self.state == State::Running;
        !self.has_progress() && (worked_off || self.is_stopped())
    }

    /// Whether this task does nothing any more: halted itself, or with its processor.
    pub fn is_stopped(&self) -> bool {
        self.state.is_halted() || self.spec.is_stopped()
    }

    /// Bytes of uncommitted state.
    pub fn overlay_bytes(&self) -> u64 {
        self.stores().map_or(0, |stores| stores.overlay_bytes())
    }

    /// Wakes `wake` when any input has something to read.
    pub fn on_ready(&mut self, wake: &Arc<dyn Fn() + Send + Sync>) {
        self.intake.on_ready(wake);
    }

    /// Forgets everything since the last commit and goes back there: the overlay, a call in flight, records read ahead.
    /// Called for every task of an aborted transaction.
    pub fn rewind(&mut self) {
        self.call = None;
        let Tally { told, .. } = std::mem::take(&mut self.tally);
        self.spec.take_back(told.0, told.1);
        if let Some(mut stores) = self.stores() {
            stores.discard();
        }
        self.intake.rewind();
        self.guest.reset();
    }

    /// Gives up a call in flight: its records were not accepted and are read again by whoever owns the partition next.
    pub fn interrupt(&mut self) {
        self.call = None;
        self.guest.reset();
    }

    /// Marks an input record as failed, so that it becomes a dead letter when it is met again after the rewind. Call it once per
    /// record and commit: where a record had failed before, it is its dead letter that is refused, and only a person can help.
    pub fn refuse(&mut self, input: usize, offset: i64, failure: crate::model::Failure) {
        let text = failure.message.clone();
        if !self.intake.exclude(input, offset, failure) {
            let message = format!("task {}: the dead letter of offset {offset} is refused: {text}", self.id);
            self.halt(Fault::fatal("dead-letter-refused", message).hint("check the dead-letter topic's limits"));
        }
    }

    /// Stops this task for good: only a person, or a rebuild by the runtime, can help.
    pub fn halt(&mut self, fault: Fault) {
        self.call = None;
        self.state.enter(State::Halted(fault));
    }

    /// Writes a store's memtable to disk where that is due, so that a quiet store's offsets cannot go stale.
    pub fn maintain(&mut self) {
        let flushed = self.stores().map_or(Ok(()), |mut stores| stores.flush_if_due());
        if let Err(fault) = flushed {
            self.distrust(fault);
        }
    }

    /// A store that could not be written is opened anew: it reopens older, and its changelog brings back the rest.
    fn distrust(&mut self, fault: Fault) {
        self.halt(fault.during(format!("task {}: writing its store", self.id)));
    }

    /// Closes the stores with everything committed on disk, and gives the sources back.
    pub fn close(self) -> Vec<Box<dyn Source>> {
        // the call and the guest read the stores: they go first, so that the stores are this task's alone
        drop((self.call, self.guest));
        close(&self.id, self.stores);
        self.intake.into_sources()
    }

    /// Whether the group's committed offsets are what this task sent, what was before, or neither. `None`: neither.
    pub fn resolve(&self, committed: &[Committed]) -> Option<bool> {
        self.intake.resolve(committed)
    }

    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.intake.partitions()
    }

    fn count(&mut self) {
        let Tally { traffic, dead_letters, .. } = std::mem::take(&mut self.tally);
        self.spec.metrics.committed(traffic);
        dead_letters.into_iter().for_each(|(code, count)| self.spec.metrics.dead_letters(code, count));
    }

    fn stores(&self) -> Option<MutexGuard<'_, Stores>> {
        // a guest's call that panicked inside the host would poison the lock; the stores are only changed by this task
        self.stores.as_ref().map(|stores| stores.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
