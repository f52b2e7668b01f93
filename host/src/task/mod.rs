//! One partition of a processor: its life cycle, its batch loop, its commit. A task is owned by one worker; nothing here is shared
//! but its stores, which the running guest reads.

mod accept;
pub mod commit;
mod input;
mod intake;
mod letters;
pub mod lifecycle;
mod marker;
mod merge;
mod outbox;
mod pacing;
mod park;
mod parking;
mod retry;
mod seen;
mod shown;
mod spec;
mod step;
mod swap;
#[cfg(test)]
pub(crate) mod tests;
mod verdicts;
mod version;
mod work;

pub use commit::{CommitError, commit};
pub use input::Input;
pub use lifecycle::{State, stops_processor};
pub use marker::{Marker, Trials};
pub use outbox::{OutTopic, Outbox};
pub use seen::Seen;
pub use spec::{InputSpec, Lease, ProcessorSpec, Routes};
pub use step::Step;
pub use version::{Failed, Version, Versions};

use crate::delivery::{Attempts, Example, Mishap};
use crate::metrics::{Custom, Traffic};
use crate::model::log::{Committed, Group, Source};
use crate::model::state::StateView;
use crate::model::{Failure, Fault, TaskId, TopicPartition};
use crate::plugin::{Call, CallFault, Guest};
use crate::state::Stores;
use intake::Intake;
use pacing::Pacing;
use park::Park;
use parking::PARKED;
use shown::Shown;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use swap::Change;
use work::{Taken, Work};

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
    /// The version that the guest is of.
    version: Arc<Version>,
    /// Another version on its way in.
    change: Option<Change>,
    /// The guest of the version before, kept ready during probation.
    former: Option<Guest>,
    /// The sequence of a version that failed here: nothing is done before there is another one.
    blamed: Option<i64>,
    call: Option<Running>,
    stores: Option<Arc<Mutex<Stores>>>,
    /// Where records wait by key; `None` where they wait by partition, and none are left from before.
    park: Option<Park>,
    marker: Marker,
    pacing: Pacing,
    state: State,
    /// What was accepted since the last commit, in records and bytes.
    tally: Tally,
    /// One past the last acknowledged offset of each changelog, taken after the flush of the commit under way.
    acked: Vec<Option<i64>>,
    shown: Shown,
}

/// What a task has done since its last commit.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    traffic: Traffic,
    /// What the plugin counted itself.
    custom: Custom,
    /// How many by code, as metrics know them, and the first of each.
    dead_letters: BTreeMap<&'static str, (u64, Example)>,
    /// How many records and letters the processor's count of letters knows of.
    told: (u64, u64),
    /// Whether a record's first failure was kept for whoever asks: one of many is enough.
    noted: bool,
}

/// A call in flight, when it began on the monotonic clock, and where its records came from.
struct Running {
    call: Call,
    since: Duration,
    taken: Taken,
    /// Set where the version before tries what has broken this one, to what that came to.
    tried: Option<CallFault>,
}

