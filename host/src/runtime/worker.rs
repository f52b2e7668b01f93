//! One thread that runs tasks and owns one transactional producer: steps them in turn, commits at the interval, aborts and rewinds,
//! answers the group's barrier.

use super::Shared;
use super::assignment::Reopen;
use super::thread;
use crate::delivery::Mishap;
use crate::metrics::CommitMetrics;
use crate::model::log::{Refusal, Source, TopicInfo};
use crate::model::{Clock, Failure, Fault, TaskId, Verdict, ids};
use crate::task::{self, CommitError, Outbox, Parts, Routes, State, Step, Task};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

mod outside;
#[cfg(test)]
pub(super) mod tests;

pub(super) use outside::Sight;

use outside::Look;

/// Fenced so often within the transaction time-out, another process uses this identity.
const FENCED_AT_MOST: usize = 3;
/// Between two attempts to get a producer from a cluster that does not answer.
const RETRY_PRODUCER: Duration = Duration::from_millis(500);
/// A record that fails again and again for so long keeps its partition from being worked on: no short hiccup any more.
pub(super) const FOR_GOOD: Duration = Duration::from_secs(30);
/// The longest a worker sleeps without looking around.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// What other threads see of a worker.
#[derive(Clone)]
pub(super) struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    commands: Sender<Command>,
    thread: OnceLock<Thread>,
    /// Milliseconds of the monotonic clock at the last turn.
    beat: AtomicU64,
    /// Tasks that are not idle, or `u64::MAX` before the first turn.
    busy: AtomicU64,
    /// What the worker saw of its tasks when it last looked.
    sight: Mutex<Sight>,
}

/// Sources of tasks that a worker gave up, to be used by whoever opens them next.
pub(super) type Returned = Vec<Box<dyn Source>>;

enum Command {
    Add(Box<Opened>),
    /// Commit or abort, then let go of these tasks.
    Release(Vec<TaskId>, Sender<Returned>),
    /// Abort, then let go of these tasks.
    Drop(Vec<TaskId>, Sender<Returned>),
    Look(Look),
    Stop,
}

/// A task ready to run, with the topics it writes to: outputs, changelogs, dead letters.
pub(super) struct Opened {
    pub parts: Parts,
    pub outputs: Vec<TopicInfo>,
    pub changelogs: Vec<TopicInfo>,
    pub dead_letters: TopicInfo,
}

struct Worker {
    shared: Arc<Shared>,
    index: usize,
    handle: Handle,
    commands: Receiver<Command>,
    reopen: Arc<dyn Reopen>,
    outbox: Outbox,
    /// False while the producer is of no use and a new one could not be had.
    sound: bool,
    tasks: Vec<Task>,
    /// When the next commit is due, on the monotonic clock: start to start, so that slow commits do not stretch the interval.
    due: Duration,
    fenced: Vec<Duration>,
    stopping: bool,
    /// Set by the first fault, cleared by the next commit: one line per event, however often it is tried again.
    troubled: bool,
    /// When stores are looked at next for flushes that are due.
    maintenance: Duration,
    /// The version of the topics' limits that the outbox has.
    limits_seen: u64,
    metrics: CommitMetrics,
    /// Since when something is uncommitted, on the monotonic clock.
    open_since: Option<Duration>,
    /// Tasks whose health was said to be impaired.
    unwell: Vec<TaskId>,
}

