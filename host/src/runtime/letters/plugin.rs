//! The way of a letter through the plugin: one record a call, here and now, its outputs in the replay's transaction.

use super::chunk::{Chunk, Target};
use super::replay::{foreign, takes};
use super::{Letter, Letters};
use crate::config::settings::Application;
use crate::delivery::reason::original;
use crate::model::manifest::World;
use crate::model::{Batch, Clock, Ending, Failure, Fault, Progress, RecordRef, SystemClock, TaskId};
use crate::plugin::{CallFault, Guest, Traced};
use crate::runtime::plan::{self, Plan, Plugins};
use crate::runtime::ticker::Ticker;
use crate::task::ProcessorSpec;
use std::sync::Arc;

pub(super) struct ThroughPlugin {
    plan: Plan,
    spec: Arc<ProcessorSpec>,
    outputs: Vec<Arc<str>>,
    /// The instance that ran last, and the partition that it was told.
    guest: Option<(i32, Guest)>,
    to: Arc<str>,
    clock: SystemClock,
    _ticker: Ticker,
}

impl ThroughPlugin {
    /// Loads the plugin and finds its topics; `dry` makes none. `Fatal` `plugin-has-state` for an aggregate.
    pub(super) fn open(letters: &Letters<'_>, dry: bool) -> Result<ThroughPlugin, Fault> {
        let processors = vec![letters.processor.clone()];
        let single = Application { processors, ..letters.application.clone() };
        let plugins = Plugins::load(&single, None)?;
        let mut plan = Plan::look(&single, &plugins, letters.log)?;
        if plan.processors.iter().any(|spec| spec.versions.current().component.world == World::Aggregate) {
            return Err(stateful(&letters.processor.name));
        }
        if !dry {
            plan = plan.make(&single, &plugins, letters.log)?;
        }
        let Some(spec) = plan.processors.first().cloned() else {
            return Err(Fault::fatal("processor-unknown", "a plan without a processor"));
        };
        let outputs = spec.outputs.iter().map(|(_, topic)| topic.clone()).collect();
        let _ticker = Ticker::start(plan.engine.clone())?;
        let clock = SystemClock::default();
        Ok(ThroughPlugin { plan, spec, outputs, guest: None, to: "plugin".into(), clock, _ticker })
    }

    pub(super) fn topics(&self) -> &[Arc<str>] {
        &self.outputs
    }

    /// Runs the plugin on the letter's record. Its failure is why the letter stays.
    pub(super) fn plan(&mut self, letter: &Letter<'_>, chunk: &mut Chunk) -> Result<Result<(), Failure>, Fault> {
        let Some(input) = self.spec.inputs.iter().position(|input| *input.topic == letter.reason.topic) else {
            return Ok(Err(foreign(letter)));
        };
        let batch = batch(letter, input, self.clock.wall_ms());
        let timestamp = batch.timestamps[0];
        let progress = match self.call(batch, letter.reason.partition) {
            Ok(progress) => progress,
            Err(CallFault::Host(fault)) => return Err(fault),
            Err(CallFault::Init(message)) => {
                let message = format!("the plugin does not start: {message}");
                return Err(Fault::fatal("plugin-init-failed", message));
            }
            Err(fault) => return Ok(Err(fault.failure())),
        };
        let fits = settle(&progress).and_then(|()| self.fits(&progress, timestamp));
        Ok(fits.map(|()| self.send(letter, &progress, timestamp, chunk)))
    }

    /// Whether every topic takes what the record has become.
    fn fits(&self, progress: &Progress, timestamp: i64) -> Result<(), Failure> {
        let now = self.clock.wall_ms();
        progress.effects.emits.iter().try_for_each(|emit| {
            let info = self.outputs.get(emit.output as usize).and_then(|topic| self.plan.topics.get(topic));
            info.map_or(Ok(()), |info| takes(info, &stamped(emit.record, timestamp), now))
        })
    }

    /// Runs one record to its end, however often the guest yields.
    fn call(&mut self, batch: Batch, partition: i32) -> Result<Progress, CallFault> {
        let mut guest = match self.guest.take() {
            Some((same, guest)) if same == partition => guest,
            _ => self.instance(partition),
        };
        let mut call = guest.call(batch, self.clock.monotonic());
        let outcome = loop {
            if let Some(outcome) = call.poll(self.clock.monotonic()) {
                break outcome;
            }
        };
        drop(call);
        if outcome.result.is_ok() {
            self.guest = Some((partition, guest));
        }
        outcome.result
    }

    fn instance(&self, partition: i32) -> Guest {
        let spec = &self.spec;
        let context = plan::context(spec, partition, &self.plan.topics);
        let log = Arc::new(Traced {
            task: TaskId { processor: spec.name.clone(), partition },
            metrics: spec.metrics.plugin.clone(),
        });
        Guest::new(spec.versions.current().component.clone(), context, spec.limits.clone(), None, log)
    }

    fn send(&self, letter: &Letter<'_>, progress: &Progress, timestamp: i64, chunk: &mut Chunk) {
        chunk.add(letter.place, self.to.clone());
        for emit in progress.effects.emits.iter() {
            chunk.push(Target { topic: emit.output as usize, partition: None }, stamped(emit.record, timestamp));
        }
    }
}

/// The letter's record as it was read, alone.
fn batch(letter: &Letter<'_>, input: usize, now: i64) -> Batch {
    let reason = &letter.reason;
    let headers = original(letter.record.headers);
    let headers = headers.iter().next().unwrap_or_default();
    let timestamp = reason.timestamp.unwrap_or(letter.record.timestamp);
    let mut batch = Batch { input: input as u32, partition: reason.partition as u32, now, ..Batch::default() };
    batch.push(reason.offset, RecordRef { headers, timestamp, ..letter.record });
    batch
}

/// An output with its own timestamp, or its input record's where it has none.
fn stamped(output: RecordRef<'_>, input: i64) -> RecordRef<'_> {
    let timestamp = if output.timestamp == -1 { input } else { output.timestamp };
    RecordRef { timestamp, ..output }
}

/// Whether the one record is done.
fn settle(progress: &Progress) -> Result<(), Failure> {
    if let Some(rejection) = progress.rejected.first() {
        return Err(rejection.failure.clone());
    }
    match &progress.ending {
        Ending::Complete => odd_time(progress).map_or(Ok(()), Err),
        Ending::Retry(failure) | Ending::Stop(failure) => Err(failure.clone()),
    }
}

/// A timestamp before the epoch that the plugin made: refused for its record, as in a task.
fn odd_time(progress: &Progress) -> Option<Failure> {
    let odd = progress.effects.emits.timestamps.iter().find(|&&time| time < -1)?;
    Some(Failure::new("output-timestamp-refused", format!("an output's timestamp {odd} is before the epoch")))
}

fn stateful(processor: &str) -> Fault {
    let message = format!("processor {processor}: its plugin has state, which belongs to the hosts that run it");
    Fault::fatal("plugin-has-state", message)
        .hint("leave out --through-plugin: the letters go back to their source topic")
}
