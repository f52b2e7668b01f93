//! The commit: one transaction over all tasks of a worker, then one write batch per store. The order is the promise.

use super::park::Park;
use super::{Outbox, Task};
use crate::metrics::CommitMetrics;
use crate::model::failpoint::hit;
use crate::model::log::{Group, OffsetCommit, Refusal};
use crate::model::{Clock, Fault, TaskId, Verdict};
use crate::state::Applied;
use std::sync::Arc;
use std::time::Duration;

/// Why nothing was committed. The caller aborts and rewinds, except where the outcome is unknown.
#[derive(Debug)]
pub enum CommitError {
    /// Before the transaction's commit was asked for: nothing is visible.
    Failed(Fault),
    /// The commit was asked for and its outcome is unknown: it must be resolved with the broker.
    Unknown(Fault),
    /// The log refused records for what they are; each names the input record that made it.
    Refused(Vec<Refusal>),
    /// A task lost its partition while its effects were open.
    Lost(TaskId),
}

/// Commits what `tasks` have done since the last commit: changelog → flush → offsets → transaction → stores.
///
/// The flush comes before the offsets because a new owner's restore target depends on it.
pub fn commit(out: &mut Outbox, tasks: &mut [Task], with: (&CommitMetrics, &dyn Clock)) -> Result<(), CommitError> {
    let (mut due, mut phases) = (with_progress(tasks), Phases::start(with));
    hit("commit-before-produce");
    out.begin()?;
    for task in &due {
        task.log_changes(out, with.1.wall_ms())?;
    }
    due.iter_mut().for_each(|task| task.tell_parked());
    hit("commit-after-changelog");
    phases.end("changelog");
    refused(out.flush()?)?;
    hit("commit-after-flush");
    phases.end("flush");
    for (group, offsets) in by_group(&due)? {
        out.send_offsets(&*group, &offsets)?;
    }
    hit("commit-after-offsets");
    phases.end("offsets");
    due.iter_mut().for_each(|task| task.acked = task.acknowledged(out));
    out.commit().map_err(unknown_where_fenced)?;
    hit("commit-after-transaction");
    phases.end("commit");
    due.iter_mut().for_each(|task| task.report(with.1.monotonic()));
    due.iter_mut().for_each(|task| task.settle(out));
    hit("commit-after-store");
    phases.end("store");
    with.0.committed();
    Ok(())
}

fn with_progress(tasks: &mut [Task]) -> Vec<&mut Task> {
    tasks.iter_mut().filter(|task| task.has_progress()).collect()
}

/// Times the parts of one commit.
struct Phases<'a> {
    metrics: &'a CommitMetrics,
    clock: &'a dyn Clock,
    since: Duration,
}

impl<'a> Phases<'a> {
    fn start((metrics, clock): (&'a CommitMetrics, &'a dyn Clock)) -> Self {
        Phases { metrics, clock, since: clock.monotonic() }
    }

    fn end(&mut self, phase: &str) {
        let now = self.clock.monotonic();
        self.metrics.phase(phase, now.saturating_sub(self.since));
        self.since = now;
    }
}

impl Task {
    /// One changelog record per changed key.
    fn log_changes(&self, out: &mut Outbox, now: i64) -> Result<(), Fault> {
        let Some(stores) = self.stores() else { return Ok(()) };
        for (store, &topic) in self.routes.changelogs.iter().enumerate() {
            out.log_changes(&stores, store, (topic, self.id.partition), now)?;
        }
        Ok(())
    }

    /// The offsets of this commit say how many records are parked: they are past those, and whoever waits for the group looks there.
    fn tell_parked(&mut self) {
        if let Some(park) = &self.park {
            self.intake.tell_parked(park.records());
        }
    }

    /// The transaction is committed: the overlay goes to the store with its offsets, in one write batch. A store that
    /// cannot be written is opened anew: it reopens older, and what it lacks comes back from the changelog.
    pub fn settle(&mut self, out: &Outbox) {
        self.count_changes();
        self.intake.settle();
        self.park.iter_mut().for_each(Park::settle);
        self.show_parked();
        self.marker.settle();
        let changelogs = self.reached(out);
        let inputs = self.intake.positions();
        let inputs: Vec<(&str, i64)> = inputs.iter().map(|(topic, offset)| (&**topic, *offset)).collect();
        let applied = Applied { changelogs: &changelogs, inputs: &inputs };
        let result = self.stores().map_or(Ok(()), |mut stores| stores.apply(&applied));
        if let Err(fault) = result {
            self.distrust(fault);
        }
        self.count();
    }

    /// What a commit says of the inputs.
    pub fn offsets(&self) -> Vec<OffsetCommit> {
        self.intake.commits()
    }

    /// The embedded log knows its offsets only after the commit; Kafka's are known after the flush, and kept here for the case that
    /// the producer is lost with the commit's outcome unknown.
    fn reached(&self, out: &Outbox) -> Vec<Option<i64>> {
        let known = self.acknowledged(out).into_iter().zip(self.acked.iter().copied().chain(std::iter::repeat(None)));
        known.map(|(now, before)| now.or(before)).collect()
    }

    fn acknowledged(&self, out: &Outbox) -> Vec<Option<i64>> {
        self.routes.changelogs.iter().map(|&to| out.acknowledged(to, self.id.partition)).collect()
    }
}

/// A producer that is lost while it commits leaves the outcome unknown; any other failure leaves the transaction open.
fn unknown_where_fenced(fault: Fault) -> CommitError {
    match fault.verdict {
        Verdict::Fenced => CommitError::Unknown(fault),
        _ => CommitError::Failed(fault),
    }
}

fn refused(refusals: Vec<Refusal>) -> Result<(), CommitError> {
    if refusals.is_empty() { Ok(()) } else { Err(CommitError::Refused(refusals)) }
}

type GroupOffsets = Vec<(Arc<dyn Group>, Vec<OffsetCommit>)>;

/// Offsets of each group that took part, of tasks that still own their partitions.
fn by_group(tasks: &[&mut Task]) -> Result<GroupOffsets, CommitError> {
    let mut groups: GroupOffsets = Vec::new();
    for task in tasks {
        if !task.lease.holds() {
            return Err(CommitError::Lost(task.id.clone()));
        }
        match groups.iter_mut().find(|(group, _)| group.name() == task.group.name()) {
            Some((_, offsets)) => offsets.extend(task.offsets()),
            None => groups.push((task.group.clone(), task.offsets())),
        }
    }
    Ok(groups)
}

impl From<Fault> for CommitError {
    fn from(fault: Fault) -> Self {
        CommitError::Failed(fault)
    }
}