impl Handle {
    fn new(commands: Sender<Command>) -> Handle {
        let (thread, beat, busy) = (OnceLock::new(), AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Handle { inner: Arc::new(Inner { commands, thread, beat, busy, sight: Mutex::default() }) }
    }

    /// Adds a task.
    pub(super) fn add(&self, opened: Opened) {
        self.send(Command::Add(Box::new(opened)));
    }

    /// Asks for tasks to be committed (or aborted) and let go; what comes back says that it is done.
    pub(super) fn release(&self, tasks: Vec<TaskId>) -> Receiver<Returned> {
        let (done, answer) = channel();
        self.send(Command::Release(tasks, done));
        answer
    }

    /// Asks for tasks to be aborted and let go.
    pub(super) fn drop_tasks(&self, tasks: Vec<TaskId>) -> Receiver<Returned> {
        let (done, answer) = channel();
        self.send(Command::Drop(tasks, done));
        answer
    }

    /// Asks the worker to commit what it has and end.
    pub(super) fn stop(&self) {
        self.send(Command::Stop);
    }

    /// When the worker last turned, on the monotonic clock.
    pub(super) fn last_turn(&self) -> Duration {
        Duration::from_millis(self.inner.beat.load(Ordering::Relaxed))
    }

    /// Whether every task is idle and nothing is uncommitted.
    pub(super) fn is_idle(&self) -> bool {
        self.inner.busy.load(Ordering::SeqCst) == 0
    }

    fn send(&self, command: Command) {
        // counted as busy from now on, so that nobody mistakes a worker with unread commands for an idle one
        self.inner.busy.store(u64::MAX, Ordering::SeqCst);
        // a worker that has ended has let go of everything already
        let _ = self.inner.commands.send(command);
        self.wake();
    }

    /// Lets a worker that sleeps look around.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.inner.thread.get() {
            thread.unpark();
        }
    }

    pub(super) fn stamp(&self, now: Duration) {
        self.inner.beat.store(now.as_millis() as u64, Ordering::Relaxed);
    }
}

/// Starts a worker. Its producer is made first, which fences what an earlier life of this instance left open; this waits for the
/// cluster as long as that takes, and `ready` is told once it is done.
pub(super) fn start(
    shared: Arc<Shared>,
    index: usize,
    reopen: Arc<dyn Reopen>,
) -> Result<(Handle, JoinHandle<()>), Fault> {
    let (commands, receiver) = channel();
    let handle = Handle::new(commands);
    handle.stamp(shared.clock.monotonic());
    let outbox = Outbox::new(producer(&shared, index)?);
    let mut worker = Worker {
        shared,
        index,
        handle: handle.clone(),
        commands: receiver,
        reopen,
        outbox,
        sound: true,
        tasks: Vec::new(),
        due: Duration::ZERO,
        fenced: Vec::new(),
        stopping: false,
        troubled: false,
        maintenance: Duration::ZERO,
        limits_seen: 0,
        metrics: CommitMetrics::new(index),
        open_since: None,
        unwell: Vec::new(),
    };
    let join = thread::start(format!("worker-{index}"), &format!("worker {index}"), move || worker.run())?;
    // set before the worker needs it: a wake-up before that is not missed, since a fresh worker looks before it sleeps
    let _ = handle.inner.thread.set(join.thread().clone());
    Ok((handle, join))
}

fn producer(shared: &Shared, index: usize) -> Result<Box<dyn crate::model::log::Producer>, Fault> {
    let application = &shared.application;
    shared.log.producer(&ids::transactional_id(&application.id, &shared.instance, index), application.delivery)
}

impl Worker {
    fn run(&mut self) {
        while !self.stopping {
            self.turns();
            self.serve();
            if !self.sound {
                self.renew();
                continue;
            }
            match self.turn() {
                Ok(Some(sleep)) => std::thread::park_timeout(sleep),
                Ok(None) => {}
                Err(fault) => self.recover(fault),
            }
        }
    }

    /// One turn over all tasks, and the commit when it is due. Returns how long there is nothing to do.
    fn turn(&mut self) -> Result<Option<Duration>, Fault> {
        let began = self.shared.clock.monotonic();
        let mut wake = began + LOOK_AROUND;
        let mut busy = false;
        for index in 0..self.tasks.len() {
            match self.tasks[index].step(&mut self.outbox, &self.shared.clock)? {
                Step::Worked | Step::Yielded => busy = true,
                Step::Idle => {}
                Step::Until(due) => wake = wake.min(due),
            }
            if self.is_full() {
                break;
            }
        }
        self.watch();
        let open = self.tasks.iter().any(Task::has_progress);
        self.show_open(open, began);
        let now = self.shared.clock.monotonic();
        if open && (now >= self.due || self.is_full()) {
            self.commit()?;
            return Ok(None);
        }
        self.maintain(now);
        if !open && !busy {
            // a turn without trouble and with nothing to commit is as good as a commit
            self.well_again();
        }
        self.publish(open || busy);
        let until = if open { wake.min(self.due) } else { wake };
        Ok((!busy).then(|| until.saturating_sub(now)))
    }

