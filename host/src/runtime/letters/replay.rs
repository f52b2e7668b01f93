//! The replay: each letter once, back to its source topic or through the plugin, its records and its mark in one transaction.

use super::chunk::{Chunk, Target};
use super::plugin::ThroughPlugin;
use super::sender::Sender;
use super::{Found, Letter, Letters};
use crate::delivery::LetterFilter;
use crate::delivery::envelope::REPLAYS;
use crate::delivery::reason::original;
use crate::model::log::TopicInfo;
use crate::model::{Clock, Failure, Fault, Place, RecordRef, SystemClock, Verdict};
use std::sync::Arc;

/// What is to be replayed, and how.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    pub filter: LetterFilter,
    /// Most letters to replay.
    pub limit: u64,
    /// A letter that was replayed so often is refused. Does not hold through the plugin, which makes no loop.
    pub max_replays: u32,
    /// Runs the plugin on the letters here, instead of sending them to their source topic.
    pub through_plugin: bool,
    /// Says what would be done, and does nothing.
    pub dry_run: bool,
}

/// What came of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Letters that are done: committed, or in a dry run, would be.
    pub replayed: u64,
    /// Letters that stay as they are, each told by [`Event::Refused`].
    pub refused: u64,
}

/// What is told while a replay is at it.
#[derive(Debug)]
pub enum Event<'a> {
    /// So many more offsets of the dead-letter topic lie behind.
    Passed(u64),
    /// A letter is replayed and committed; in a dry run, would be.
    Replayed { place: Place, to: &'a str },
    /// A letter stays as it is.
    Refused { place: Place, failure: &'a Failure },
}

/// Whoever is told.
pub type Watch<'w> = &'w mut dyn FnMut(Event<'_>);

impl Letters<'_> {
    /// Replays the letters that `options.filter` admits and that have not been replayed, to the ends as they are now. A crash at any
    /// point and a second run give each letter once. Another replay or purge that begins meanwhile takes over, and this one ends:
    /// `Fenced` `replay-superseded`.
    pub fn replay(&self, options: &ReplayOptions, watch: Watch<'_>) -> Result<Replayed, Fault> {
        let way = Way::open(self, options)?;
        let sender = if options.dry_run { None } else { Some(Sender::open(self, way.topics())?) };
        let settled = sender.is_some();
        let mut run = Run { options, way, sender, chunk: Chunk::default(), taken: 0, done: Replayed::default(), watch };
        // after the fencing: whatever an earlier replay has committed is there to be read
        let result = self.marks(settled).and_then(|marks| self.visit(&marks, &mut |found| run.see(found)));
        match result.and_then(|()| run.commit()) {
            Ok(()) => Ok(run.done),
            Err(fault) => Err(given_up(fault, run.done.replayed)),
        }
    }
}

struct Run<'r> {
    options: &'r ReplayOptions,
    way: Way,
    /// `None` in a dry run.
    sender: Option<Sender>,
    chunk: Chunk,
    /// Letters that were taken for replay, those that stay as they are included: whoever limits them tries something out.
    taken: u64,
    done: Replayed,
    watch: Watch<'r>,
}

