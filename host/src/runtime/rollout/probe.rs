//! Whether a version that is to be deployed runs at all: started under its limits, and tried on records that were worked off lately,
//! with what it makes of them dropped. It sees the state that a task of this host has now.

use super::Rollout;
use super::change::stopping;
use crate::config::Processor;
use crate::model::log::{FetchLimit, Source};
use crate::model::state::{ScanRange, StateView};
use crate::model::{Batch, Clock, Column, Ending, Fault, Progress, TaskId, TopicPartition};
use crate::plugin::{CallFault, Component, Guest, Traced};
use crate::runtime::worker::Handle;
use crate::runtime::{plan, rehearsal};
use crate::task::{ProcessorSpec, Task};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many records a version is tried on, and of how many bytes.
const LIMIT: FetchLimit = FetchLimit { records: 100, bytes: 1 << 20 };
/// How long a record is waited for.
const WAIT: Duration = Duration::from_millis(500);
/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many records that the active version cannot do either end the trial: it would prove nothing more.
const HOPELESS: usize = 3;

/// A task of this host.
struct Place {
    worker: Handle,
    task: TaskId,
    positions: Positions,
}

/// Topic and next offset of each input.
type Positions = Vec<(Arc<str>, i64)>;

/// What a version is tried with.
struct Trial<'a> {
    rollout: &'a Rollout,
    spec: &'a ProcessorSpec,
    name: String,
    place: Option<Place>,
}

/// Tries a version; what is noticed and does not stand in its way comes back. `plugin-init-refused`, `plugin-probe-failed`.
pub(super) fn probe(
    rollout: &Rollout,
    processor: &Processor,
    spec: &ProcessorSpec,
    component: &Arc<Component>,
) -> Result<Vec<String>, Fault> {
    let trial = Trial { rollout, spec, name: processor.name.clone(), place: place(rollout, spec) };
    let mut guest = trial.guest(component);
    let stop = || rollout.shared.ending.is_stopping();
    if !rehearsal::start_once(&guest, (&processor.name, &component.manifest.name), &stop)? {
        return Err(stopping());
    }
    let Some(batch) = trial.records()?.filter(|batch| !batch.is_empty()) else {
        return Ok(vec!["there were no records to try it on".to_owned()]);
    };
    let count = batch.len();
    let rejected = trial.run(&mut guest, batch)?;
    let tried = format!("tried on {count} records");
    Ok(vec![if rejected > 0 { format!("{tried}, of which it rejects {rejected}") } else { tried }])
}

fn place(rollout: &Rollout, spec: &ProcessorSpec) -> Option<Place> {
    let mut found: Vec<Place> = Vec::new();
    for worker in &rollout.workers {
        let name = spec.name.clone();
        let own = move |tasks: &[Task]| -> Vec<(TaskId, Positions)> {
            let own = tasks.iter().filter(|task| task.id.processor == name);
            own.map(|task| (task.id.clone(), task.positions())).collect()
        };
        let tasks = worker.ask(own).recv_timeout(PATIENCE).unwrap_or_default();
        found.extend(tasks.into_iter().map(|(task, positions)| Place { worker: worker.clone(), task, positions }));
    }
    found.into_iter().max_by_key(|place| place.positions.iter().map(|(_, offset)| *offset).max())
}

