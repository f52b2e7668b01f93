//! One turn of a task: form a batch, run the plugin, take what came back. Never waits: a guest that runs long yields, a record that
//! is retried waits its time, and the worker goes on with its other tasks.

use super::intake::Next;
use super::{Outbox, Running, State, Task};
use crate::delivery::{Cause, Decision, decide};
use crate::model::log::FetchLimit;
use crate::model::{Batch, Clock, Ending, Failure, Fault, Progress, Verdict};
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

impl Task {
    /// One turn. A fault means that the worker's transaction must be aborted, unless its verdict is this task's alone.
    pub fn step(&mut self, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        if self.is_stopped() {
            return Ok(Step::Idle);
        }
        match self.call.take() {
            Some(running) => self.advance(running, out, clock),
            None => self.begin(out, clock),
        }
    }

    fn begin(&mut self, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        let now = clock.monotonic();
        if now < self.due {
            return Ok(Step::Until(self.due));
        }
        let limit = FetchLimit { records: self.pacing.records(), bytes: self.pacing.bytes() };
        match self.intake.next(limit, clock.wall_ms())? {
            Next::Nothing => Ok(Step::Idle),
            Next::Failed(batch, failure) => self.fail(batch, Cause::Refused(failure), out, clock),
            Next::Call(batch) => {
                let records = batch.len();
                let call =
                    if self.pacing.is_hunting() { self.guest.rerun(batch, now) } else { self.guest.call(batch, now) };
                self.advance(Running { call, since: now, records }, out, clock)
            }
        }
    }

    fn advance(&mut self, mut running: Running, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        let Some(Outcome { batch, result }) = running.call.poll(clock.monotonic()) else {
            self.call = Some(running);
            return Ok(Step::Yielded);
        };
        match result {
            Ok(progress) => {
                self.spec.metrics.called(clock.monotonic().saturating_sub(running.since));
                self.pacing.clean(progress.done as usize, clock.monotonic().saturating_sub(running.since));
                self.came_back(batch, progress, out, clock)
            }
            Err(fault) => self.broke(batch, fault, (running.records, out), clock),
        }
    }

    fn came_back(
        &mut self,
        batch: Batch,
        mut progress: Progress,
        out: &mut Outbox,
        clock: &dyn Clock,
    ) -> Result<Step, Fault> {
        if let Some((entry, failure)) = self.breach(&batch, &progress, out, clock.wall_ms()) {
            // the effects of later entries may build on the guilty one's: all are dropped, and the call is made again without it
            self.refuse_entry(&batch, entry, failure);
            // its globals may know of effects that never happened
            self.guest.reset();
            self.intake.put_back(batch);
            return Ok(Step::Worked);
        }
        let ending = std::mem::take(&mut progress.ending);
        let done = progress.done as usize;
        if done > 0 {
            self.recovered();
        }
        self.accept(&batch, &progress, out)?;
        match ending {
            Ending::Complete => {
                self.intake.accept(batch, done);
                Ok(Step::Worked)
            }
            Ending::Retry(failure) => self.rest(batch, done, Cause::Retry(failure), (out, clock)),
            Ending::Stop(failure) => self.rest(batch, done, Cause::Stop(failure), (out, clock)),
        }
    }

    /// Accepts the first `done` records and decides about the next one.
    fn rest(
        &mut self,
        batch: Batch,
        done: usize,
        cause: Cause,
        with: (&mut Outbox, &dyn Clock),
    ) -> Result<Step, Fault> {
        let failed = batch.slice(done..done + 1);
        let later = batch.slice(done + 1..batch.len());
        self.intake.accept(batch.slice(0..done), done);
        if !later.is_empty() {
            self.intake.put_back(later);
        }
        self.fail(failed, cause, with.0, with.1)
    }

    /// Decides about a batch of one record that failed.
    fn fail(&mut self, batch: Batch, cause: Cause, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        let said = said(cause.failure());
        match decide(cause, self.attempts) {
            Decision::DeadLetter(failure) => {
                self.bury(&batch, &failure, out, clock.wall_ms())?;
                self.recovered();
                self.intake.accept(batch, 1);
            }
            Decision::Retry(delay) => {
                let reason = format!("offset {}: {said}", batch.offsets[0]);
                self.attempts = self.attempts.saturating_add(1);
                self.due = clock.monotonic() + delay;
                self.state.enter(State::BackingOff(reason));
                self.intake.put_back(batch);
            }
            Decision::Stop(_) => {
                let message = format!("task {}: the plugin stopped at offset {}: {said}", self.id, batch.offsets[0]);
                self.intake.put_back(batch);
                self.halt(Fault::fatal("plugin-stop", message).hint("look into it, then start the processor again"));
            }
        }
        Ok(Step::Worked)
    }

    /// A call that did not come back whole. `with`: its records, and the outbox.
    fn broke(
        &mut self,
        batch: Batch,
        fault: CallFault,
        with: (usize, &mut Outbox),
        clock: &dyn Clock,
    ) -> Result<Step, Fault> {
        let (records, out) = with;
        self.spec.metrics.guest_fault(fault.code());
        self.guest.reset();
        if let CallFault::Host(fault) = fault {
            self.intake.put_back(batch);
            return self.host_fault(fault);
        }
        if let CallFault::Init(message) = &fault {
            let message = format!("task {}: the plugin does not start: {message}", self.id);
            self.intake.put_back(batch);
            self.halt(Fault::fatal("plugin-init-failed", message));
            return Ok(Step::Worked);
        }
        if records > 1 {
            tracing::debug!(task = %self.id, code = fault.code(), records, "a call broke; looking for the record that did it");
            if fault.is_size() {
                self.pacing.halve(records)
            } else {
                self.pacing.isolate(records)
            }
            self.intake.put_back(batch);
            return Ok(Step::Worked);
        }
        self.pacing.culprit();
        self.fail(batch, Cause::Broke(fault.failure()), out, clock)
    }

    fn host_fault(&mut self, fault: Fault) -> Result<Step, Fault> {
        match fault.verdict {
            Verdict::Corrupt | Verdict::Fatal | Verdict::Record => {
                self.halt(fault);
                Ok(Step::Worked)
            }
            Verdict::Transient | Verdict::Fenced => Err(fault),
        }
    }

    fn recovered(&mut self) {
        self.attempts = 0;
        self.due = Duration::ZERO;
        if matches!(self.state, State::BackingOff(_)) {
            self.state.enter(State::Running);
        }
    }
}

fn said(failure: &Failure) -> String {
    format!("{} ({})", failure.message, failure.code)
}
