//! The main thread of a running host: starts everything in order, listens for signals, watches over workers, and ends it all in the
//! reverse order.

use super::assignment::{Assignment, Reopen};
use super::control::{Control, Identity, Running};
use super::idle::IdleCheck;
use super::instance::StateFolder;
use super::levels::Levels;
use super::opener::{Openers, Tools};
use super::rehearsal::rehearse;
use super::rollout::{Ledger, Rollout, Shelf, Start, Starting};
use super::signals::{Grace, Signals};
use super::thread;
use super::worker::{self, Handle, Returned};
use super::{Ending, Health, Lags, Plan, Plugins, Restores, Shared, ShowRestore, open_log};
use super::{hosts, lag, limits, membership};
use crate::components::Store;
use crate::config::Application;
use crate::metrics::HostMetrics;
use crate::model::{Clock, Fault, SystemClock, TaskId, Verdict};
use crate::plugin;
use crate::state;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How `run` is asked to run.
#[derive(Default)]
pub struct RunOptions {
    /// Ends once every input of every processor's group is worked off.
    pub until_idle: bool,
    /// Shown how far restores are; for a person at a terminal.
    pub show_restore: Option<ShowRestore>,
    /// Opens the way in from outside, before the log is reached. What it gives is dropped when the host has ended.
    pub open_admin: Option<OpenAdmin>,
}

/// Opens a way in for a host.
pub type OpenAdmin = Box<dyn FnOnce(Control) -> Result<Box<dyn Send>, Fault>>;

/// How a host ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to stop. What it had done is committed.
    Told,
    /// Every input was worked off.
    Idle,
}

/// The supervisor's own pace.
const PACE: Duration = Duration::from_millis(100);
/// A gap in the supervisor's own turns that only a freeze of the process explains.
const FROZEN: Duration = Duration::from_secs(2);
/// Between two attempts at a start that the cluster could not serve.
const RETRY_START: Duration = Duration::from_secs(1);

/// Runs an application until it is told to stop, cannot go on, or (if asked) has nothing left to do.
///
/// Start-up mistakes are returned before anything is changed; a cluster that is away is waited for, with health saying so.
pub fn run(application: Application, options: RunOptions) -> Result<End, Fault> {
    let clock = SystemClock::default();
    let (health, ending) = (Arc::new(Health::default()), Arc::new(Ending::default()));
    health.impair(START, "it is starting");
    // first of all: a signal while plugins are compiled counts as well
    let _signals = Signals::listen(ending.clone(), application.shutdown_grace)?;
    let plugins = Plugins::load(&application, Some(&application.state_dir.join("compiled")))?;
    let folder = StateFolder::open(&application.state_dir, &application.id, &clock)?;
    plugins.keep();
    let identity =
        Identity { application: application.id.clone(), instance: folder.instance.clone(), pid: std::process::id() };
    HostMetrics::name(&identity.application, &identity.instance);
    let control = Control::new(identity, health.clone(), clock.wall_ms());
    // who is asked from now on has no records to work on yet
    health.impair(START, "its log and topics are not known yet");
    let _admin = options.open_admin.map(|open| open(control.clone())).transpose()?;
    let Some(log) = Waiting { health: &health, ending: &ending, clock }.patiently(|| open_log(&application))? else {
        return Ok(End::Told);
    };
    let instance = folder.instance;
    let restores = Restores::new(options.show_restore);
    let limits = limits::Limits::default();
    let (lags, hosts) = (Lags::default(), control.hosts());
    let shared = Arc::new(Shared { application, log, clock, health, restores, limits, lags, hosts, instance, ending });
    let mut host = Host::new(shared, control);
    match host.start(&plugins) {
        Ok(true) => {
            host.metrics.up(true);
            host.supervise(options.until_idle)
        }
        Ok(false) => host.shut_down().map(|()| End::Told),
        Err(fault) => {
            // what was started already goes the same way as ever; the reason is the first one
            host.shared.ending.stop();
            let _ = host.shut_down();
            Err(fault)
        }
    }
}

/// The subject under which health tells of the start.
const START: &str = "start";

/// Whoever waits for a cluster at the start.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    health: &'a Health,
    ending: &'a Ending,
    clock: SystemClock,
}

