//! The park's part in a task's turns: new input and parked records that are due take turns, records whose keys wait are set aside,
//! and what is accepted is parked or released.

use super::park::{Formed, Head, Park};
use super::work::{Moment, Taken, Turn, Work};
use super::{Outbox, Step, Task, lock};
use crate::delivery::{Attempts, Cause};
use crate::model::failpoint::hit;
use crate::model::log::Origin;
use crate::model::{Batch, Failure, Fault};

/// Marks the input of an origin whose record came from the park: its refusal finds it there, and not at its input.
pub(super) const PARKED: u16 = 1 << 15;

impl Task {
    /// A parked record that is due or new input, whichever has its turn and something to do.
    pub(super) fn alternate(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        if let Err(fault) = self.refresh_park(turn.now()) {
            return self.host_fault(fault);
        }
        let park_first = self.park.as_ref().is_some_and(|park| park.goes_first());
        let mut rest = Step::Idle;
        for release in [park_first, !park_first] {
            let step = if release { self.release(turn)? } else { self.take_where_open(turn)? };
            if matches!(step, Step::Worked | Step::Yielded) {
                self.park.iter_mut().for_each(|park| park.took_turn(release));
                return Ok(step);
            }
            rest = rest.or(step);
        }
        Ok(rest)
    }

    /// Parts the next records of an input by whether their keys wait, and runs those whose keys do not. `None` where there is no room
    /// for the first one: released records make it.
    pub(super) fn form(&mut self, batch: Batch, turn: &mut Turn<'_>) -> Result<Option<Step>, Fault> {
        let largest = self.largest_parked(turn.out);
        let Formed { call, aside, rest } = match &self.park {
            Some(park) => park.form(batch, largest),
            None => Formed::whole(batch),
        };
        self.intake.put_back(rest);
        if !call.is_empty() {
            return self.run(Work { batch: call, taken: Taken::Input(aside) }, turn).map(Some);
        }
        if aside.is_empty() {
            return Ok(None);
        }
        self.set_aside(&aside, turn.now())?;
        Ok(Some(Step::Worked))
    }

    /// A record that failed outside the plugin waits behind the parked ones of its key; else it is decided about.
    /// As of [`Task::form`].
    pub(super) fn failed_before(
        &mut self,
        batch: Batch,
        failure: Failure,
        turn: &mut Turn<'_>,
    ) -> Result<Option<Step>, Fault> {
        match &mut self.park {
            Some(park) if park.waits(batch.keys.iter().next().flatten()) => {
                park.exclude(batch.input, batch.offsets[0], failure);
                self.form(batch, turn)
            }
            _ => self.fail(Work::of(batch), Cause::Refused(failure), turn).map(Some),
        }
    }

    /// Parks records behind those of their keys. Everything before them is accepted.
    pub(super) fn set_aside(&mut self, aside: &Batch, now: Moment) -> Result<(), Fault> {
        let Some(last) = aside.offsets.last() else { return Ok(()) };
        for (offset, record) in aside.iter() {
            let attempts = self.intake.retried(aside.input, offset).or_else(|| self.failed(aside.input, offset));
            let origin = Origin { slot: self.slot, input: aside.input as u16, offset };
            if let (Some(park), Some(stores)) = (&mut self.park, &self.stores) {
                park.park(&mut lock(stores), (&record, attempts.as_ref()), origin, now)?;
            }
        }
        self.intake.pass(aside.input, last + 1);
        hit("park-stage");
        Ok(())
    }

    /// Parks the only record of `work`, which failed, where there is room; says whether it did.
    pub(super) fn park_failed(
        &mut self,
        work: &Work,
        attempts: &Attempts,
        (out, now): (&Outbox, Moment),
    ) -> Result<bool, Fault> {
        let (origin, largest) = (self.origin(work, 0), self.largest_parked(out));
        let (Some(park), Some(stores)) = (&mut self.park, &self.stores) else { return Ok(false) };
        let Some((_, record)) = work.batch.iter().next().filter(|(_, record)| park.takes(record, largest)) else {
            return Ok(false);
        };
        park.park(&mut lock(stores), (&record, Some(attempts)), origin, now)?;
        hit("park-stage");
        Ok(true)
    }

    /// The only record of `work`, the head of its key, failed again and keeps its place.
    pub(super) fn park_again(
        &mut self,
        (work, head): (&Work, &Head),
        attempts: &Attempts,
        now: Moment,
    ) -> Result<(), Fault> {
        let origin = self.origin(work, 0);
        let (Some(park), Some(stores)) = (&mut self.park, &self.stores) else { return Ok(()) };
        let Some((_, record)) = work.batch.iter().next() else { return Ok(()) };
        park.again(&mut lock(stores), (head, &record), attempts, (origin, now))
    }

    /// The head of a key is done, or dead, and leaves the park together with its effects.
    pub(super) fn unpark(&mut self, head: &Head, now: Moment) {
        let origin = Origin { slot: self.slot, input: head.slot.input as u16 | PARKED, offset: head.slot.offset };
        if let (Some(park), Some(stores)) = (&mut self.park, &self.stores) {
            park.release(&mut lock(stores), head, origin, now);
        }
        hit("park-released");
    }

    /// Tells metrics how many records are parked.
    pub(super) fn show_parked(&mut self) {
        let growth = self.park.as_mut().map_or(0, Park::growth);
        self.spec.metrics.parked(growth);
    }

    fn refresh_park(&mut self, now: Moment) -> Result<(), Fault> {
        match (&mut self.park, &self.stores) {
            (Some(park), Some(stores)) if park.is_stale() => park.refresh(&lock(stores), now)?,
            _ => return Ok(()),
        }
        self.show_parked();
        Ok(())
    }

    fn take_where_open(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        match &self.park {
            Some(park) if !park.is_open() => Ok(Step::Idle),
            _ => self.take(turn),
        }
    }

    /// Runs the parked record that has been due for longest, alone.
    fn release(&mut self, turn: &mut Turn<'_>) -> Result<Step, Fault> {
        let now = turn.now();
        let (Some(park), Some(stores)) = (&self.park, &self.stores) else { return Ok(Step::Idle) };
        match park.next_due() {
            None => return Ok(Step::Idle),
            Some(due) if due > now.monotonic => return Ok(Step::Until(due)),
            Some(_) => hit("park-release"),
        }
        let mut batch = Batch { partition: self.id.partition as u32, now: now.wall_ms, ..Batch::default() };
        let found = park.head(&mut lock(stores), now, &mut batch);
        let head = match found {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(Step::Idle),
            Err(fault) => return self.host_fault(fault),
        };
        let excluded = park.excluded(&head.slot).cloned();
        let work = Work { batch, taken: Taken::Parked(head) };
        match excluded {
            Some(failure) => self.fail(work, Cause::Refused(failure), turn),
            None => self.run(work, turn),
        }
    }

    /// The largest record that the park's changelog takes, bytes.
    fn largest_parked(&self, out: &Outbox) -> u64 {
        let changelog = self.park.as_ref().and_then(|_| self.routes.changelogs.last());
        changelog.map_or(0, |&topic| out.largest(topic))
    }
}
