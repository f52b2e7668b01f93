//! Another version of the plugin in the place of the one that runs: started beside it, put in between two calls, and on probation
//! judged by what the one before it can do.

use super::marker::Admission;
use super::step::host_crash;
use super::work::{Taken, Turn, Work};
use super::{Running, Step, Task, Version};
use crate::delivery::Cause;
use crate::model::{Clock, Fault};
use crate::plugin::{CallFault, Component, Guest, Outcome, Start};
use std::sync::Arc;
use std::time::Duration;

/// How soon a task that waits for another version looks again.
const LOOK: Duration = Duration::from_millis(20);

/// A version on its way in.
pub(super) struct Change {
    version: Arc<Version>,
    /// `None` where it is the component that runs already.
    guest: Option<Guest>,
    stage: Stage,
    /// What it has cost the task so far.
    spent: Duration,
}

enum Stage {
    Starting(Start),
    Ready,
    /// It does not start: whoever follows the versions decides, and until then the task goes on with what it has.
    Failed,
}

impl Task {
    /// The version that this task runs.
    pub fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// Brings another version nearer where one is wanted. True while it is on its way.
    pub(super) fn change_version(&mut self, clock: &dyn Clock) -> bool {
        let wanted = self.spec.versions.sequence();
        let coming = self.change.take();
        if coming.is_none() && self.version.sequence == wanted {
            self.end_probation(clock);
            return false;
        }
        let since = clock.monotonic();
        let coming = coming.filter(|change| change.version.sequence == wanted);
        let mut change = coming.unwrap_or_else(|| self.begin_change(since));
        self.advance_change(&mut change, since);
        let (is_ready, is_starting) =
            (matches!(change.stage, Stage::Ready), matches!(change.stage, Stage::Starting(_)));
        if is_ready && self.call.is_none() {
            self.enter_version(change, clock, since);
            return false;
        }
        change.spent += clock.monotonic().saturating_sub(since);
        self.change = Some(change);
        is_starting || is_ready
    }

    /// Whether the version that runs has failed, so that nothing is done before there is another one.
    pub(super) fn awaits_version(&self) -> bool {
        self.blamed == Some(self.version.sequence)
    }

    pub(super) fn wait_for_version(clock: &dyn Clock) -> Step {
        Step::Until(clock.monotonic().saturating_add(LOOK))
    }

    /// The version before tries the record that has broken this one. As any call it is one that a host may die of.
    pub(super) fn try_former(&mut self, work: Work, fault: CallFault, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let now = turn.monotonic();
        let Some(component) = self.version.former.clone() else {
            return self.guilty(work, fault, turn);
        };
        match self.marker.enter(work.batch.input, &work.batch.offsets) {
            Admission::Free | Admission::Trial => {}
            Admission::Later => return Ok(self.later(work, now)),
            Admission::Condemned(deaths) => return self.fail(work, Cause::Crashed(host_crash(deaths)), turn),
        }
        let former = self.former.get_or_insert_with(|| self.guest.of(component));
        let Work { batch, taken } = work;
        let call = former.rerun(batch, now);
        self.call = Some(Running { call, since: now, taken, tried: Some(fault) });
        Ok(Step::Worked)
    }

    /// What the version before has made of a record that broke this one: this one is to blame where the other could do it, else the
    /// record. A fault of the host, and a version before that does not start, say nothing of the record.
    pub(super) fn judge(
        &mut self,
        outcome: Outcome,
        (taken, broke): (Taken, CallFault),
        turn: &mut Turn<'_>,
    ) -> Result<Step, Fault> {
        let work = Work { batch: outcome.batch, taken };
        // its instance has seen a record whose effects are dropped
        self.former.iter_mut().for_each(Guest::reset);
        match outcome.result {
            Ok(_) | Err(CallFault::Init(_)) => {
                let place = (self.intake.topic(work.batch.input), work.batch.partition, work.batch.offsets[0]);
                let reason = format!("{broke} ({}) at {}/{}:{}", broke.code(), place.0, place.1, place.2);
                self.blame(work, reason);
                Ok(Step::Worked)
            }
            Err(CallFault::Host(fault)) => {
                self.put_back(work);
                self.host_fault(fault)
            }
            Err(_) => self.guilty(work, broke, turn),
        }
    }

    /// The version cannot go on here. Its records are met again by the next one.
    pub(super) fn blame(&mut self, work: Work, reason: String) {
        self.put_back(work);
        self.blamed = Some(self.version.sequence);
        self.spec.versions.fail(self.version.sequence, reason);
    }

    /// A call whose instance could not even be started, of a version that is on probation.
    pub(super) fn init_failed(&mut self, work: Work, message: &str, turn: &Turn<'_>) -> Step {
        let message = format!("task {}: the plugin does not start: {message}", self.id);
        if self.version.is_on_probation(turn.wall_ms()) {
            self.blame(work, message);
            return Step::Worked;
        }
        self.stand_still(work, Fault::fatal("plugin-init-failed", message))
    }

    fn begin_change(&mut self, now: Duration) -> Change {
        let version = self.spec.versions.current();
        let (component, spent) = (&version.component, Duration::ZERO);
        if component.digest == self.version.component.digest {
            return Change { version, guest: None, stage: Stage::Ready, spent };
        }
        // what an instance of the one before remembers is older than the stores: a fresh one, of what is compiled already
        let kept = self.former.take_if(|former| former.component().digest == component.digest);
        let guest = kept.unwrap_or_else(|| self.guest.of(component.clone()));
        let stage = Stage::Starting(guest.warm(now));
        Change { version, guest: Some(guest), stage, spent }
    }

    fn advance_change(&self, change: &mut Change, now: Duration) {
        let Stage::Starting(start) = &mut change.stage else { return };
        match start.poll(now) {
            None => {}
            Some(Ok(())) => change.stage = Stage::Ready,
            Some(Err(unstarted)) => {
                self.spec.versions.fail(change.version.sequence, format!("task {}: {unstarted}", self.id));
                change.stage = Stage::Failed;
            }
        }
    }

    fn enter_version(&mut self, change: Change, clock: &dyn Clock, since: Duration) {
        let Change { version, guest, spent, .. } = change;
        let specs = self.spec.stores_of(&version.component);
        let adopted = self.stores().map_or(Ok(()), |mut stores| stores.adopt(&specs));
        if let Err(fault) = adopted {
            self.blamed = Some(version.sequence);
            self.spec.versions.fail(version.sequence, format!("task {}: {fault}", self.id));
        }
        if let Some(guest) = guest {
            let mut former = std::mem::replace(&mut self.guest, guest);
            former.reset();
            let is_former = |known: &Arc<Component>| known.digest == former.component().digest;
            let keep = version.is_on_probation(clock.wall_ms()) && version.former.as_ref().is_some_and(is_former);
            self.former = keep.then_some(former);
        }
        self.intake.tell_version(version.sequence);
        self.version = version;
        self.spec.versions.runs(self.id.partition, Some(self.version.sequence));
        self.spec.metrics.plugin.paused_for_swap(spent + clock.monotonic().saturating_sub(since));
    }

    /// The version before is not kept for longer than it may be wanted.
    fn end_probation(&mut self, clock: &dyn Clock) {
        if self.former.is_some() && !self.version.is_on_probation(clock.wall_ms()) {
            self.former = None;
        }
    }
}