/// What a task is made of, opened and restored.
pub struct Parts {
    pub id: TaskId,
    pub spec: Arc<ProcessorSpec>,
    pub group: Arc<dyn Group>,
    pub lease: Lease,
    pub inputs: Vec<Input>,
    /// The plugin's, and the park's behind them.
    pub stores: Option<Arc<Mutex<Stores>>>,
    pub guest: Guest,
    /// The version that the guest is of.
    pub version: Arc<Version>,
    pub marker: Marker,
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
        let mut intake = Intake::new(parts.inputs);
        parts.spec.versions.runs(parts.id.partition, Some(parts.version.sequence));
        parts.marker.suspects().into_iter().for_each(|(input, offsets)| intake.suspect(input, offsets));
        Task {
            id: parts.id,
            group: parts.group,
            slot,
            lease: parts.lease,
            routes,
            intake,
            guest: parts.guest,
            version: parts.version,
            change: None,
            former: None,
            blamed: None,
            call: None,
            park: parts.spec.has_park().then(|| Park::new(&parts.spec)),
            stores: parts.stores,
            marker: parts.marker,
            pacing,
            state: State::Running,
            tally: Tally::default(),
            acked: Vec::new(),
            shown: Shown::new(&parts.spec),
            spec: parts.spec,
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// Whether a commit would move anything: offsets, attempts, state, parked records or dead letters.
    pub fn has_progress(&self) -> bool {
        self.intake.has_progress() || self.park.as_ref().is_some_and(Park::has_progress)
    }

    /// Whether nothing is uncommitted, and either the processor is stopped or every input is read to its end with nothing in
    /// flight, parked or waiting for a retry.
    pub fn is_idle(&self) -> bool {
        let parked = self.park.as_ref().is_some_and(|park| !park.is_idle());
        let worked_off = self.call.is_none() && !parked && self.intake.at_end() && self.state == State::Running;
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
        self.marker.rewind();
        let Tally { told, .. } = std::mem::take(&mut self.tally);
        self.spec.take_back(told.0, told.1);
        match (&mut self.park, &self.stores) {
            (Some(park), Some(stores)) => park.rewind(&mut lock(stores)),
            (_, Some(stores)) => lock(stores).discard(),
            (_, None) => {}
        }
        self.intake.rewind();
        self.guest.reset();
        self.former.iter_mut().for_each(Guest::reset);
    }

    /// Gives up a call in flight: its records were not accepted and are read again by whoever owns the partition next.
    pub fn interrupt(&mut self) {
        self.give_up_call();
        self.guest.reset();
    }

    /// Marks an input record as failed, so that it becomes a dead letter when it is met again after the rewind. Call it once per
    /// record and commit: where a record had failed before, it is its dead letter that is refused, and only a person can help.
    /// `input` is as an output's origin has it.
    pub fn refuse(&mut self, input: u16, offset: i64, failure: Failure) {
        let text = failure.message.clone();
        let new = match &mut self.park {
            Some(park) if input & PARKED != 0 => park.exclude(u32::from(input & !PARKED), offset, failure),
            _ => self.intake.exclude(usize::from(input), offset, failure),
        };
        if !new {
            let message = format!("task {}: the dead letter of offset {offset} is refused: {text}", self.id);
            self.halt(Fault::fatal("dead-letter-refused", message).hint("check the dead-letter topic's limits"));
        }
    }

    /// Stops this task for good: only a person, or a rebuild by the runtime, can help.
    pub fn halt(&mut self, fault: Fault) {
        self.give_up_call();
        self.spec.versions.runs(self.id.partition, None);
        self.state.enter(State::Halted(fault));
    }

    /// Writes a store's memtable to disk where that is due, so that a quiet store's offsets cannot go stale; and looks at how large
    /// the stores are. `now` is the monotonic time.
    pub fn maintain(&mut self, now: Duration) {
        self.measure(now);
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
    pub fn close(mut self) -> Vec<Box<dyn Source>> {
        self.take_back_shown();
        self.spec.versions.runs(self.id.partition, None);
        // the call and the guest read the stores: they go first, so that the stores are this task's alone
        drop((self.call, self.guest, self.change, self.former));
        self.spec.metrics.parked(-self.park.map_or(0, |park| park.shown()));
        close(&self.id, self.stores);
        self.intake.into_sources()
    }

    /// Whether the group's committed offsets are what this task sent, what was before, or neither. `None`: neither.
    pub fn resolve(&self, committed: &[Committed]) -> Option<bool> {
        self.intake.resolve(committed)
    }

    /// Topic and next offset of every input.
    pub fn positions(&self) -> Vec<(Arc<str>, i64)> {
        self.intake.positions()
    }

    /// Reads the state as the plugin sees it now. `None` where there is none.
    pub fn read<T>(&self, read: impl FnOnce(&mut dyn StateView) -> T) -> Option<T> {
        self.stores().map(|mut stores| read(&mut *stores))
    }

    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.intake.partitions()
    }

    /// What is remembered of a record that failed before.
    fn retried(&self, work: &Work, entry: usize) -> Option<Attempts> {
        match &work.taken {
            Taken::Parked(head) => self.failed(head.slot.input, head.slot.offset).or(head.attempts),
            Taken::Input(_) => {
                let (input, offset) = (work.batch.input, work.batch.offsets[entry]);
                self.intake.retried(input, offset).or_else(|| self.failed(input, offset))
            }
        }
    }

    /// What the park remembers of a record that failed since the last commit.
    fn failed(&self, input: u32, offset: i64) -> Option<Attempts> {
        self.park.as_ref().and_then(|park| park.failed(input, offset))
    }

    /// Drops a call in flight. Its records are as if they had not been taken yet, once they are read again.
    fn give_up_call(&mut self) {
        self.call = None;
        self.marker.leave();
    }

    fn count(&mut self) {
        let Tally { traffic, custom, dead_letters, .. } = std::mem::take(&mut self.tally);
        self.spec.metrics.committed(traffic);
        if self.spec.metrics.custom.committed(&custom) {
            let processor = &self.spec.name;
            tracing::warn!(%processor, "the plugin counts what is left out: a bad name, more than 50, or a value that is no measure");
        }
        for (code, (count, example)) in dead_letters {
            self.spec.metrics.dead_letters(code, count);
            let Example { time_ms, message, place } = example.clone();
            self.spec.note(Mishap { time_ms, code: code.to_owned(), message, place: Some(place) });
            self.spec.news.lock().unwrap_or_else(PoisonError::into_inner).add(code, count, example);
        }
    }

    fn stores(&self) -> Option<MutexGuard<'_, Stores>> {
        self.stores.as_deref().map(lock)
    }
}

/// A guest's call that panicked inside the host would poison the lock; the stores are only changed by their task.
fn lock(stores: &Mutex<Stores>) -> MutexGuard<'_, Stores> {
    stores.lock().unwrap_or_else(PoisonError::into_inner)
}
