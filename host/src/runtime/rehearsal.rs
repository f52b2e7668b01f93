//! Every plugin started once before anything is made: settings that a plugin refuses, and limits that are too small for its start, are
//! told at `check` and at the start of a host, not at the first record.

use super::plan::{self, Plan};
use super::refusals::Refusals;
use super::ticker::Ticker;
use crate::model::state::{ScanRange, StateView};
use crate::model::{Clock, Column, Fault, SystemClock, TaskId};
use crate::plugin::{CallFault, Guest, Limit, Traced, Unstarted};
use crate::task::ProcessorSpec;
use std::sync::{Arc, Mutex};

/// The partition whose context the plugins are told: every topic has it.
const PARTITION: i32 = 0;

/// Starts the plugin of every processor under its limits, and drops it. False where `stop` said so before all had started.
pub(super) fn rehearse(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<bool, Refusals> {
    let _ticker = Ticker::start(plan.engine.clone())?;
    let started = Refusals::collect(plan.processors.iter().map(|spec| start(spec, plan, stop)))?;
    Ok(started.into_iter().all(|started| started))
}

fn start(spec: &ProcessorSpec, plan: &Plan, stop: &dyn Fn() -> bool) -> Result<bool, Fault> {
    let context = plan::context(spec, PARTITION, &plan.topics);
    let log = Arc::new(Traced {
        task: TaskId { processor: spec.name.clone(), partition: PARTITION },
        metrics: spec.metrics.plugin.clone(),
    });
    let component = spec.versions.current().component.clone();
    let guest = Guest::new(component, context, spec.limits.clone(), Some(Arc::new(Mutex::new(Empty))), log);
    start_once(&guest, (&spec.name, &spec.versions.current().component.manifest.name), stop)
}

/// Whether a guest starts. False where `stop` said so before it had. Somebody must tick the engine.
pub(super) fn start_once(guest: &Guest, names: (&str, &str), stop: &dyn Fn() -> bool) -> Result<bool, Fault> {
    let clock = SystemClock::default();
    let mut start = guest.start(clock.monotonic());
    while !stop() {
        if let Some(result) = start.poll(clock.monotonic()) {
            return result.map(|()| true).map_err(|unstarted| refusal(names, unstarted));
        }
    }
    Ok(false)
}

/// Names the setting that is to blame, as far as that can be known: where the plugin did not say, its settings are the first guess.
fn refusal((name, plugin): (&str, &str), unstarted: Unstarted) -> Fault {
    let (setting, hint) = match &unstarted {
        Unstarted::Broke(CallFault::Host(fault)) => return fault.clone(),
        Unstarted::Refused(_) => ("settings", "correct the table [processor.settings]"),
        Unstarted::Late(_) => ("limits.init_deadline", "raise it, or make the plugin's start shorter"),
        Unstarted::Broke(CallFault::Limit { limit, .. }) => {
            (limiting(*limit), "raise it, or make the plugin need less")
        }
        Unstarted::Broke(_) => ("settings", "correct the table [processor.settings], or the plugin's start"),
    };
    let message = format!("processor {name}: {setting}: plugin {plugin} does not start: {unstarted}");
    Fault::fatal("plugin-init-refused", message).hint(hint)
}

/// The setting behind a limit.
fn limiting(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "limits.memory",
        Limit::Stack => "application.plugin_stack",
        Limit::Output => "limits.output_bytes",
        Limit::Emits | Limit::Writes => "limits.emits",
        Limit::Table => "plugin",
    }
}

/// The state of a task that has done nothing yet.
pub(super) struct Empty;

impl StateView for Empty {
    fn get_many(&mut self, _: u32, keys: &Column) -> Result<Column, Fault> {
        Ok(keys.iter().map(|_| None::<&[u8]>).collect())
    }

    fn scan(&mut self, _: u32, _: &ScanRange) -> Result<(Column, bool), Fault> {
        Ok((Column::default(), false))
    }
}
