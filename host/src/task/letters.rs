//! Dead letters of a task: made, held against what policy allows, handed to the log, counted.

use super::marker::MOST_CRASHES;
use super::work::Work;
use super::{Outbox, Task};
use crate::config::Oversize;
use crate::delivery::{DeadLetter, Death, Example, Reason, Source, Verdict, counted_as};
use crate::model::log::Origin;
use crate::model::{Failure, Fault, Progress, RecordRef};
use std::time::Duration;

/// Dead letters that the topic refuses for their time get the time they are written instead; the header keeps the record's.
const NO_TIMESTAMP: i64 = -1;

/// A dead letter and the record that it is of.
pub(super) struct Letter {
    letter: DeadLetter,
    origin: Origin,
    code: &'static str,
}

impl Task {
    /// The letters of a call's rejections, in entry order. `now` in wall-clock milliseconds.
    pub(super) fn rejected(&self, work: &Work, progress: &Progress, now: i64) -> Vec<Letter> {
        if progress.rejected.is_empty() {
            return Vec::new();
        }
        let mut rejected = progress.rejected.iter().peekable();
        let entries = work.batch.iter().enumerate().filter_map(|(entry, (_, record))| {
            let rejection = rejected.next_if(|rejection| rejection.entry as usize == entry)?;
            Some(self.letter(work, (entry, record), (Verdict::Rejected, &rejection.failure), now))
        });
        entries.collect()
    }

    /// The letter of the only record of `work`.
    pub(super) fn buried(&self, work: &Work, verdict: Verdict, failure: &Failure, now: i64) -> Vec<Letter> {
        work.batch.iter().take(1).map(|(_, record)| self.letter(work, (0, record), (verdict, failure), now)).collect()
    }

    /// Why these letters may not be written, though `records` are done with them; `now` of the monotonic clock.
    pub(super) fn forbidden(&mut self, records: u64, letters: &[Letter], out: &Outbox, now: Duration) -> Option<Fault> {
        let first = letters.first()?.origin.offset;
        if let Some(fault) = self.oversized(letters, out) {
            return Some(fault);
        }
        let fresh = records + self.tally.traffic.records_in - self.tally.told.0;
        if self.spec.admits(now, fresh, letters.len() as u64) {
            self.tally.told = (self.tally.told.0 + fresh, self.tally.told.1 + letters.len() as u64);
            return None;
        }
        let why = example(&letters[0].letter).message;
        let message = format!(
            "task {}: more dead letters than dead_letter.limit allows, from offset {first} on, which is not written: {why}",
            self.id
        );
        let hint = "mend what makes them and start the processor again; or raise processor.dead_letter.limit";
        Some(Fault::fatal("dead-letter-limit", message).hint(hint))
    }

    /// Tells the processor's count of letters of the records that made none; `now` of the monotonic clock.
    pub(super) fn report(&mut self, now: Duration) {
        let fresh = self.tally.traffic.records_in - self.tally.told.0;
        self.spec.admits(now, fresh, 0);
        self.tally.told.0 += fresh;
    }

    pub(super) fn send_letters(&mut self, letters: Vec<Letter>, out: &mut Outbox, now: i64) -> Result<(), Fault> {
        let to = self.routes.dead_letters;
        for Letter { mut letter, origin, code } in letters {
            let excess = out.excess(to, &letter_ref(&letter));
            if excess > 0 {
                letter.truncate(excess);
            }
            if out.check(to, &letter_ref(&letter), now).is_err() {
                letter.timestamp = NO_TIMESTAMP;
            }
            let known = self.tally.dead_letters.entry(code);
            known.or_insert_with(|| (0, example(&letter))).0 += 1;
            out.send(to, None, letter_ref(&letter), origin)?;
        }
        Ok(())
    }

    fn letter(
        &self,
        work: &Work,
        (entry, record): (usize, RecordRef<'_>),
        (verdict, failure): (Verdict, &Failure),
        now: i64,
    ) -> Letter {
        let (origin, batch) = (self.origin(work, entry as u32), &work.batch);
        let (topic, partition, offset) = (self.intake.topic(batch.input), batch.partition, origin.offset);
        let before = self.retried(work, entry);
        let death = Death {
            verdict,
            failure,
            attempts: before.map_or(0, |before| before.count).saturating_add(calls(verdict)),
            first_ms: before.map_or(now, |before| before.first_ms),
            last_ms: now,
        };
        let source = Source { topic, partition, offset, processor: &self.spec.name, plugin: self.version.plugin() };
        tracing::debug!(task = %self.id, offset, code = failure.code, message = failure.message, "dead letter");
        let letter = DeadLetter::new(&source, record, &death, &self.spec.dead_letter);
        Letter { letter, origin, code: counted_as(&failure.code) }
    }

    fn oversized(&self, letters: &[Letter], out: &Outbox) -> Option<Fault> {
        let cut = self.spec.dead_letter.oversize == Oversize::Truncate;
        let excess = |letter: &Letter| out.excess(self.routes.dead_letters, &letter_ref(&letter.letter));
        // headers are never cut: what is left without key and value must fit
        let room = |letter: &Letter| if cut { letter.letter.cuttable() } else { 0 };
        let over = letters.iter().find(|letter| excess(letter) > room(letter))?;
        let (offset, excess) = (over.origin.offset, excess(over));
        let (task, topic) = (&self.id, &self.spec.dead_letters);
        let message =
            format!("task {task}: the dead letter of offset {offset} is {excess} bytes over what topic {topic} takes");
        let hint = match cut {
            true => "raise the topic's max.message.bytes: the headers alone do not fit",
            false => "raise the topic's max.message.bytes, or set processor.dead_letter.oversize = \"truncate\"",
        };
        Some(Fault::fatal("dead-letter-too-large", message).hint(hint))
    }
}

/// With how many calls a record has come to its end, of which nothing else is remembered.
fn calls(verdict: Verdict) -> u32 {
    if verdict == Verdict::HostCrash { MOST_CRASHES } else { 1 }
}

/// Read back from the letter, which is seldom: once per code and commit.
fn example(letter: &DeadLetter) -> Example {
    Reason::read(letter_ref(letter).headers).map_or_else(Example::default, |reason| Example::of(&reason))
}

fn letter_ref(letter: &DeadLetter) -> RecordRef<'_> {
    let headers = letter.headers.iter().next().unwrap_or_default();
    RecordRef { key: letter.key.as_deref(), value: letter.value.as_deref(), headers, timestamp: letter.timestamp }
}
