//! Gathering a host's status: what workers see of their tasks, what openers are at, how far groups are behind.

use super::status::{
    FailureStatus, LagStatus, PositionStatus, ProcessorState, ProcessorStatus, RestoreStatus, Status, TaskState,
    TaskStatus, VersionStatus,
};
use super::{Control, Running};
use crate::config::LogKind;
use crate::model::{Clock, Fault, TaskId, ids};
use crate::runtime::PartitionLag;
use crate::runtime::assignment::{Assignment, Held};
use crate::runtime::worker::Handle;
use crate::task::{ProcessorSpec, Seen, State, Task};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long workers are waited for, all together, before what they saw last has to do.
const WORKERS: Duration = Duration::from_millis(300);
/// The same for the cluster.
const CLUSTER: Duration = Duration::from_secs(3);

/// What is known of a task that a worker has, and for how long the worker has been silent since.
struct Sight {
    seen: Seen,
    age: Option<Duration>,
}

/// By processor and partition.
type Sights = HashMap<(Arc<str>, i32), Sight>;

impl Control {
    /// What the host is doing. Asks the cluster for ends and committed offsets, and waits no longer than a few seconds: what does not
    /// answer is shown as it was last, or without numbers.
    pub fn status(&self) -> Result<Status, Fault> {
        let running = self.running()?;
        // what may take long comes first, so that no task is shown in an older state than the offsets that it has committed
        let lags = running.shared.lags.fresh(&running.shared.clock, CLUSTER);
        let (health, sights, identity) = (self.health(), running.sights(), self.identity().clone());
        let lag = |assignment: &Arc<Assignment>| {
            let found = lags.iter().find(|(name, _)| *name == assignment.spec().name);
            found.map_or(&[][..], |(_, lags)| lags)
        };
        let processors = running
            .assignments
            .iter()
            .map(|assignment| Looking { running, assignment, sights: &sights, lags: lag(assignment) }.processor());
        Ok(Status {
            application: identity.application,
            instance: identity.instance,
            pid: identity.pid,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms: self.inner.started_ms,
            now_ms: running.shared.clock.wall_ms(),
            log: log_name(&running.shared.application.log).to_owned(),
            live: health.live,
            ready: health.ready,
            reasons: health.reasons,
            processors: processors.collect(),
        })
    }
}

impl Running {
    /// Every task that a worker has.
    fn sights(&self) -> Sights {
        let clock = &self.shared.clock;
        let end = clock.monotonic() + WORKERS;
        let asked: Vec<_> = self.workers.iter().map(|worker| (worker, worker.ask(all_seen))).collect();
        let mut sights = Sights::new();
        for (worker, answer) in asked {
            let answer = answer.recv_timeout(end.saturating_sub(clock.monotonic())).ok();
            let seen = answer.map_or_else(
                || self.as_last_seen(worker),
                |seen| seen.into_iter().map(|seen| Sight { seen, age: None }).collect(),
            );
            sights.extend(seen.into_iter().map(|sight| ((sight.seen.processor.clone(), sight.seen.partition), sight)));
        }
        sights
    }

    fn as_last_seen(&self, worker: &Handle) -> Vec<Sight> {
        let (when, seen) = worker.last_sight();
        let age = Some(self.shared.clock.monotonic().saturating_sub(when));
        seen.iter().cloned().map(|seen| Sight { seen, age }).collect()
    }
}

fn all_seen(tasks: &[Task]) -> Vec<Seen> {
    tasks.iter().map(Task::seen).collect()
}

fn log_name(log: &LogKind) -> &'static str {
    match log {
        LogKind::Kafka(_) => "kafka",
        LogKind::Local { .. } => "local",
    }
}

/// One processor being looked at.
struct Looking<'a> {
    running: &'a Running,
    assignment: &'a Assignment,
    sights: &'a Sights,
    lags: &'a [PartitionLag],
}