impl Run<'_> {
    fn see(&mut self, found: Found<'_>) -> Result<bool, Fault> {
        match found {
            Found::Passed(offsets) => (self.watch)(Event::Passed(offsets)),
            Found::Letter(letter) => {
                let wanted = letter.mark.is_none() && self.options.filter.admits(&letter.facts());
                if wanted && self.taken < self.options.limit {
                    self.take(letter)?;
                }
            }
        }
        Ok(self.taken < self.options.limit)
    }

    fn take(&mut self, letter: &Letter<'_>) -> Result<(), Fault> {
        self.taken += 1;
        if let Err(failure) = self.way.plan(letter, &mut self.chunk)? {
            self.refuse(letter.place, &failure);
        }
        if self.chunk.is_full() { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Result<(), Fault> {
        if let (Some(sender), false) = (&mut self.sender, self.chunk.is_empty()) {
            sender.commit(&mut self.chunk)?;
        }
        for letter in self.chunk.take() {
            match letter.refused {
                Some(failure) => self.refuse(letter.place, &failure),
                None => {
                    self.done.replayed += 1;
                    (self.watch)(Event::Replayed { place: letter.place, to: &letter.to });
                }
            }
        }
        Ok(())
    }

    fn refuse(&mut self, place: Place, failure: &Failure) {
        self.done.refused += 1;
        (self.watch)(Event::Refused { place, failure });
    }
}

/// The two ways of a letter.
enum Way {
    Source(ToSource),
    Plugin(Box<ThroughPlugin>),
}

impl Way {
    /// Everything that can be refused before anything is changed.
    fn open(letters: &Letters<'_>, options: &ReplayOptions) -> Result<Way, Fault> {
        Ok(match options.through_plugin {
            true => Way::Plugin(Box::new(ThroughPlugin::open(letters, options.dry_run)?)),
            false => Way::Source(ToSource::open(letters, options.max_replays)?),
        })
    }

    fn topics(&self) -> &[Arc<str>] {
        match self {
            Way::Source(way) => &way.names,
            Way::Plugin(way) => way.topics(),
        }
    }

    /// Puts a letter with what it becomes into the chunk, or says why it stays.
    fn plan(&mut self, letter: &Letter<'_>, chunk: &mut Chunk) -> Result<Result<(), Failure>, Fault> {
        if let Some(bytes) = letter.reason.truncated_from {
            return Ok(Err(truncated(letter, bytes)));
        }
        match self {
            Way::Source(way) => Ok(way.plan(letter, chunk)),
            Way::Plugin(way) => way.plan(letter, chunk),
        }
    }
}

/// Back to where the record was read.
struct ToSource {
    names: Vec<Arc<str>>,
    inputs: Vec<TopicInfo>,
    max_replays: u32,
    clock: SystemClock,
}

impl ToSource {
    fn open(letters: &Letters<'_>, max_replays: u32) -> Result<ToSource, Fault> {
        let mut inputs: Vec<TopicInfo> = Vec::new();
        for input in letters.processor.inputs.values() {
            inputs.extend(letters.log.topic(&input.topic)?);
        }
        inputs.sort_by(|a, b| a.name.cmp(&b.name));
        inputs.dedup_by(|a, b| a.name == b.name);
        let names = inputs.iter().map(|info| info.name.as_str().into()).collect();
        Ok(ToSource { names, inputs, max_replays, clock: SystemClock::default() })
    }

    fn plan(&self, letter: &Letter<'_>, chunk: &mut Chunk) -> Result<(), Failure> {
        let (reason, record) = (&letter.reason, letter.record);
        if reason.replays >= self.max_replays {
            return Err(too_often(reason.replays, self.max_replays));
        }
        let topic = self.inputs.iter().position(|input| input.name == reason.topic).ok_or_else(|| foreign(letter))?;
        if !(0..self.inputs[topic].partitions).contains(&reason.partition) {
            let message = format!("its source topic {} has no partition {} any more", reason.topic, reason.partition);
            return Err(Failure::new("source-gone", message));
        }
        let mut headers = original(record.headers);
        headers.add(REPLAYS.as_bytes(), Some((reason.replays + 1).to_string().as_bytes()));
        let headers = headers.iter().next().unwrap_or_default();
        let record = RecordRef { headers, timestamp: reason.timestamp.unwrap_or(record.timestamp), ..record };
        takes(&self.inputs[topic], &record, self.clock.wall_ms())?;
        chunk.add(letter.place, format!("{}/{}", reason.topic, reason.partition).into());
        chunk.push(Target { topic, partition: Some(reason.partition) }, record);
        Ok(())
    }
}

/// What the topic would refuse is known beforehand: a transaction that holds one such record is lost.
pub(super) fn takes(topic: &TopicInfo, record: &RecordRef<'_>, now: i64) -> Result<(), Failure> {
    match topic.limits.refusal(&topic.name, record, now) {
        Some((code, message)) => Err(Failure::new(code, message)),
        None => Ok(()),
    }
}

fn too_often(replays: u32, limit: u32) -> Failure {
    let message = format!("it has been replayed {replays} times, and the limit is {limit}");
    Failure::new("replay-limit", message)
}

/// Headers can be written by whoever writes into the dead-letter topic: nothing goes to a topic that the application does not name.
pub(super) fn foreign(letter: &Letter<'_>) -> Failure {
    let message = format!("its source topic {} is not an input of the processor, or is gone", letter.reason.topic);
    Failure::new("source-gone", message)
}

fn truncated(letter: &Letter<'_>, bytes: u64) -> Failure {
    let reason = &letter.reason;
    let source = format!("{}/{} offset {}", reason.topic, reason.partition, reason.offset);
    Failure::new(
        "truncated",
        format!("its {bytes} bytes were cut to fit the dead-letter topic; the record is at {source}"),
    )
}

fn given_up(fault: Fault, replayed: u64) -> Fault {
    let doing = format!("replaying, after {replayed} letters");
    match (fault.verdict, fault.code) {
        (Verdict::Fenced, "producer-fenced") => Fault::fenced(
            "replay-superseded",
            format!("{doing}: another replay or purge of these letters has taken over"),
        )
        .hint("what is committed stays so; let the other one finish; where there is none, the cluster was away for too long: run it again"),
        // an abort or a commit that the cluster did not answer
        (Verdict::Fenced, _) => Fault { verdict: Verdict::Transient, ..fault }
            .during(doing)
            .hint("run it again: what was committed is not replayed twice"),
        _ => fault.during(doing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fenced_producer_has_been_superseded() {
        let told = |fault: Fault| {
            let told = given_up(fault, 7);
            (told.verdict, told.code)
        };
        assert_eq!(told(Fault::fenced("producer-fenced", "x")), (Verdict::Fenced, "replay-superseded"));
        assert_eq!(told(Fault::fenced("commit-unknown", "x")), (Verdict::Transient, "commit-unknown"));
        assert_eq!(told(Fault::fenced("broker-away", "x")), (Verdict::Transient, "broker-away"));
        assert_eq!(told(Fault::fatal("letter-missing", "x")), (Verdict::Fatal, "letter-missing"));
    }
}
