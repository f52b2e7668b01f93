//! Work on the dead letters of a processor, outside any running task: look at them, replay them, delete them.
//!
//! Whoever replays or deletes holds one transactional id per processor. Taking it fences the one before, which is the lock between two.

mod chunk;
mod marks;
mod plugin;
mod purge;
mod replay;
mod sender;
#[cfg(test)]
pub(crate) mod tests;

pub use purge::{PurgeOptions, Purged};
pub use replay::{Event, ReplayOptions, Replayed, Watch};

use super::walk::{Stretch, settled_ends, walk};
use crate::config::settings::{Application, Processor};
use crate::delivery::{LetterFacts, LetterFilter, Mark, Reason};
use crate::model::log::{Log, TopicInfo};
use crate::model::{Batch, Fault, Place, RecordRef, TopicPartition, ids};
use crate::runtime::refusals::unknown_processor;
use marks::Marks;

/// The dead letters of one processor.
pub struct Letters<'a> {
    log: &'a dyn Log,
    application: &'a Application,
    processor: &'a Processor,
    topic: TopicInfo,
}

/// One dead letter where it lies.
#[derive(Clone, Debug)]
pub struct Letter<'a> {
    pub place: Place,
    /// With the headers that say why it was given up.
    pub record: RecordRef<'a>,
    pub reason: Reason,
    /// Where it has been replayed: by whom and when.
    pub mark: Option<&'a Mark>,
}

/// What a reading comes upon.
pub enum Found<'a> {
    Letter(&'a Letter<'a>),
    /// So many more offsets lie behind.
    Passed(u64),
}

impl<'a> Letters<'a> {
    /// Finds the processor and its dead-letter topic. `Fatal`: `processor-unknown`, `topic-missing`.
    pub fn open(log: &'a dyn Log, application: &'a Application, processor: &str) -> Result<Letters<'a>, Fault> {
        let found = application.processors.iter().find(|known| known.name == processor);
        let processor = found.ok_or_else(|| unknown_processor(application, processor))?;
        let own = || ids::dead_letter_topic(&application.id, &processor.name);
        let name = processor.dead_letter_topic.clone().unwrap_or_else(own);
        let topic = log.topic(&name)?.ok_or_else(|| missing(&name))?;
        Ok(Letters { log, application, processor, topic })
    }

    /// The name of the dead-letter topic.
    pub fn topic(&self) -> &str {
        &self.topic.name
    }

    /// How many offsets a reading passes.
    pub fn offsets(&self) -> Result<u64, Fault> {
        Ok(self.stretches()?.iter().map(|stretch| (stretch.to - stretch.from).unsigned_abs()).sum())
    }

    /// Reads the letters that `filter` admits, partition by partition, to the ends as they are now, until `each` says `false`.
    pub fn scan<E: From<Fault>>(
        &self,
        filter: &LetterFilter,
        each: &mut dyn FnMut(Found<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let marks = self.marks(false)?;
        self.visit(&marks, &mut |found| match found {
            Found::Letter(letter) if !filter.admits(&letter.facts()) => Ok(true),
            found => each(found),
        })
    }

    /// Shows one letter to `see`. `Fatal` `letter-missing` where there is none of this processor.
    pub fn find<E: From<Fault>>(
        &self,
        place: Place,
        see: &mut dyn FnMut(&Letter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !(0..self.topic.partitions).contains(&place.partition) {
            return Err(self.no_letter(place, &format!("it has {} partitions", self.topic.partitions)).into());
        }
        let whole = self.stretch(place.partition)?;
        if !(whole.from..whole.to).contains(&place.offset) {
            let range = format!("the partition has offsets {} to {}", whole.from, whole.to);
            return Err(self.no_letter(place, &range).into());
        }
        let (marks, mut seen) = (self.marks(false)?, false);
        let stretch = Stretch { from: place.offset, to: place.offset + 1, ..whole };
        walk(self.log, &stretch, &mut |batch: &Batch, _| {
            for letter in self.letters(place.partition, batch, &marks) {
                seen = true;
                see(&letter)?;
            }
            Ok::<_, E>(true)
        })?;
        if seen { Ok(()) } else { Err(self.no_letter(place, "what is there is another's or no letter").into()) }
    }

    /// Every letter of this processor, to the ends as they are now.
    fn visit<E: From<Fault>>(
        &self,
        marks: &Marks,
        each: &mut dyn FnMut(Found<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut going = true;
        for stretch in self.stretches()? {
            let partition = stretch.partition.partition;
            walk(self.log, &stretch, &mut |batch: &Batch, passed| {
                for letter in self.letters(partition, batch, marks) {
                    going = going && each(Found::Letter(&letter))?;
                }
                going = going && each(Found::Passed(passed))?;
                Ok::<_, E>(going)
            })?;
            if !going {
                break;
            }
        }
        Ok(())
    }

    /// The letters of this processor among records of its topic. Several processors may share one.
    fn letters<'b>(&'b self, partition: i32, batch: &'b Batch, marks: &'b Marks) -> impl Iterator<Item = Letter<'b>> {
        batch.iter().filter_map(move |(offset, record)| self.letter(Place { partition, offset }, record, marks))
    }

    fn letter<'b>(&self, place: Place, record: RecordRef<'b>, marks: &'b Marks) -> Option<Letter<'b>> {
        let reason = Reason::read(record.headers)?;
        let own = reason.processor == self.processor.name;
        own.then(|| Letter { place, record, reason, mark: marks.get(place) })
    }

    /// What has been replayed. `settled` waits for transactions that are still open in the topic of marks.
    fn marks(&self, settled: bool) -> Result<Marks, Fault> {
        Marks::read(self.log, &self.topic, settled)
    }

    /// One per partition, from its start to its end now.
    fn stretches(&self) -> Result<Vec<Stretch>, Fault> {
        (0..self.topic.partitions).map(|partition| self.stretch(partition)).collect()
    }

    fn stretch(&self, partition: i32) -> Result<Stretch, Fault> {
        let partition = TopicPartition::new(self.topic.name.as_str(), partition);
        let ends = settled_ends(self.log, &partition)?;
        Ok(Stretch { partition, from: ends.start, to: ends.stable.max(ends.start), settled: false })
    }

    fn no_letter(&self, place: Place, why: &str) -> Fault {
        let message =
            format!("no dead letter of processor {} at {place} of {}: {why}", self.processor.name, self.topic());
        Fault::fatal("letter-missing", message).hint("pelton dlq list FILE PROCESSOR lists those that are there")
    }
}

impl Letter<'_> {
    fn facts(&self) -> LetterFacts<'_> {
        LetterFacts {
            place: self.place,
            code: &self.reason.code,
            failed_at: self.reason.last_failure,
            key: self.record.key,
            replayed: self.mark.is_some(),
        }
    }
}

fn missing(topic: &str) -> Fault {
    Fault::fatal("topic-missing", format!("the dead-letter topic {topic} does not exist"))
        .hint("the first `pelton run` makes it, or create it")
}
