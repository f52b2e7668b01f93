//! Changes that somebody asks for: another version, an earlier one, a pause. Every step is taken before anything is written, so that a
//! version which fails one leaves everything as it was.

use super::start::{can_go_back, candidate};
use super::{Rollout, probe};
use crate::config::Processor;
use crate::model::{Clock, Fault};
use crate::plugin::Component;
use crate::runtime::control::{Deploy, Deployed, History, HistoryEntry, Rollback};
use crate::runtime::matching;
use crate::task::ProcessorSpec;
use crate::versions::{Candidate, Entry, How, Outcome, Record, Schema, fits, same_stores};
use std::sync::PoisonError;
use std::time::Duration;

/// How long a deploy waits for this host's tasks.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);
/// Codes of what befalls a version that is active already.
const WRITTEN: [&str; 2] = ["version-failed", "version-late"];

impl Rollout {
    /// Deploys a component. Faults: those of [`crate::plugin::Engine::load`], `plugin-names`, `store-incompatible`,
    /// `rollback-impossible`, `plugin-init-refused`, `plugin-probe-failed`, `components-…`, `deploy-overtaken`, `version-failed`.
    pub(in crate::runtime) fn deploy(&self, ask: Deploy, how: How) -> Result<Deployed, Fault> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (processor, spec) = self.find(&ask.processor)?;
        let result = self.try_deploy(processor, spec, (ask, how));
        if let Some(fault) = result.as_ref().err().filter(|fault| !WRITTEN.contains(&fault.code)) {
            spec.metrics.plugin.swapped("refused");
            tracing::warn!(processor = processor.name, code = fault.code, %fault, "a version was refused");
        }
        result
    }

    fn try_deploy(&self, processor: &Processor, spec: &ProcessorSpec, ask: (Deploy, How)) -> Result<Deployed, Fault> {
        let (Deploy { component, by, no_rollback, .. }, how) = ask;
        let active = self.active(processor)?;
        let component = self.shelf.load("that is to be deployed", component)?;
        if component.digest == active.digest {
            // other hosts may miss it where it was lost
            self.shelf.put(&component.digest, &component.bytes)?;
            return Ok(deployed(&active, processor, vec!["it is the active version already".to_owned()]));
        }
        let candidate = candidate(&component, by, how, self.now_ms());
        self.check(processor, &component, &active)?;
        let can_go_back = can_go_back(&active, &candidate.stores);
        if !can_go_back && !no_rollback {
            return Err(one_way(processor, &active, &candidate));
        }
        let notes = probe::probe(self, processor, spec, &component)?;
        self.shelf.put(&component.digest, &component.bytes)?;
        self.shelf.keep(&component);
        let next = Candidate { can_go_back: can_go_back && !no_rollback, ..candidate };
        if self.shared.ending.is_stopping() {
            return Err(stopping());
        }
        let record = self.write(&active, next)?;
        self.arrive(spec, &record)?;
        spec.metrics.plugin.swapped("deployed");
        Ok(deployed(&record, processor, notes))
    }

    /// Makes an earlier version active again. Faults as of [`Rollout::deploy`], and `version-unknown`.
    pub(in crate::runtime) fn go_back(&self, ask: &Rollback) -> Result<Deployed, Fault> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (processor, spec) = self.find(&ask.processor)?;
        let active = self.active(processor)?;
        let component = self.shelf.get(&earlier(&active, ask.to.as_deref())?)?;
        self.check(processor, &component, &active)?;
        let candidate = candidate(&component, ask.by.clone(), How::Rollback, self.now_ms());
        let record = self.write(&active, Candidate { can_go_back: false, ..candidate })?;
        self.arrive(spec, &record)?;
        spec.metrics.plugin.swapped("rolled-back");
        Ok(deployed(&record, processor, Vec::new()))
    }

    /// Pauses a processor, or lets it go on, on all hosts. False where it was so already.
    pub(in crate::runtime) fn pause(&self, processor: &str, paused: bool, by: &str) -> Result<bool, Fault> {
        let (_, spec) = self.find(processor)?;
        let known = self.known().clone();
        let record = self.ledger.change(known, |known| {
            let active = known.records.get(processor).ok_or_else(|| no_version(processor))?;
            Ok((active.paused != paused).then(|| active.paused(paused)))
        })?;
        let is_new = record.is_some();
        tracing::info!(processor, paused, by, is_new, "asked for");
        match self.wait(|| spec.versions.is_paused() == paused) {
            true => Ok(is_new),
            false => Err(not_yet(processor)),
        }
    }

    pub(in crate::runtime) fn history(&self, processor: &str) -> Result<History, Fault> {
        self.find(processor)?;
        let record = self.record(processor).ok_or_else(|| no_version(processor))?;
        let entries = record.history.iter().map(entry).collect();
        Ok(History { processor: record.processor, paused: record.paused, entries })
    }

    fn active(&self, processor: &Processor) -> Result<Record, Fault> {
        self.record(&processor.name).ok_or_else(|| no_version(&processor.name))
    }

    /// Whether a component can take the place of the active version, while tasks run.
    fn check(&self, processor: &Processor, component: &Component, active: &Record) -> Result<(), Fault> {
        matching::check(processor, &component.manifest)?;
        let stores = Schema::of(&component.manifest.stores);
        let fit = same_stores(&active.stores, &stores).and_then(|()| fits(&active.stores, &stores));
        fit.map_err(|problem| {
            let message =
                format!("processor {}: the version cannot take over the running stores: {problem}", processor.name);
            Fault::fatal("store-incompatible", message)
                .hint("stores come and go at a start only: stop the hosts, replace the plugin's file, and start them")
        })
    }

    /// Writes the version down where the one that it was compared with is still active.
    fn write(&self, active: &Record, candidate: Candidate) -> Result<Record, Fault> {
        let known = self.known().clone();
        let record = self.ledger.change(known, |known| match known.records.get(&active.processor) {
            Some(now) if now.sequence == active.sequence => Ok(Some(now.next(candidate, Outcome::Replaced))),
            _ => Err(overtaken(&active.processor)),
        })?;
        record.ok_or_else(|| overtaken(&active.processor))
    }

    /// Waits until this host's tasks run a version.
    fn arrive(&self, spec: &ProcessorSpec, record: &Record) -> Result<(), Fault> {
        let (versions, wanted) = (&spec.versions, record.sequence);
        let there = self.wait(|| {
            let known = versions.sequence();
            // a processor that stands still takes it up when it is started again
            let settled = spec.is_stopped() || versions.is_everywhere(wanted);
            known > wanted || versions.last_failure(wanted).is_some() || known == wanted && settled
        });
        let here = versions.last_failure(wanted).map(|failed| failed.reason);
        match here.or_else(|| self.record(&record.processor)?.taken_back(wanted).map(str::to_owned)) {
            Some(reason) => Err(failed(&record.processor, &reason)),
            None if there => Ok(()),
            None => Err(late(record)),
        }
    }

    fn wait(&self, done: impl Fn() -> bool) -> bool {
        let end = self.shared.clock.monotonic() + PATIENCE;
        while !done() {
            if self.shared.clock.monotonic() > end || self.shared.ending.is_stopping() {
                return false;
            }
            std::thread::park_timeout(LOOK);
        }
        true
    }
}

