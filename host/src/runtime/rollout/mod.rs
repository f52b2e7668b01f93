//! The versions of an application's plugins: followed on a thread, so that all hosts run the same; changed by whoever asks for it, by
//! a file that is watched, or by a version that fails within its probation.

mod change;
mod follow;
mod ledger;
mod probe;
mod seen;
mod shelf;
mod start;
mod watch;

pub(super) use ledger::{Ledger, check, spec};
pub(super) use shelf::Shelf;
pub(super) use start::{Start, Starting};

use super::worker::Handle;
use super::{Plan, Shared, refusals, thread};
use crate::config::Processor;
use crate::model::log::TopicInfo;
use crate::model::{Clock, Fault};
use crate::task::ProcessorSpec;
use crate::versions::Record;
use ledger::Known;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is known of the versions, and how they reach this host's tasks.
pub(super) struct Rollout {
    shared: Arc<Shared>,
    ledger: Ledger,
    shelf: Arc<Shelf>,
    /// In the order of the application's processors.
    specs: Vec<Arc<ProcessorSpec>>,
    topics: HashMap<Arc<str>, TopicInfo>,
    /// Woken when there is a version for their tasks.
    workers: Vec<Handle>,
    known: Mutex<Known>,
    moved: Condvar,
    /// One change at a time on this host.
    turn: Mutex<()>,
}

impl Rollout {
    pub(super) fn new(
        shared: Arc<Shared>,
        (ledger, shelf): (Ledger, Arc<Shelf>),
        plan: &Plan,
        workers: Vec<Handle>,
        start: Start,
    ) -> Arc<Rollout> {
        let (known, moved, turn) = (Mutex::new(start.known), Condvar::new(), Mutex::default());
        let (specs, topics) = (plan.processors.clone(), plan.topics.clone());
        Arc::new(Rollout { shared, ledger, shelf, specs, topics, workers, known, moved, turn })
    }

    /// Starts what follows the versions, and what watches files where that is wanted.
    pub(super) fn run(self: &Arc<Self>) -> Result<Vec<JoinHandle<()>>, Fault> {
        let own = self.clone();
        let mut threads = vec![thread::start("versions", "the thread versions", move || own.follow())?];
        if self.shared.application.processors.iter().any(|processor| processor.watch) {
            let own = self.clone();
            threads.push(thread::start("watch", "the thread watch", move || own.watch())?);
        }
        Ok(threads)
    }

    /// Whether everything that was committed at the call is known, and a version of the processor that is at least `sequence`. Waits
    /// for at most `patience`. `Transient` `version-unknown`, or where the cluster does not answer.
    pub(super) fn is_known(&self, processor: &str, sequence: i64, patience: Duration) -> Result<(), Fault> {
        let end = self.ledger.log.ends(&self.ledger.place())?.stable;
        let known = self.known();
        let behind = |known: &mut Known| known.position < end;
        let waited = self.moved.wait_timeout_while(known, patience, behind);
        let (known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if known.position < end {
            return Err(Fault::transient("version-unknown", "the active versions are not read to their end yet"));
        }
        drop(known);
        let running =
            self.specs.iter().find(|spec| &*spec.name == processor).map_or(0, |spec| spec.versions.sequence());
        if running >= sequence {
            return Ok(());
        }
        let message = format!("version {sequence} is wanted, and this host has version {running}");
        Err(Fault::transient("version-unknown", message))
    }

    /// What the topic says of a processor.
    fn record(&self, processor: &str) -> Option<Record> {
        self.known().records.get(processor).cloned()
    }

    fn find(&self, processor: &str) -> Result<(&Processor, &Arc<ProcessorSpec>), Fault> {
        let application = &self.shared.application;
        let mut pairs = application.processors.iter().zip(&self.specs);
        pairs
            .find(|(known, _)| known.name == processor)
            .ok_or_else(|| refusals::unknown_processor(application, processor))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.shared.clock.wall_ms()
    }

    fn me(&self) -> String {
        format!("host {}", self.shared.instance)
    }

    fn wake(&self) {
        self.workers.iter().for_each(Handle::wake);
    }
}