impl Waiting<'_> {
    /// Repeats what a cluster could not serve just now, until it succeeds or the host is told to stop.
    fn patiently<T>(self, mut attempt: impl FnMut() -> Result<T, Fault>) -> Result<Option<T>, Fault> {
        while !self.ending.is_stopping() {
            match attempt() {
                Ok(value) => return Ok(Some(value)),
                Err(fault) if fault.verdict == Verdict::Transient => {
                    self.health.impair(START, fault.to_string());
                    self.health.say_changes(self.clock.monotonic());
                    std::thread::park_timeout(RETRY_START);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }
}

/// Advances the engine's epoch, so that guests yield and deadlines are seen.
fn ticker(shared: Arc<Shared>, engine: plugin::Engine) -> Result<JoinHandle<()>, Fault> {
    let tick = move || {
        while !shared.ending.is_done() {
            std::thread::park_timeout(plugin::TICK);
            engine.tick();
        }
    };
    thread::start("ticker", "the ticker", tick)
}

/// Everything that was started.
struct Host {
    shared: Arc<Shared>,
    control: Control,
    registry: Arc<Registry>,
    workers: Vec<Handle>,
    worker_threads: Vec<JoinHandle<()>>,
    groups: Vec<JoinHandle<()>>,
    assignments: Vec<Arc<Assignment>>,
    openers: Option<(Openers, Vec<JoinHandle<()>>)>,
    /// The ticker and the thread that asks for limits: they end when the workers are gone.
    helpers: Vec<JoinHandle<()>>,
    metrics: HostMetrics,
    levels: Levels,
}

impl Host {
    fn new(shared: Arc<Shared>, control: Control) -> Host {
        Host {
            shared,
            control,
            registry: Arc::default(),
            workers: Vec::new(),
            worker_threads: Vec::new(),
            groups: Vec::new(),
            assignments: Vec::new(),
            openers: None,
            helpers: Vec::new(),
            metrics: HostMetrics::default(),
            levels: Levels::default(),
        }
    }

    /// Starts everything, in order. False where the host was told to stop before it was up. In any case, what was started is
    /// ended by [`Host::shut_down`].
    fn start(&mut self, plugins: &Plugins) -> Result<bool, Fault> {
        let shared = self.shared.clone();
        let waiting = Waiting { health: &shared.health, ending: &shared.ending, clock: shared.clock };
        let store = Store::open(&shared.application.components)?;
        let shelf = Arc::new(Shelf::new(plugins.engine().clone(), store));
        let Some((plan, versions)) = self.plan(plugins, &shelf, waiting)? else { return Ok(false) };
        for index in 0..shared.application.workers {
            let start = || worker::start(shared.clone(), index, self.registry.clone() as Arc<dyn Reopen>);
            let Some((handle, thread)) = waiting.patiently(start)? else { return Ok(false) };
            self.workers.push(handle);
            self.worker_threads.push(thread);
        }
        self.assign(plan, (shelf, versions))?;
        for assignment in self.assignments.clone() {
            let join = || membership::start(&shared, &assignment);
            let Some(group) = waiting.patiently(join)? else { return Ok(false) };
            self.groups.push(group);
        }
        shared.health.clear(START);
        Ok(true)
    }

    /// What is refused is told before any topic is made. `None` where the host was told to stop.
    fn plan(&self, files: &Plugins, shelf: &Shelf, waiting: Waiting<'_>) -> Result<Option<(Plan, Start)>, Fault> {
        let (shared, application) = (&self.shared, &self.shared.application);
        let (log, ledger) = (&*shared.log, self.ledger());
        let (clock, instance) = (&shared.clock, &*shared.instance);
        let starting = Starting { application, ledger: &ledger, shelf, clock, instance };
        loop {
            let Some(mut start) = waiting.patiently(|| Ok(starting.look(files)?))? else { return Ok(None) };
            let plugins = files.with(start.components());
            let look = || {
                let plan = Plan::look(application, &plugins, log)?;
                plan.belongs(application, log).map(|()| plan)
            };
            let Some(looked) = waiting.patiently(look)? else { return Ok(None) };
            if !rehearse(&looked, &|| shared.ending.is_stopping())? {
                return Ok(None);
            }
            let Some(plan) = waiting.patiently(|| looked.make(application, &plugins, log))? else { return Ok(None) };
            match waiting.patiently(|| starting.settle(&mut start, &plan.processors))? {
                None => return Ok(None),
                Some(true) => return Ok(Some((plan, start))),
                // another host was quicker with a version: everything is looked at again
                Some(false) => {}
            }
        }
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(self.shared.log.clone(), &self.shared.application.id)
    }

    /// Everything that tasks need, and one assignment per processor.
    fn assign(&mut self, plan: Plan, (shelf, start): (Arc<Shelf>, Start)) -> Result<(), Fault> {
        let parts = (self.ledger(), shelf);
        let rollout = Rollout::new(self.shared.clone(), parts, &plan, self.workers.clone(), start);
        self.helpers.append(&mut rollout.run()?);
        let (shared, Plan { engine, processors, topics }) = (&self.shared, plan);
        self.helpers.push(ticker(shared.clone(), engine)?);
        self.helpers.push(limits::start(shared.clone(), topics.clone())?);
        let stores = state::Shared::new(shared.application.cache_bytes, shared.application.write_buffer_bytes);
        let tools = Arc::new(Tools {
            shared: shared.clone(),
            topics,
            stores,
            trials: Arc::default(),
            rollout: rollout.clone(),
        });
        let (openers, threads) = Openers::start(&tools, shared.application.workers.max(2))?;
        self.openers = Some((openers.clone(), threads));
        self.levels.of_stores(tools);
        for (shift, spec) in processors.into_iter().enumerate() {
            let version = spec.versions.current();
            spec.metrics.plugin.version(version.plugin().digest, version.plugin().version);
            let workers = (self.workers.clone(), shift);
            self.assignments.push(Assignment::new(shared.clone(), spec, workers, openers.clone()));
        }
        self.registry.fill(&self.assignments);
        self.helpers.push(lag::start(shared.clone(), self.assignments.clone())?);
        self.helpers.push(hosts::start(shared.clone())?);
        let running = Running::new(shared.clone(), rollout, self.workers.clone(), self.assignments.clone());
        self.control.started(running);
        Ok(())
    }

    fn supervise(mut self, until_idle: bool) -> Result<End, Fault> {
        let mut end = End::Told;
        let mut idle = until_idle.then(IdleCheck::default);
        let mut looked = self.shared.clock.monotonic();
        while !self.shared.ending.is_stopping() {
            std::thread::park_timeout(PACE);
            let now = self.shared.clock.monotonic();
            // a process that was frozen as a whole has silent workers too: they get their turn first
            if now.saturating_sub(looked) < FROZEN {
                self.watch(now);
            }
            looked = now;
            self.shared.health.say_changes(now);
            self.shared.restores.show();
            self.levels.show(&self.shared, &self.assignments);
            tell_letters(&self.assignments, now, false);
            if self.assignments.iter().all(|assignment| assignment.spec().is_stopped()) {
                // nobody is left to go on
                self.shared.ending.stop();
            }
            if idle.as_mut().is_some_and(|check| check.look(&self.shared, &self.assignments)) {
                tracing::info!("every input is worked off");
                end = End::Idle;
                self.shared.ending.stop();
            }
        }
        self.shut_down().map(|()| end)
    }

    /// A worker that has not turned for half of `stuck_after` is told of, so that whoever watches over the host sees it; after all of it
    /// nothing in the process can be trusted to finish, so it leaves its groups by ending.
    fn watch(&self, now: Duration) {
        if self.worker_threads.iter().any(JoinHandle::is_finished) {
            self.shared.ending.exit_now(Fault::fatal("thread-panicked", "a worker ended by itself; see the log"));
        }
        let limit = self.shared.application.stuck_after;
        let silent = self.workers.iter().map(|worker| now.saturating_sub(worker.last_turn())).enumerate();
        let Some((index, longest)) = silent.max_by_key(|(_, silent)| *silent) else { return };
        let reason = || format!("worker {index} has been silent for {} s", longest.as_secs());
        self.shared.health.stuck((longest > limit / 2).then(reason));
        if longest > limit {
            self.shared.health.say_changes(self.shared.clock.monotonic());
            self.shared.ending.exit_now(Fault::fatal("worker-stuck", reason()));
        }
    }

    /// Groups first: leaving gives every partition back through the barrier, which commits. Then workers, then the ticker. All
    /// within the grace.
    fn shut_down(self) -> Result<(), Fault> {
        tracing::info!("stopping");
        self.metrics.up(false);
        self.shared.health.impair("host", "it is being stopped");
        let Host { shared, workers, worker_threads, groups, assignments, openers, helpers, .. } = self;
        let _grace = Grace::start(&shared)?;
        let mut joined = join_all(groups);
        workers.iter().for_each(Handle::stop);
        joined &= join_all(worker_threads);
        tell_letters(&assignments, shared.clock.monotonic(), true);
        if let Some((openers, threads)) = openers {
            openers.stop(threads.len());
            joined &= join_all(threads);
        }
        shared.ending.done();
        joined &= join_all(helpers);
        shared.ending.reason()?;
        if joined { Ok(()) } else { Err(Fault::fatal("thread-panicked", "a thread of the host panicked; see the log")) }
    }
}

fn tell_letters(assignments: &[Arc<Assignment>], now: Duration, last: bool) {
    assignments.iter().for_each(|assignment| assignment.spec().tell_letters(now, last));
}

fn join_all(threads: Vec<JoinHandle<()>>) -> bool {
    threads.into_iter().map(JoinHandle::join).fold(true, |whole, joined| whole & joined.is_ok())
}

/// Dispatches reopenings to the processor that they belong to.
#[derive(Default)]
struct Registry {
    assignments: OnceLock<HashMap<Arc<str>, Arc<Assignment>>>,
}

impl Registry {
    fn fill(&self, assignments: &[Arc<Assignment>]) {
        let by_name =
            assignments.iter().map(|assignment| (assignment.spec().name.clone(), assignment.clone())).collect();
        let _ = self.assignments.set(by_name);
    }
}

impl Reopen for Registry {
    fn reopen(&self, task: TaskId, sources: Returned, wipe: bool) {
        if let Some(assignment) = self.assignments.get().and_then(|all| all.get(&task.processor)) {
            assignment.reopen(task, sources, wipe);
        }
    }
}