/// The digest to go back to: of a version in the history, or the last one that was not rolled back.
fn earlier(active: &Record, to: Option<&str>) -> Result<String, Fault> {
    let processor = &active.processor;
    let found: Vec<&Entry> = match to {
        None => active.before().into_iter().collect(),
        Some(to) => active.history.iter().skip(1).filter(|entry| entry.digest.starts_with(to)).collect(),
    };
    match found.first() {
        Some(entry) if found.iter().all(|other| other.digest == entry.digest) => Ok(entry.digest.clone()),
        Some(_) => Err(Fault::fatal("version-unknown", format!("processor {processor}: several versions begin so"))
            .hint("give more of the digest")),
        None => {
            Err(Fault::fatal("version-unknown", format!("processor {processor}: there is no such earlier version"))
                .hint("`pelton history` lists those that there are"))
        }
    }
}

fn deployed(record: &Record, processor: &Processor, notes: Vec<String>) -> Deployed {
    let now = record.history.first();
    Deployed {
        sequence: record.sequence,
        digest: record.digest.clone(),
        plugin: now.map(|entry| entry.plugin.clone()).unwrap_or_default(),
        version: now.map(|entry| entry.version.clone()).unwrap_or_default(),
        probation_until_ms: record.previous.as_ref().map(|_| record.probation_until_ms(processor.probation)),
        notes,
    }
}

fn entry(entry: &Entry) -> HistoryEntry {
    let result = match &entry.outcome {
        Outcome::Active => "active".to_owned(),
        Outcome::Replaced => "replaced".to_owned(),
        Outcome::RolledBack(reason) => format!("rolled back: {reason}"),
    };
    let Entry { sequence, digest, plugin, version, by, time_ms, how, .. } = entry.clone();
    HistoryEntry { sequence, digest, plugin, version, by, time_ms, how: how.as_str().to_owned(), result }
}

fn one_way(processor: &Processor, active: &Record, candidate: &Candidate) -> Fault {
    let problem = fits(&candidate.stores, &active.stores).err().unwrap_or_default();
    let message = format!(
        "processor {}: the active version cannot take over again what this one leaves ({problem}): where it fails, nobody can go back",
        processor.name
    );
    Fault::fatal("rollback-impossible", message).hint("say --no-rollback where that is what you want")
}

fn overtaken(processor: &str) -> Fault {
    let message = format!("processor {processor}: another version has become active in the meantime");
    Fault::transient("deploy-overtaken", message).hint("look at `pelton history`, and try again")
}

fn no_version(processor: &str) -> Fault {
    Fault::transient("version-unknown", format!("processor {processor}: its version is not known yet"))
}

fn failed(processor: &str, reason: &str) -> Fault {
    Fault::fatal("version-failed", format!("processor {processor}: the version was written down, and fails: {reason}"))
        .hint("`pelton history` says whether it was taken back")
}

fn not_yet(processor: &str) -> Fault {
    let message =
        format!("processor {processor}: it is written down, and this host has not followed within {PATIENCE:?}");
    Fault::transient("version-late", message).hint("`pelton status` shows what it is at")
}

pub(super) fn stopping() -> Fault {
    Fault::transient("stopping", "the host is being stopped: nothing was changed")
}

fn late(record: &Record) -> Fault {
    let message = format!(
        "processor {}: version {} is active, and some tasks of this host have not changed to it within {PATIENCE:?}",
        record.processor, record.sequence
    );
    Fault::transient("version-late", message).hint("`pelton status` shows which task is at what")
}
