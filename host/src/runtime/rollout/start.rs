//! Which versions a host starts with: those that the application's hosts run, or its own file where that is new. Looked at before
//! anything is made, and written down once everything is.

use super::ledger::{Known, Ledger};
use super::seen;
use super::shelf::Shelf;
use crate::config::{Application, Processor};
use crate::delivery::Lineage;
use crate::model::log::Log;
use crate::model::{Clock, Fault, TopicPartition, ids};
use crate::plugin::Component;
use crate::runtime::matching;
use crate::runtime::plan::Plugins;
use crate::runtime::refusals::Refusals;
use crate::task::{ProcessorSpec, Version};
use crate::versions::{Candidate, How, Outcome, Record, Schema, fits, same_stores};
use std::sync::Arc;
use std::time::Duration;

/// What a start has decided, per processor in the order of the file.
pub(in crate::runtime) struct Start {
    choices: Vec<Choice>,
    pub(super) known: Known,
}

struct Choice {
    component: Arc<Component>,
    /// The version that was active at the look.
    active: Option<Record>,
    /// The file, where the host has seen another one before or there is no version yet.
    is_new: bool,
    file: String,
}

/// What a start needs to decide.
#[derive(Clone, Copy)]
pub(in crate::runtime) struct Starting<'a> {
    pub application: &'a Application,
    pub ledger: &'a Ledger,
    pub shelf: &'a Shelf,
    pub clock: &'a dyn Clock,
    pub instance: &'a str,
}

impl Start {
    /// The components to run.
    pub(in crate::runtime) fn components(&self) -> Vec<Arc<Component>> {
        self.choices.iter().map(|choice| choice.component.clone()).collect()
    }
}

impl Starting<'_> {
    /// Looks at what is active. `Transient` where the cluster, or a component that another host has deployed, cannot be had yet.
    pub(in crate::runtime) fn look(self, files: &Plugins) -> Result<Start, Refusals> {
        let known = self.ledger.read()?;
        let processors = self.application.processors.iter().zip(files.components());
        let choices = Refusals::collect(processors.map(|(processor, file)| self.choose(processor, file, &known)))?;
        Ok(Start { choices, known })
    }

    /// Writes down the versions that are new, and gives every processor its version. False where another host was quicker with one:
    /// then everything is to be looked at again.
    pub(in crate::runtime) fn settle(self, start: &mut Start, specs: &[Arc<ProcessorSpec>]) -> Result<bool, Fault> {
        let processors = self.application.processors.iter().zip(&mut start.choices);
        for (processor, choice) in processors.filter(|(_, choice)| choice.is_new) {
            self.shelf.put(&choice.component.digest, &choice.component.bytes)?;
            let Some(record) = self.record(processor, choice, start.known.clone())? else { return Ok(false) };
            choice.active = Some(record.clone());
            // whatever fails after this, it is written down
            choice.is_new = false;
            start.known.records.insert(record.processor.clone(), record);
        }
        for ((processor, choice), spec) in self.application.processors.iter().zip(&start.choices).zip(specs) {
            if choice.component.digest == choice.file
                && let Err(fault) = self.shelf.put(&choice.file, &choice.component.bytes)
            {
                tracing::warn!(processor = processor.name, %fault, "other hosts may not find the component");
            }
            if let Some(record) = &choice.active {
                spec.versions.pause(record.paused);
                spec.versions.set(version(record, &choice.component, (self.shelf, self.clock), processor.probation));
            }
            seen::remember(&self.application.state_dir, &processor.name, &choice.file)?;
        }
        Ok(true)
    }

    fn choose(self, processor: &Processor, file: &Arc<Component>, known: &Known) -> Result<Choice, Fault> {
        self.shelf.know(file);
        let (name, digest) = (&processor.name, file.digest.clone());
        let Some(active) = known.records.get(name).cloned() else {
            return Ok(Choice { component: file.clone(), active: None, is_new: true, file: digest });
        };
        if active.digest == digest {
            return Ok(Choice { component: file.clone(), active: Some(active), is_new: false, file: digest });
        }
        let is_changed = seen::last(&self.application.state_dir, name).is_some_and(|last| last != digest);
        if is_changed && !active.was_left(&digest) {
            takes_over(processor, &active, file)?;
            if !can_go_back(&active, &Schema::of(&file.manifest.stores)) {
                tracing::warn!(
                    processor = name,
                    "the file takes over, and nobody could go back: its stores are others, or newer"
                );
            }
            return Ok(Choice { component: file.clone(), active: Some(active), is_new: true, file: digest });
        }
        let component = self.shelf.get(&active.digest).map_err(|fault| of_version(processor, &active, fault))?;
        matching::check(processor, &component.manifest).map_err(|fault| of_version(processor, &active, fault))?;
        let (file, sequence) = (processor.plugin.display(), active.sequence);
        tracing::warn!(processor = name, sequence, digest = active.digest, %file, "the active version is not what the file holds: `pelton deploy` would make it so");
        Ok(Choice { component, active: Some(active), is_new: false, file: digest })
    }

    /// `None` where somebody else was quicker.
    fn record(self, processor: &Processor, choice: &Choice, known: Known) -> Result<Option<Record>, Fault> {
        let by = format!("host {}", self.instance);
        let candidate = candidate(&choice.component, by, How::Start, self.clock.wall_ms());
        let before = if choice.active.is_none() { self.committed_under(processor)? } else { 0 };
        self.ledger.change(known, |known| {
            let active = known.records.get(&processor.name);
            let record = match (active, &choice.active) {
                (None, None) => Record::first(&processor.name, before + 1, candidate),
                (Some(now), Some(then)) if now.sequence == then.sequence => {
                    let can_go_back = can_go_back(now, &candidate.stores);
                    now.next(Candidate { can_go_back, ..candidate }, Outcome::Replaced)
                }
                _ => return Ok(None),
            };
            Ok(Some(record))
        })
    }

    /// The highest sequence that offsets of the processor's group were committed under: where the versions are lost, the next one goes
    /// on from there.
    fn committed_under(self, processor: &Processor) -> Result<i64, Fault> {
        let log = &*self.ledger.log;
        let group = ids::group(&self.application.id, &processor.name);
        let mut most = 0;
        for input in processor.inputs.values() {
            let committed = log.committed(&group, &partitions(log, &input.topic)?)?;
            let sequences = committed.iter().filter_map(|found| Lineage::decode(&found.metadata)).map(|l| l.sequence);
            most = sequences.fold(most, i64::max);
        }
        Ok(most)
    }
}