    /// Once a second: flushes that are due.
    fn maintain(&mut self, now: Duration) {
        if now < self.maintenance {
            return;
        }
        self.maintenance = now + Duration::from_secs(1);
        if let Some(topics) = self.shared.limits.newer(&mut self.limits_seen) {
            self.outbox.renew_limits(&topics);
        }
        self.tasks.iter_mut().for_each(|task| task.maintain(now));
        self.leave_sight();
    }

    /// Commits every task, or aborts and rewinds them all.
    fn commit(&mut self) -> Result<(), Fault> {
        let start = self.shared.clock.monotonic();
        // what came after the commit was due is not late before it came
        let due = self.open_since.map_or(start, |since| self.due.max(since));
        self.metrics.late(start.saturating_sub(due));
        self.due = start + self.shared.application.commit_interval;
        let result = task::commit(&mut self.outbox, &mut self.tasks, (&self.metrics, &self.shared.clock));
        let outcome = match result {
            Ok(()) => {
                self.settled();
                self.well_again();
                Ok(())
            }
            Err(CommitError::Failed(fault)) => Err(fault),
            Err(CommitError::Unknown(fault)) => self.resolve(fault),
            Err(CommitError::Refused(refusals)) => {
                self.refuse(refusals);
                self.abort("output-refused");
                Ok(())
            }
            Err(CommitError::Lost(task)) => {
                Err(Fault::transient("partition-lost", format!("task {task}: its partition was lost")))
            }
        };
        self.watch();
        outcome
    }

    /// One failure per input record, however many of its outputs were refused.
    fn refuse(&mut self, refusals: Vec<Refusal>) {
        let mut seen = HashSet::new();
        for Refusal { origin, code, message } in refusals {
            let task = self.tasks.iter_mut().find(|task| task.slot() == origin.slot);
            if let (Some(task), true) = (task, seen.insert(origin)) {
                task.refuse(origin.input, origin.offset, Failure::new(code, message));
            }
        }
    }

    /// The commit was asked for and its answer is lost. A new producer completes or aborts the old transaction; then the group's
    /// committed offsets say which it was.
    fn resolve(&mut self, fault: Fault) -> Result<(), Fault> {
        self.tell(&fault, "the outcome of a commit is unknown; asking the cluster");
        self.count_fencing();
        if !self.new_producer() {
            // with no cluster to ask, nothing in memory can be believed: every task is opened anew from what is committed
            self.close_all();
            return Ok(());
        }
        let (mut unknown, mut answers) = (Vec::new(), true);
        for task in self.tasks.iter_mut().filter(|task| task.has_progress()) {
            self.handle.stamp(self.shared.clock.monotonic());
            // one question without an answer is enough: the others would only wait as long
            let committed = answers.then(|| task.group.committed(&task.partitions()).ok()).flatten();
            answers = committed.is_some();
            match committed.and_then(|committed| task.resolve(&committed)) {
                Some(true) => task.settle(&self.outbox),
                Some(false) => task.rewind(),
                None => unknown.push(task.id.clone()),
            }
        }
        self.close(&unknown).into_iter().for_each(|(id, sources)| self.reopen.reopen(id, sources, false));
        self.rewind();
        Ok(())
    }

