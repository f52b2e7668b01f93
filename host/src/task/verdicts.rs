//! What is done about a record that failed: decided by policy, then a dead letter, another attempt, or a stop.

use super::letters::Letter;
use super::work::{Moment, Taken, Turn, Work};
use super::{State, Step, Task};
use crate::config::Action;
use crate::delivery::{Attempts, Cause, Decision, Mishap, Verdict, decide, jitter};
use crate::model::{Batch, Failure, Fault, Progress};
use std::time::Duration;

impl Task {
    /// The first `done` entries are accepted, and what was set aside before the next one is parked.
    pub(super) fn pass(&mut self, work: Work, done: usize, now: Moment) -> Result<(), Fault> {
        match work.taken {
            Taken::Parked(head) => self.unpark(&head, now),
            Taken::Input(aside) if aside.is_empty() => self.intake.accept(work.batch, done),
            Taken::Input(aside) => {
                let end = work.batch.offsets.get(done).copied().unwrap_or(i64::MAX);
                self.intake.accept(work.batch, done);
                let (before, after) = part(&aside, end);
                self.set_aside(&before, now)?;
                self.intake.put_back(after);
            }
        }
        self.recovered();
        Ok(())
    }

    /// Nothing of the work was accepted: its records are met again.
    pub(super) fn put_back(&mut self, work: Work) {
        // a parked record is still where it was
        if let Taken::Input(aside) = work.taken {
            self.intake.put_back(work.batch);
            self.intake.put_back(aside);
        }
    }

    /// Accepts the first `done` records and decides about the next one.
    pub(super) fn rest(&mut self, work: Work, done: usize, cause: Cause, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let Work { batch, taken: Taken::Input(aside) } = work else { return self.fail(work, cause, turn) };
        let (failed, later) = (batch.slice(done..done + 1), batch.slice(done + 1..batch.len()));
        let (before, after) = part(&aside, batch.offsets[done]);
        self.pass(Work { batch: batch.slice(0..done), taken: Taken::Input(before) }, done, turn.now())?;
        self.intake.put_back(later);
        self.intake.put_back(after);
        self.fail(Work::of(failed), cause, turn)
    }

    /// The first entry whose rejection is more than a dead letter by policy.
    pub(super) fn overruled(&self, progress: &Progress) -> Option<(usize, Failure)> {
        let codes = &self.spec.retry.codes;
        let other = |code: &str| !matches!(codes.get(code), None | Some(Action::DeadLetter));
        let found = progress.rejected.iter().find(|rejection| !codes.is_empty() && other(&rejection.failure.code))?;
        Some((found.entry as usize, found.failure.clone()))
    }

    /// What was done before an entry that policy decides about is done again without it, as later effects may build on none of its;
    /// where nothing was, the entry is decided about.
    pub(super) fn apart(
        &mut self,
        work: Work,
        (entry, failure): (usize, Failure),
        turn: &mut Turn<'_>,
    ) -> Result<Step, Fault> {
        // its globals may know of effects that never happened
        self.guest.reset();
        if entry == 0 {
            return self.rest(work, 0, Cause::Rejected(failure), turn);
        }
        let Work { batch, taken } = work;
        self.intake.put_back(batch.slice(entry..batch.len()));
        let before = match taken {
            Taken::Parked(_) => Batch::default(),
            Taken::Input(aside) => {
                let (before, after) = part(&aside, batch.offsets[entry]);
                self.intake.put_back(after);
                before
            }
        };
        self.start(Work { batch: batch.slice(0..entry), taken: Taken::Input(before) }, turn)
    }

    /// Decides about the only record of `work`, which failed.
    pub(super) fn fail(&mut self, work: Work, cause: Cause, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let (said, by_plugin) = (said(cause.failure()), matches!(cause, Cause::Stop(_)));
        let code = cause.failure().code.clone();
        let (input, offset) = (work.batch.input, work.batch.offsets[0]);
        let attempts = self.retried(&work, 0).map_or(0, |before| before.count);
        let random = jitter((&self.id, input, offset, attempts));
        match decide(&self.spec.retry, cause, attempts, random) {
            Decision::DeadLetter(verdict, failure) => {
                let letters = self.buried(&work, verdict, &failure, turn.wall_ms());
                self.bury(work, letters, verdict, turn)
            }
            Decision::Retry(delay) => {
                if attempts == 0 {
                    self.note_retry(&work, (&code, &said), turn.wall_ms());
                }
                self.try_again(work, delay, &said, turn)
            }
            Decision::Stop(_) => {
                let (who, code) = if by_plugin { ("plugin", "plugin-stop") } else { ("policy", "policy-stop") };
                let message = format!("task {}: the {who} stopped at offset {offset}: {said}", self.id);
                let fault = Fault::fatal(code, message).hint("look into it, then start the processor again");
                Ok(self.stand_still(work, fault))
            }
        }
    }

    /// Makes a dead letter of the only record of `work`, where that is allowed.
    fn bury(&mut self, work: Work, letters: Vec<Letter>, verdict: Verdict, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let (now, input, offset) = (turn.now(), work.batch.input, work.batch.offsets[0]);
        if let Some(fault) = self.forbidden(1, &letters, turn.out, now.monotonic) {
            return Ok(self.stand_still(work, fault));
        }
        self.done_without(&work);
        self.send_letters(letters, turn.out, now.wall_ms)?;
        self.pass(work, 1, now)?;
        if verdict == Verdict::HostCrash {
            self.marker.condemn(input, offset);
        }
        Ok(Step::Worked)
    }

    /// The only record of `work` is met again after `delay`: in the park where it may wait there, else at its input.
    fn try_again(&mut self, work: Work, delay: Duration, said: &str, turn: &Turn<'_>) -> Result<Step, Fault> {
        let (now, offset) = (turn.now(), work.batch.offsets[0]);
        let due_ms = now.wall_ms.saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX));
        let attempts = Attempts::after(self.retried(&work, 0).as_ref(), offset, now.wall_ms, due_ms);
        self.spec.metrics.retried();
        if let Taken::Parked(head) = &work.taken {
            self.park_again((&work, head), &attempts, now)?;
        } else if self.park_failed(&work, &attempts, (&*turn.out, now))? {
            self.pass(work, 1, now)?;
        } else {
            self.intake.remember(work.batch.input, attempts, now.monotonic.saturating_add(delay));
            self.state.enter(State::BackingOff(format!("offset {offset}: {said}")));
            self.put_back(work);
        }
        Ok(Step::Worked)
    }

    /// Keeps the first failure of a record for whoever asks, once between two commits: a flood of them is no news.
    fn note_retry(&mut self, work: &Work, (code, said): (&str, &str), time_ms: i64) {
        if std::mem::replace(&mut self.tally.noted, true) {
            return;
        }
        let (topic, offset) = (self.intake.topic(work.batch.input), work.batch.offsets[0]);
        let place = Some(format!("{topic}/{}@{offset}", work.batch.partition));
        self.spec.note(Mishap { time_ms, code: code.to_owned(), message: format!("tried again: {said}"), place });
    }

    /// Nothing waits for a retry any more, where that is so.
    fn recovered(&mut self) {
        if matches!(self.state, State::BackingOff(_)) && self.intake.retrying().is_none() {
            self.state.enter(State::Running);
        }
    }
}

/// The records before an offset, and those from it on.
fn part(batch: &Batch, end: i64) -> (Batch, Batch) {
    let at = batch.offsets.partition_point(|&offset| offset < end);
    (batch.slice(0..at), batch.slice(at..batch.len()))
}

fn said(failure: &Failure) -> String {
    format!("{} ({})", failure.message, failure.code)
}