impl Trial<'_> {
    fn guest(&self, component: &Arc<Component>) -> Guest {
        let task = self.place.as_ref().map_or_else(|| self.nobody(), |place| place.task.clone());
        let context = plan::context(self.spec, task.partition, &self.rollout.topics);
        let view: Arc<Mutex<dyn StateView>> = match &self.place {
            Some(place) => Arc::new(Mutex::new(Remote { worker: place.worker.clone(), task: task.clone() })),
            None => Arc::new(Mutex::new(rehearsal::Empty)),
        };
        Guest::new(component.clone(), context, self.spec.limits.clone(), Some(view), self.log(task))
    }

    fn log(&self, task: TaskId) -> Arc<Traced> {
        Arc::new(Traced { task, metrics: self.spec.metrics.plugin.clone() })
    }

    fn nobody(&self) -> TaskId {
        TaskId { processor: self.spec.name.clone(), partition: 0 }
    }

    /// The records before the position of the input that is furthest.
    fn records(&self) -> Result<Option<Batch>, Fault> {
        let Some(place) = &self.place else { return Ok(None) };
        let Some((input, (topic, next))) = place.positions.iter().enumerate().max_by_key(|(_, (_, next))| *next) else {
            return Ok(None);
        };
        let partition = TopicPartition::new(topic.clone(), place.task.partition);
        let log = &*self.rollout.ledger.log;
        let start = log.ends(&partition)?.start.max(next - LIMIT.records as i64);
        let mut source = log.reader(&partition, start)?;
        let mut batch = Batch {
            input: input as u32,
            partition: place.task.partition as u32,
            now: self.rollout.now_ms(),
            ..Batch::default()
        };
        self.fetch(&mut *source, &mut batch)?;
        let before = batch.offsets.partition_point(|offset| offset < next);
        Ok(Some(batch.slice(0..before)))
    }

    /// A client that has just been made may need a moment for its first records.
    fn fetch(&self, source: &mut dyn Source, batch: &mut Batch) -> Result<(), Fault> {
        let clock = &self.rollout.shared.clock;
        let end = clock.monotonic() + PATIENCE;
        while batch.is_empty() && !source.at_end() && clock.monotonic() < end && !self.is_stopping() {
            source.fetch(batch, LIMIT, WAIT)?;
        }
        Ok(())
    }

    /// How many of the records are rejected.
    fn run(&self, guest: &mut Guest, batch: Batch) -> Result<usize, Fault> {
        match self.call(guest, batch.clone())? {
            Ok(progress) => self.judge(&progress),
            Err(_) => self.one_by_one(guest, &batch),
        }
    }

    fn judge(&self, progress: &Progress) -> Result<usize, Fault> {
        match &progress.ending {
            Ending::Stop(failure) => Err(self.refused(&format!("it stops: {} ({})", failure.message, failure.code))),
            _ => Ok(progress.rejected.len()),
        }
    }

    /// A record that the active version cannot do either says nothing of the new one.
    fn one_by_one(&self, guest: &mut Guest, batch: &Batch) -> Result<usize, Fault> {
        let mut active = self.guest(&self.spec.versions.current().component);
        let (mut hopeless, mut rejected) = (0, 0);
        for at in 0..batch.len() {
            let record = batch.slice(at..at + 1);
            let fault = match self.call(guest, record.clone())? {
                Ok(progress) => {
                    rejected += self.judge(&progress)?;
                    continue;
                }
                Err(fault) => fault,
            };
            if self.call(&mut active, record)?.is_ok() {
                let offset = batch.offsets[at];
                return Err(self.refused(&format!(
                    "offset {offset} of partition {}: {fault} ({})",
                    batch.partition,
                    fault.code()
                )));
            }
            hopeless += 1;
            if hopeless == HOPELESS {
                break;
            }
        }
        Ok(rejected)
    }

    fn is_stopping(&self) -> bool {
        self.rollout.shared.ending.is_stopping()
    }

    /// The outer fault is the host's, the inner one the plugin's.
    fn call(&self, guest: &mut Guest, batch: Batch) -> Result<Result<Progress, CallFault>, Fault> {
        let clock = &self.rollout.shared.clock;
        let mut call = guest.rerun(batch, clock.monotonic());
        loop {
            // without the host's ticks a guest that loops never yields
            if self.is_stopping() {
                return Err(stopping());
            }
            let Some(outcome) = call.poll(clock.monotonic()) else { continue };
            if outcome.result.is_err() {
                guest.reset();
            }
            return match outcome.result {
                Err(CallFault::Host(fault)) => Err(fault),
                result => Ok(result),
            };
        }
    }

    fn refused(&self, what: &str) -> Fault {
        let message = format!(
            "processor {}: the version fails on a record that the active one has worked off: {what}",
            self.name
        );
        Fault::fatal("plugin-probe-failed", message).hint("mend the plugin; the active version goes on")
    }
}

/// The state of a task, read through its worker.
struct Remote {
    worker: Handle,
    task: TaskId,
}

impl Remote {
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn StateView) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let id = self.task.clone();
        let answer = self.worker.ask(move |tasks| tasks.iter().find(|task| task.id == id)?.read(read));
        let gone = || Fault::transient("task-gone", format!("task {}: it is not here any more", self.task));
        answer.recv_timeout(PATIENCE).ok().flatten().ok_or_else(gone)?
    }
}

impl StateView for Remote {
    fn get_many(&mut self, store: u32, keys: &Column) -> Result<Column, Fault> {
        let keys = keys.clone();
        self.read(move |state| state.get_many(store, &keys))
    }

    fn scan(&mut self, store: u32, range: &ScanRange) -> Result<(Column, bool), Fault> {
        let range = range.clone();
        self.read(move |state| state.scan(store, &range))
    }
}
