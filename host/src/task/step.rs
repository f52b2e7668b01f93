//! One turn of a task: form a batch, run the plugin, take what came back. Never waits: a guest that runs long yields, a record that
//! is retried waits its time, and the worker goes on with its other tasks.

use super::intake::Next;
use super::marker::Admission;
use super::work::{Turn, Work};
use super::{Outbox, Running, State, Task};
use crate::delivery::Cause;
use crate::metrics::Custom;
use crate::model::failpoint::hit;
use crate::model::log::FetchLimit;
use crate::model::{Clock, Ending, Failure, Fault, Progress, Verdict};
use crate::plugin::{CallFault, Outcome};
use std::time::Duration;

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Worked,
    /// The guest used up its slice and wants to go on.
    Yielded,
    /// Nothing to do before the source wakes the worker.
    Idle,
    /// Nothing to do before this moment of the monotonic clock.
    Until(Duration),
}

/// Between two attempts to run a record under suspicion while another one is being run.
const TRIAL_PAUSE: Duration = Duration::from_millis(10);

impl Step {
    /// What two parts of a turn that had nothing to do come to.
    pub(super) fn or(self, other: Step) -> Step {
        match (self, other) {
            (Step::Until(a), Step::Until(b)) => Step::Until(a.min(b)),
            (Step::Until(due), _) | (_, Step::Until(due)) => Step::Until(due),
            _ => Step::Idle,
        }
    }
}

impl Task {
    /// One turn. A fault means that the worker's transaction must be aborted, unless its verdict is this task's alone.
    pub fn step(&mut self, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        let step = self.turn(out, clock);
        self.show(clock);
        step
    }

    fn turn(&mut self, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        if self.is_stopped() {
            // what is in flight is not accepted any more
            self.give_up_call();
            return Ok(Step::Idle);
        }
        let changing = self.change_version(clock);
        let step = self.go_on(&mut Turn { out, clock })?;
        // another version that is on its way in wants its turns
        Ok(if changing && !matches!(step, Step::Worked) { Step::Yielded } else { step })
    }

    fn go_on(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        match self.call.take() {
            Some(running) => self.advance(running, turn),
            None if self.spec.versions.is_paused() => Ok(Step::Idle),
            None if self.awaits_version() => Ok(Task::wait_for_version(turn.clock)),
            // a record that is given up because hosts die with it: committed before anything else is risked
            None if self.marker.is_waiting() => Ok(Step::Idle),
            None if self.park.is_some() => self.alternate(turn),
            None => self.take(turn),
        }
    }

    /// The next records of an input. One whose records must wait for room in the park keeps no other from its turn.
    pub(super) fn take(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        for _ in 0..self.intake.len() {
            if let Some(step) = self.take_one(turn)? {
                return Ok(step);
            }
        }
        Ok(Step::Idle)
    }

    /// `None` where there is no room in the park.
    fn take_one(&mut self, turn: &mut Turn<'_>) -> Result<Option<Step>, Fault> {
        let limit = FetchLimit { records: self.pacing.records(), bytes: self.pacing.bytes() };
        match self.intake.next(limit, turn.now())? {
            Next::Nothing => Ok(Some(Step::Idle)),
            Next::Wait(due) => {
                self.waits();
                Ok(Some(Step::Until(due)))
            }
            Next::Failed(batch, failure) => self.failed_before(batch, failure, turn),
            Next::Call(batch) if self.park.is_some() => self.form(batch, turn),
            Next::Call(batch) => self.run(Work::of(batch), turn).map(Some),
        }
    }

    /// Hands records to the plugin and lets it begin.
    pub(super) fn run(&mut self, work: Work, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let step = self.start(work, turn)?;
        match self.call.take() {
            Some(running) => self.advance(running, turn),
            None => Ok(step),
        }
    }

    /// Hands records to the plugin, unless the host has died with them before.
    pub(super) fn start(&mut self, work: Work, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let now = turn.monotonic();
        let admission = self.marker.enter(work.batch.input, &work.batch.offsets);
        match admission {
            Admission::Free | Admission::Trial => {}
            Admission::Later => return Ok(self.later(work, now)),
            Admission::Condemned(deaths) => return self.fail(work, Cause::Crashed(host_crash(deaths)), turn),
        }
        hit("plugin-call");
        let Work { batch, taken } = work;
        let again = self.pacing.is_hunting() || admission == Admission::Trial;
        let call = if again { self.guest.rerun(batch, now) } else { self.guest.call(batch, now) };
        self.call = Some(Running { call, since: now, taken, tried: None });
        Ok(Step::Worked)
    }