    /// What a turn or a commit could not do. Only an abort leaves everything consistent; what follows depends on the verdict.
    fn recover(&mut self, fault: Fault) {
        self.turns();
        match fault.verdict {
            Verdict::Fatal | Verdict::Corrupt => {
                self.abort(fault.code);
                self.shared.ending.fail(fault);
                std::thread::park_timeout(LOOK_AROUND);
            }
            Verdict::Fenced => {
                self.tell(&fault, "the producer is lost; making a new one and going back to the last commit");
                self.rewind();
                self.metrics.aborted(fault.code);
                self.count_fencing();
                self.sound = false;
            }
            Verdict::Transient | Verdict::Record => {
                self.tell(&fault, "going back to the last commit");
                self.abort(fault.code);
                std::thread::park_timeout(LOOK_AROUND);
            }
        }
    }

    /// Says that the worker goes on. What waits for a cluster that is away ends by its own time-outs: several of them in a row are no
    /// silence of a worker that is stuck.
    fn turns(&self) {
        self.handle.stamp(self.shared.clock.monotonic());
    }

    /// One line and a reason in health per event.
    fn tell(&mut self, fault: &Fault, what: &str) {
        if !self.troubled {
            self.troubled = true;
            tracing::warn!(worker = self.index, %fault, "{what}");
            self.note(fault);
            self.shared.health.impair(self.subject(), fault.to_string());
        }
    }

    /// Keeps the failure with every processor whose work it took back.
    fn note(&self, fault: &Fault) {
        let mut noted: Vec<&str> = Vec::new();
        for task in self.tasks.iter().filter(|task| task.has_progress()) {
            if !noted.contains(&&*task.spec.name) {
                noted.push(&task.spec.name);
                task.spec.note(self.mishap(fault));
            }
        }
    }

    fn mishap(&self, fault: &Fault) -> Mishap {
        let (code, message) = (fault.code.to_owned(), fault.to_string());
        Mishap { time_ms: self.shared.clock.wall_ms(), code, message, place: None }
    }

    fn well_again(&mut self) {
        if self.troubled {
            self.troubled = false;
            tracing::info!(worker = self.index, "committing again");
            self.shared.health.clear(&self.subject());
        }
    }

    fn subject(&self) -> String {
        format!("worker {}", self.index)
    }

    fn abort(&mut self, why: &'static str) {
        self.rewind();
        self.metrics.aborted(why);
        if let Err(fault) = self.outbox.abort() {
            tracing::debug!(worker = self.index, %fault, "the abort failed; making a new producer");
            self.sound = false;
        }
    }

    fn rewind(&mut self) {
        self.settled();
        self.tasks.iter_mut().for_each(Task::rewind);
    }

    /// Tries to get a new producer with the same identity.
    fn renew(&mut self) {
        if !self.new_producer() {
            std::thread::park_timeout(RETRY_PRODUCER);
        }
    }

    fn new_producer(&mut self) -> bool {
        self.turns();
        let result = producer(&self.shared, self.index).and_then(|producer| self.outbox.replace(producer));
        self.sound = result.is_ok();
        self.metrics.producer_rebuilt();
        match result {
            Ok(()) => {}
            Err(fault) if fault.verdict == Verdict::Fatal => self.shared.ending.fail(fault),
            Err(fault) => self.tell(&fault, "no producer can be had just now"),
        }
        self.sound
    }

    /// Ends the host at the fourth fencing within the transaction time-out: two hosts that use one identity would fence each other
    /// for ever.
    fn count_fencing(&mut self) {
        self.metrics.producer_fenced();
        let now = self.shared.clock.monotonic();
        let window = self.shared.application.transaction_timeout();
        self.fenced.retain(|&then| now.saturating_sub(then) < window);
        self.fenced.push(now);
        if self.fenced.len() > FENCED_AT_MOST {
            let message = format!("worker {}: fenced {} times within {window:?}", self.index, self.fenced.len());
            let hint =
                "another process uses the identity kept in this state folder: give each its own with --state-dir";
            self.shared.ending.fail(Fault::fatal("identity-in-use", message).hint(hint));
        }
    }