impl Looking<'_> {
    fn processor(&self) -> ProcessorStatus {
        let spec = &**self.assignment.spec();
        let failures = spec.last_failures().into_iter();
        ProcessorStatus {
            name: spec.name.to_string(),
            state: state(spec),
            reason: self.stopped(),
            version: version(spec),
            group: ids::group(&spec.application, &spec.name),
            inputs: spec.inputs.iter().map(|input| (input.name.clone(), input.topic.to_string())).collect(),
            outputs: spec.outputs.iter().map(|(name, topic)| (name.clone(), topic.to_string())).collect(),
            dead_letter_topic: spec.dead_letters.to_string(),
            stores: spec.stores.iter().map(|store| store.name.clone()).collect(),
            partitions: spec.partitions,
            lag: self.lags.iter().map(|lag| lag.lag).sum::<Option<i64>>().filter(|_| !self.lags.is_empty()),
            lags: self.lags.iter().map(lag_status).collect(),
            tasks: self.assignment.held().into_iter().map(|(partition, held)| self.task(partition, &held)).collect(),
            failures: failures
                .map(|m| FailureStatus { time_ms: m.time_ms, code: m.code, message: m.message, place: m.place })
                .collect(),
        }
    }

    fn stopped(&self) -> Option<String> {
        let spec = self.assignment.spec();
        if !spec.is_stopped() {
            return None;
        }
        let subject = format!("processor {} is stopped", spec.name);
        self.running.shared.health.reason(&subject).or_else(|| Some("it was stopped".to_owned()))
    }

    fn task(&self, partition: i32, held: &Held) -> TaskStatus {
        let sight = self.sights.get(&(self.assignment.spec().name.clone(), partition));
        match (held, sight) {
            (Held::Working(_), Some(sight)) => self.working(sight),
            _ => self.opening(partition, held),
        }
    }

    fn working(&self, Sight { seen, age }: &Sight) -> TaskStatus {
        let (state, reason) = match &seen.state {
            State::Halted(fault) => (TaskState::Halted, Some(fault.to_string())),
            _ if self.assignment.spec().is_stopped() => (TaskState::Halted, self.stopped()),
            State::BackingOff(reason) => (TaskState::BackingOff, Some(reason.clone())),
            State::Running => (TaskState::Running, None),
        };
        let now = self.running.shared.clock.monotonic();
        let silent = age.map(|age| format!("its worker does not answer; this is from {} ms ago", age.as_millis()));
        TaskStatus {
            partition: seen.partition,
            state,
            reason: reason.or(silent),
            sequence: seen.sequence,
            inputs: seen.committed.iter().map(|at| self.position(seen.partition, at)).collect(),
            parked: seen.parked,
            overlay_bytes: seen.overlay_bytes,
            restore: None,
            call_ms: seen.calling_since.map(|since| millis(now.saturating_sub(since))),
            age_ms: age.map(millis),
        }
    }

    fn opening(&self, partition: i32, held: &Held) -> TaskStatus {
        let shared = &self.running.shared;
        let id = TaskId { processor: self.assignment.spec().name.clone(), partition };
        let restore = shared.restores.of(&id);
        let said = || shared.health.reason(&format!("task {id}"));
        let reason = match held {
            Held::InPart => Some("waits for the same partition of its other inputs".to_owned()),
            Held::Opening => said(),
            Held::Working(_) => Some("its worker has not taken it yet".to_owned()),
        };
        let ours = self.lags.iter().filter(|lag| lag.place.partition == partition);
        TaskStatus {
            partition,
            inputs: ours.map(as_the_group_has_it).collect(),
            state: if restore.is_some() { TaskState::Restoring } else { TaskState::Opening },
            reason,
            restore: restore.map(|progress| RestoreStatus {
                done: progress.done,
                target: progress.target,
                records_per_second: progress.records_per_second,
            }),
            ..TaskStatus::default()
        }
    }

    fn position(&self, partition: i32, (topic, committed): &(Arc<str>, Option<i64>)) -> PositionStatus {
        let known = self.lags.iter().find(|lag| lag.place.partition == partition && lag.place.topic == *topic);
        let end = known.and_then(|known| known.end);
        // the worker may have committed since
        let left = |lag: i64| match (end, committed) {
            (Some(end), Some(committed)) => lag.min((end - committed).max(0)),
            _ => lag,
        };
        let lag = known.and_then(|known| known.lag).map(left);
        PositionStatus { topic: topic.to_string(), committed: *committed, end, lag }
    }
}

fn state(spec: &ProcessorSpec) -> ProcessorState {
    match (spec.is_stopped(), spec.versions.is_paused()) {
        (true, _) => ProcessorState::Stopped,
        (false, true) => ProcessorState::Paused,
        (false, false) => ProcessorState::Running,
    }
}

fn version(spec: &ProcessorSpec) -> VersionStatus {
    let version = spec.versions.current();
    let manifest = &version.component.manifest;
    VersionStatus {
        sequence: version.sequence,
        digest: version.component.digest.clone(),
        plugin: manifest.name.clone(),
        version: manifest.version.clone(),
    }
}

fn as_the_group_has_it(known: &PartitionLag) -> PositionStatus {
    let PartitionLag { place, committed, end, lag, .. } = known;
    PositionStatus { topic: place.topic.to_string(), committed: *committed, end: *end, lag: *lag }
}

fn lag_status(lag: &PartitionLag) -> LagStatus {
    LagStatus {
        topic: lag.place.topic.to_string(),
        partition: lag.place.partition,
        committed: lag.committed,
        end: lag.end,
        lag: lag.lag,
        parked: lag.parked,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