/// A component as the next version.
pub(super) fn candidate(component: &Component, by: String, how: How, time_ms: i64) -> Candidate {
    let manifest = &component.manifest;
    Candidate {
        digest: component.digest.clone(),
        plugin: manifest.name.clone(),
        version: manifest.version.clone(),
        stores: Schema::of(&manifest.stores),
        by,
        time_ms,
        how,
        can_go_back: true,
    }
}

/// Whether the active version could take over again what one with these stores leaves.
pub(super) fn can_go_back(active: &Record, stores: &[Schema]) -> bool {
    same_stores(&active.stores, stores).is_ok() && fits(stores, &active.stores).is_ok()
}

/// A record's version, with the one before it where it is on probation and that can be had.
pub(super) fn version(
    record: &Record,
    component: &Arc<Component>,
    (shelf, clock): (&Shelf, &dyn Clock),
    probation: Duration,
) -> Version {
    let probation_until_ms = record.probation_until_ms(probation);
    let previous = record.previous.as_ref().filter(|_| clock.wall_ms() < probation_until_ms);
    let former = previous.and_then(|digest| match shelf.get(digest) {
        Ok(former) => Some(former),
        Err(fault) => {
            let (processor, sequence) = (&record.processor, record.sequence);
            tracing::warn!(processor, sequence, %fault, "the version before cannot be had: no probation");
            None
        }
    });
    Version { sequence: record.sequence, component: component.clone(), former, probation_until_ms }
}

fn takes_over(processor: &Processor, active: &Record, file: &Component) -> Result<(), Fault> {
    fits(&active.stores, &Schema::of(&file.manifest.stores)).map_err(|problem| {
        let (name, path) = (&processor.name, processor.plugin.display());
        let message =
            format!("processor {name}: plugin {path} cannot take over from version {}: {problem}", active.sequence);
        Fault::fatal("store-incompatible", message)
            .hint("use a version of the plugin that reads what is there, or give the store a new name")
    })
}

fn of_version(processor: &Processor, active: &Record, fault: Fault) -> Fault {
    fault.during(format!("processor {}: version {} ({})", processor.name, active.sequence, active.digest))
}

fn partitions(log: &dyn Log, topic: &str) -> Result<Vec<TopicPartition>, Fault> {
    let count = log.topic(topic)?.map_or(0, |info| info.partitions);
    Ok((0..count).map(|partition| TopicPartition::new(topic, partition)).collect())
}
