//! The thread that reads the topic of versions as it grows: a new version is fetched, compiled and handed to the tasks, a pause is
//! passed on, and a version that fails within its probation is taken back for all hosts.

use super::Rollout;
use super::start::{candidate, version};
use crate::config::Processor;
use crate::model::log::{FetchLimit, Source};
use crate::model::{Batch, Clock, Fault, Verdict};
use crate::runtime::matching;
use crate::task::{Failed, ProcessorSpec};
use crate::versions::{Candidate, How, Outcome, Record, Schema, same_stores};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: FetchLimit = FetchLimit { records: 100, bytes: 8 << 20 };
/// How long one look at the topic waits, and so how soon a failure of a version is seen.
const WAIT: Duration = Duration::from_millis(50);
/// Between two attempts at what could not be done just now.
const RETRY: Duration = Duration::from_millis(500);
const SUBJECT: &str = "versions";

/// What is tried again later, by processor, at this moment of the monotonic clock.
type Later = BTreeMap<Arc<str>, Duration>;

impl Rollout {
    pub(super) fn follow(&self) {
        let (mut source, mut later, mut well) = (None, Later::new(), true);
        while !self.shared.ending.is_stopping() {
            match self.look(&mut source) {
                Ok(()) if well => {}
                Ok(()) => {
                    well = true;
                    self.shared.health.clear(SUBJECT);
                }
                Err(fault) if fault.verdict == Verdict::Fatal => return self.shared.ending.fail(fault),
                Err(fault) => {
                    (source, well) = (None, false);
                    self.shared.health.impair(SUBJECT, fault.to_string());
                    std::thread::park_timeout(RETRY);
                }
            }
            for (processor, spec) in self.shared.application.processors.iter().zip(&self.specs) {
                self.see_to(processor, spec, &mut later);
            }
        }
    }

    /// Takes what is new in the topic.
    fn look(&self, source: &mut Option<Box<dyn Source>>) -> Result<(), Fault> {
        let reader = match source {
            Some(reader) => reader,
            None => {
                let position = self.known().position;
                source.insert(self.ledger.log.reader(&self.ledger.place(), position)?)
            }
        };
        let mut batch = Batch::default();
        reader.fetch(&mut batch, LIMIT, WAIT)?;
        let mut known = self.known();
        known.take(&batch)?;
        known.position = known.position.max(reader.position());
        drop(known);
        self.moved.notify_all();
        Ok(())
    }

    fn see_to(&self, processor: &Processor, spec: &Arc<ProcessorSpec>, later: &mut Later) {
        let now = self.shared.clock.monotonic();
        if later.get(&spec.name).is_some_and(|&due| now < due) {
            return;
        }
        let Some(record) = self.record(&spec.name) else { return };
        let subject = format!("version of {}", spec.name);
        match self.bring(processor, spec, &record) {
            Ok(true) => self.shared.health.clear(&subject),
            Ok(false) => {}
            Err(fault) if fault.code == "version-needs-restart" => self.shared.ending.fail(fault),
            Err(fault) => {
                // a host that cannot follow goes on with what it has, and says so
                self.shared.health.impair(subject, fault.to_string());
                later.insert(spec.name.clone(), now + RETRY);
                return;
            }
        }
        later.remove(&spec.name);
    }

    /// True where something was done.
    fn bring(&self, processor: &Processor, spec: &Arc<ProcessorSpec>, record: &Record) -> Result<bool, Fault> {
        let mut done = false;
        if spec.versions.pause(record.paused) {
            let state = if record.paused { "paused" } else { "resumed" };
            tracing::info!(processor = %spec.name, state, "processor");
            self.wake();
            done = true;
        }
        if record.sequence > spec.versions.sequence() {
            self.enter(processor, spec, record)?;
            done = true;
        }
        match spec.versions.failed() {
            Some(failed) => self.take_back(spec, &failed).map(|()| true),
            None => Ok(done),
        }
    }

    /// Gets a version and hands it to the tasks, which change to it at their next batch.
    fn enter(&self, processor: &Processor, spec: &Arc<ProcessorSpec>, record: &Record) -> Result<(), Fault> {
        let component = self.shelf.get(&record.digest)?;
        matching::check(processor, &component.manifest)?;
        if let Err(problem) = same_stores(&Schema::of(&spec.stores), &record.stores) {
            let message = format!("processor {}: version {} has other stores: {problem}", spec.name, record.sequence);
            return Err(Fault::fatal("version-needs-restart", message)
                .hint("another host was started with it; start this one again to follow"));
        }
        let version = version(record, &component, (&self.shelf, &self.shared.clock), processor.probation);
        let (sequence, digest) = (record.sequence, &record.digest);
        let (plugin, release) = (&component.manifest.name, &component.manifest.version);
        tracing::info!(processor = %spec.name, sequence, digest, plugin, version = release, by = record.by, "version");
        spec.versions.set(version);
        spec.metrics.plugin.version(digest, release);
        self.wake();
        Ok(())
    }

    /// Makes the version before the failed one active again, for all hosts. Does nothing where another host has done so. Where there is
    /// none to go back to, this host's tasks go on with what they have, not ready.
    fn take_back(&self, spec: &ProcessorSpec, failed: &Failed) -> Result<(), Fault> {
        let failed_one = |record: &&Record| record.sequence == failed.sequence;
        let Some(record) = self.record(&spec.name).filter(|record| failed_one(&record)) else { return Ok(()) };
        let Some(previous) = &record.previous else { return Err(cannot_go_back(failed)) };
        // all that may fail comes before the lock, which takes it from whoever else is at it
        let component = self.shelf.get(previous)?;
        let candidate = candidate(&component, self.me(), How::Probation, self.now_ms());
        let next =
            record.next(Candidate { can_go_back: false, ..candidate }, Outcome::RolledBack(failed.reason.clone()));
        let known = self.known().clone();
        let written = self.ledger.change(known, |known| {
            let still = known.records.get(&*spec.name).filter(failed_one);
            Ok(still.map(|now| Record { paused: now.paused, ..next }))
        })?;
        if written.is_some() {
            let (processor, sequence, why) = (&*spec.name, failed.sequence, &failed.reason);
            spec.metrics.plugin.swapped("rolled-back");
            tracing::error!(
                processor,
                sequence,
                why,
                "the version failed within its probation; going back for all hosts"
            );
        }
        Ok(())
    }
}

fn cannot_go_back(failed: &Failed) -> Fault {
    let Failed { sequence, reason } = failed;
    let message = format!("version {sequence} does not run here, and there is none to go back to: {reason}");
    Fault::transient("version-failed", message).hint("deploy a version that runs")
}
