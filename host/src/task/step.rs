//! One turn of a task: form a batch, run the plugin, take what came back. Never waits: a guest that runs long yields, a record that
//! is retried waits its time, and the worker goes on with its other tasks.

use super::intake::Next;
use super::letters::Letter;
use super::{Outbox, Running, State, Task};
use crate::config::Action;
use crate::delivery::{Attempts, Cause, Decision, decide, jitter};
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
                let running = self.call(batch, now);
                self.advance(running, out, clock)
            }
        }
    }

    fn call(&mut self, batch: Batch, now: Duration) -> Running {
        let records = batch.len();
        let call = if self.pacing.is_hunting() { self.guest.rerun(batch, now) } else { self.guest.call(batch, now) };
        Running { call, since: now, records }
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
        if let Some((entry, failure)) = self.overruled(&progress) {
            return self.apart(batch, (entry, failure), out, clock);
        }
        let letters = self.rejected(&batch, &progress, clock.wall_ms());
        if let Some(fault) = self.forbidden(u64::from(progress.done), &letters, out, clock.monotonic()) {
            return Ok(self.stand_still(batch, fault));
        }
        let ending = std::mem::take(&mut progress.ending);
        let done = progress.done as usize;
        self.accept(&batch, &progress, out)?;
        self.send_letters(letters, out, clock.wall_ms())?;
        if done > 0 {
            self.recovered(batch.input, batch.offsets[done - 1]);
        }
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

    /// The first entry whose rejection is more than a dead letter by policy.
    fn overruled(&self, progress: &Progress) -> Option<(usize, Failure)> {
        let codes = &self.spec.retry.codes;
        let other = |code: &str| !matches!(codes.get(code), None | Some(Action::DeadLetter));
        let found = progress.rejected.iter().find(|rejection| !codes.is_empty() && other(&rejection.failure.code))?;
        Some((found.entry as usize, found.failure.clone()))
    }

    /// What was done before an entry that policy decides about is done again without it, as later effects may build on none of its;
    /// where nothing was, the entry is decided about.
    fn apart(
        &mut self,
        batch: Batch,
        (entry, failure): (usize, Failure),
        out: &mut Outbox,
        clock: &dyn Clock,
    ) -> Result<Step, Fault> {
        // its globals may know of effects that never happened
        self.guest.reset();
        if entry == 0 {
            return self.rest(batch, 0, Cause::Rejected(failure), (out, clock));
        }
        self.intake.put_back(batch.slice(entry..batch.len()));
        self.call = Some(self.call(batch.slice(0..entry), clock.monotonic()));
        Ok(Step::Worked)
    }

    /// Decides about a batch of one record that failed.
    fn fail(&mut self, batch: Batch, cause: Cause, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        let (said, by_plugin) = (said(cause.failure()), matches!(cause, Cause::Stop(_)));
        let (input, offset) = (batch.input, batch.offsets[0]);
        let before = self.retried(input, offset).copied();
        let attempts = before.map_or(0, |before| before.count);
        let random = jitter((&self.id, input, offset, attempts));
        match decide(&self.spec.retry, cause, attempts, random) {
            Decision::DeadLetter(verdict, failure) => {
                let letters = self.buried(&batch, verdict, &failure, clock.wall_ms());
                return self.bury(batch, letters, out, clock);
            }
            Decision::Retry(delay) => {
                self.back_off(
                    Attempts::after(before.as_ref(), offset, clock.wall_ms(), 0),
                    (input, delay),
                    said,
                    clock,
                );
                self.intake.put_back(batch);
            }
            Decision::Stop(_) => {
                let (who, code) = if by_plugin { ("plugin", "plugin-stop") } else { ("policy", "policy-stop") };
                let message = format!("task {}: the {who} stopped at offset {offset}: {said}", self.id);
                let fault = Fault::fatal(code, message).hint("look into it, then start the processor again");
                return Ok(self.stand_still(batch, fault));
            }
        }
        Ok(Step::Worked)
    }

    /// Makes a dead letter of the only record of `batch`, where that is allowed.
    fn bury(&mut self, batch: Batch, letters: Vec<Letter>, out: &mut Outbox, clock: &dyn Clock) -> Result<Step, Fault> {
        if let Some(fault) = self.forbidden(1, &letters, out, clock.monotonic()) {
            return Ok(self.stand_still(batch, fault));
        }
        self.done_without(&batch);
        self.send_letters(letters, out, clock.wall_ms())?;
        self.recovered(batch.input, batch.offsets[0]);
        self.intake.accept(batch, 1);
        Ok(Step::Worked)
    }

    fn back_off(&mut self, attempts: Attempts, (input, delay): (u32, Duration), said: String, clock: &dyn Clock) {
        let due_ms = attempts.last_ms.saturating_add(delay.as_millis() as i64);
        self.due = clock.monotonic() + delay;
        self.state.enter(State::BackingOff(format!("offset {}: {said}", attempts.offset)));
        self.retrying.insert(input, Attempts { due_ms, ..attempts });
        self.spec.metrics.retried();
    }

    /// Nothing of `batch` is accepted, and nothing more is done.
    fn stand_still(&mut self, batch: Batch, fault: Fault) -> Step {
        self.intake.put_back(batch);
        self.halt(fault);
        Step::Worked
    }

    /// What is remembered of a record that failed before.
    pub(super) fn retried(&self, input: u32, offset: i64) -> Option<&Attempts> {
        self.retrying.get(&input).filter(|attempts| attempts.offset == offset)
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
            return Ok(self.stand_still(batch, Fault::fatal("plugin-init-failed", message)));
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

    /// Every record of an input up to the one at `last` is done: what was remembered of them is forgotten.
    fn recovered(&mut self, input: u32, last: i64) {
        self.retrying.retain(|of, attempts| *of != input || attempts.offset > last);
        if self.retrying.is_empty() && matches!(self.state, State::BackingOff(_)) {
            self.state.enter(State::Running);
        }
    }
}

fn said(failure: &Failure) -> String {
    format!("{} ({})", failure.message, failure.code)
}