    fn serve(&mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Add(opened)) => self.add(*opened),
                Ok(Command::Release(ids, done)) => {
                    self.release(&ids, &done);
                }
                Ok(Command::Drop(ids, done)) => {
                    self.abort("partition-lost");
                    let _ = done.send(self.let_go(&ids));
                }
                Ok(Command::Look(look)) => look(&self.tasks),
                Ok(Command::Stop) => return self.stop(),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }

    fn add(&mut self, opened: Opened) {
        let id = opened.parts.id.clone();
        // a producer resolves topics between transactions only
        self.commit_or_abort();
        let slot = self.free_slot();
        match self.routes(&opened) {
            Ok(routes) => {
                let mut task = Task::new(opened.parts, slot, routes);
                let handle = self.handle.clone();
                task.on_ready(&(Arc::new(move || handle.wake()) as Arc<dyn Fn() + Send + Sync>));
                self.shared.health.clear(&format!("task {id}"));
                self.shared.hosts.opened(&id);
                self.tasks.push(task);
            }
            Err(fault) if fault.verdict == Verdict::Transient || fault.verdict == Verdict::Fenced => {
                tracing::debug!(task = %id, %fault, "its topics cannot be resolved just now; opening it again");
                // the stores are closed before somebody else opens them
                self.reopen.reopen(id, opened.parts.close(), false);
            }
            Err(fault) => self.shared.ending.fail(fault.during(format!("task {id}: resolving its topics"))),
        }
    }

    fn free_slot(&self) -> u16 {
        lowest_free(&self.tasks.iter().map(Task::slot).collect::<Vec<_>>())
    }

    fn routes(&mut self, opened: &Opened) -> Result<Routes, Fault> {
        let mut resolve =
            |infos: &[TopicInfo]| infos.iter().map(|info| self.outbox.resolve(info)).collect::<Result<Vec<_>, _>>();
        let (outputs, changelogs) = (resolve(&opened.outputs)?, resolve(&opened.changelogs)?);
        Ok(Routes { outputs, changelogs, dead_letters: self.outbox.resolve(&opened.dead_letters)? })
    }

    /// The barrier at revocation: what was accepted is committed, or aborted where that fails, before the tasks are let go.
    fn release(&mut self, ids: &[TaskId], done: &Sender<Returned>) {
        self.tasks.iter_mut().filter(|task| ids.contains(&task.id)).for_each(Task::interrupt);
        crate::model::failpoint::hit("revoked-in-batch");
        self.commit_or_abort();
        let _ = done.send(self.let_go(ids));
    }

    fn commit_or_abort(&mut self) {
        if self.sound
            && self.tasks.iter().any(Task::has_progress)
            && let Err(fault) = self.commit()
        {
            self.recover(fault);
        }
    }

    fn let_go(&mut self, ids: &[TaskId]) -> Returned {
        self.close(ids).into_iter().flat_map(|(_, sources)| sources).collect()
    }

    fn close(&mut self, ids: &[TaskId]) -> Vec<(TaskId, Returned)> {
        let (gone, kept): (Vec<Task>, Vec<Task>) =
            std::mem::take(&mut self.tasks).into_iter().partition(|t| ids.contains(&t.id));
        self.tasks = kept;
        self.unwell.retain(|id| !ids.contains(id));
        gone.iter().for_each(|task| self.shared.hosts.closed(&task.id));
        gone.into_iter().map(|task| (task.id.clone(), task.close())).collect()
    }

    fn close_all(&mut self) {
        let ids: Vec<TaskId> = self.tasks.iter().map(|task| task.id.clone()).collect();
        self.close(&ids).into_iter().for_each(|(id, sources)| self.reopen.reopen(id, sources, false));
    }

    /// Looks at the tasks' states after their turns: tells health, hands stores that failed to be opened anew, ends the host where
    /// only a person can help.
    fn watch(&mut self) {
        let mut broken = Vec::new();
        for task in &self.tasks {
            let known = self.unwell.contains(&task.id);
            match task.state() {
                State::BackingOff(reason) if self.is_for_good(task) => {
                    if !known {
                        self.shared.health.impair(format!("task {}", task.id), format!("backing off: {reason}"));
                        self.unwell.push(task.id.clone());
                    }
                }
                State::Running | State::BackingOff(_) if known => {
                    self.shared.health.clear(&format!("task {}", task.id));
                    self.unwell.retain(|id| *id != task.id);
                }
                State::Running | State::BackingOff(_) => {}
                State::Halted(fault) => broken.extend(self.halted(task, fault)),
            }
        }
        if let Some((_, fault)) = broken.first() {
            self.abort(fault.code);
        }
        for (id, fault) in broken {
            let wipe = fault.verdict == Verdict::Corrupt;
            self.close(&[id]).into_iter().for_each(|(id, sources)| self.reopen.reopen(id, sources, wipe));
        }
    }

    /// Whether the record that a task waits for has failed for so long that its partition is not worked on.
    fn is_for_good(&self, task: &Task) -> bool {
        // of a processor that is paused nothing is worked on, as somebody wanted it
        if task.spec.versions.is_paused() || task.spec.is_stopped() {
            return false;
        }
        let lasts = |since: i64| self.shared.clock.wall_ms().saturating_sub(since) >= FOR_GOOD.as_millis() as i64;
        task.retried_since().is_some_and(lasts)
    }

    /// A task that stands still: what is to be opened anew, or else the reason is told to whoever can act on it.
    fn halted(&self, task: &Task, fault: &Fault) -> Option<(TaskId, Fault)> {
        match fault.verdict {
            Verdict::Corrupt | Verdict::Transient => {
                tracing::warn!(%fault, "opening the task anew");
                task.spec.note(self.mishap(fault));
                return Some((task.id.clone(), fault.clone()));
            }
            _ if task::stops_processor(fault) => {
                if task.spec.stop() {
                    tracing::error!(code = fault.code, "{fault}; the other processors go on");
                    task.spec.note(self.mishap(fault));
                    self.shared.health.impair(format!("processor {} is stopped", task.spec.name), fault.to_string());
                    self.shared.ending.stopped(fault.clone());
                }
            }
            _ => {
                self.shared.health.impair(format!("task {}", task.id), fault.to_string());
                if !self.shared.ending.is_stopping() {
                    task.spec.note(self.mishap(fault));
                }
                self.shared.ending.fail(fault.clone());
            }
        }
        None
    }

    fn is_full(&self) -> bool {
        let overlays: u64 = self.tasks.iter().map(Task::overlay_bytes).sum();
        self.outbox.bytes() + overlays >= self.shared.application.commit_bytes
    }

    /// Takes note of whether anything is uncommitted, at the latest since the turn that began at `began`.
    fn show_open(&mut self, open: bool, began: Duration) {
        match (open, self.open_since) {
            (true, None) => {
                self.open_since = Some(began);
                self.metrics.open(self.shared.clock.wall_ms());
            }
            (false, Some(_)) => self.settled(),
            _ => {}
        }
    }

    /// Nothing is uncommitted any more.
    fn settled(&mut self) {
        self.open_since = None;
        self.metrics.settled();
    }

    fn publish(&self, busy: bool) {
        let idle = !busy && self.tasks.iter().all(Task::is_idle);
        self.handle.inner.busy.store(u64::from(!idle), Ordering::SeqCst);
    }

    fn stop(&mut self) {
        self.commit_or_abort();
        if let Err(fault) = self.outbox.abort() {
            tracing::debug!(worker = self.index, %fault, "nothing to abort at the end");
        }
        std::mem::take(&mut self.tasks).into_iter().for_each(|task| drop(task.close()));
        self.stopping = true;
    }
}

/// The lowest slot that no task has.
fn lowest_free(taken: &[u16]) -> u16 {
    (0..u16::MAX).find(|slot| !taken.contains(slot)).unwrap_or(u16::MAX)
}