    fn advance(&mut self, mut running: Running, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let Some(outcome) = running.call.poll(turn.monotonic()) else {
            self.marker.reached(turn.monotonic().saturating_sub(running.since));
            self.call = Some(running);
            return Ok(Step::Yielded);
        };
        self.marker.survived();
        if let Some(broke) = running.tried {
            return self.judge(outcome, (running.taken, broke), turn);
        }
        let Outcome { batch, result, custom } = outcome;
        let work = Work { batch, taken: running.taken };
        match result {
            Ok(progress) => {
                let took = turn.monotonic().saturating_sub(running.since);
                self.spec.metrics.plugin.called(work.batch.len(), took);
                if !work.is_parked() {
                    self.pacing.clean(progress.done as usize, took);
                }
                self.came_back(work, (progress, custom), turn)
            }
            Err(fault) => self.broke(work, fault, turn),
        }
    }

    fn came_back(
        &mut self,
        work: Work,
        (mut progress, custom): (Progress, Custom),
        turn: &mut Turn<'_>,
    ) -> Result<Step, Fault> {
        let now = turn.now();
        if let Some((entry, failure)) = self.breach(&work.batch, &progress, turn.out, now.wall_ms) {
            // the effects of later entries may build on the guilty one's: all are dropped, and the call is made again without it
            self.refuse_entry(&work, entry, failure);
            // its globals may know of effects that never happened
            self.guest.reset();
            self.put_back(work);
            return Ok(Step::Worked);
        }
        if let Some(overruled) = self.overruled(&progress) {
            return self.apart(work, overruled, turn);
        }
        let letters = self.rejected(&work, &progress, now.wall_ms);
        if let Some(fault) = self.forbidden(u64::from(progress.done), &letters, turn.out, now.monotonic) {
            return Ok(self.stand_still(work, fault));
        }
        let ending = std::mem::take(&mut progress.ending);
        self.accept(&work, &progress, turn.out)?;
        self.tally.custom.merge(custom);
        self.send_letters(letters, turn.out, now.wall_ms)?;
        let done = progress.done as usize;
        match ending {
            Ending::Complete => self.pass(work, done, now).map(|()| Step::Worked),
            Ending::Retry(failure) => self.rest(work, done, Cause::Retry(failure), turn),
            Ending::Stop(failure) => self.rest(work, done, Cause::Stop(failure), turn),
        }
    }

    /// A call that did not come back whole.
    fn broke(&mut self, work: Work, fault: CallFault, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        self.spec.metrics.plugin.fault(fault.code());
        self.guest.reset();
        let records = work.batch.len();
        match fault {
            CallFault::Host(fault) => {
                self.put_back(work);
                self.host_fault(fault)
            }
            CallFault::Init(message) => Ok(self.init_failed(work, &message, turn)),
            fault if records > 1 => {
                tracing::debug!(task = %self.id, code = fault.code(), records, "a call broke; looking for the record that did it");
                if fault.is_size() {
                    self.pacing.halve(records)
                } else {
                    self.pacing.isolate(records)
                }
                self.put_back(work);
                Ok(Step::Worked)
            }
            fault if self.version.is_on_probation(turn.wall_ms()) => self.try_former(work, fault, turn),
            fault => self.guilty(work, fault, turn),
        }
    }

    /// The only record of `work` breaks the plugin.
    pub(super) fn guilty(&mut self, work: Work, fault: CallFault, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        if !work.is_parked() {
            self.pacing.culprit();
        }
        self.fail(work, Cause::Broke(fault.failure()), turn)
    }

    pub(super) fn host_fault(&mut self, fault: Fault) -> Result<Step, Fault> {
        match fault.verdict {
            Verdict::Corrupt | Verdict::Fatal | Verdict::Record => {
                self.halt(fault);
                Ok(Step::Worked)
            }
            Verdict::Transient | Verdict::Fenced => Err(fault),
        }
    }

    /// Another record is under suspicion and being run: this one waits its turn.
    pub(super) fn later(&mut self, work: Work, now: Duration) -> Step {
        self.put_back(work);
        Step::Until(now.saturating_add(TRIAL_PAUSE))
    }

    /// Nothing of the work is accepted, and nothing more is done.
    pub(super) fn stand_still(&mut self, work: Work, fault: Fault) -> Step {
        self.put_back(work);
        self.halt(fault);
        Step::Worked
    }

    /// Says so where a retry that another life of the task began is waited for.
    fn waits(&mut self) {
        if let (State::Running, Some(attempts)) = (&self.state, self.intake.retrying()) {
            let reason = format!("offset {}: attempt {} is to come", attempts.offset, attempts.count.saturating_add(1));
            self.state.enter(State::BackingOff(reason));
        }
    }
}

pub(super) fn host_crash(deaths: u32) -> Failure {
    Failure::new("host-crash", format!("the host died {deaths} times in a row with this record alone in the plugin"))
}
