//! The producer of a replay: one chunk with its marks in one transaction, done again where the log asks for it.

use super::Letters;
use super::chunk::Chunk;
use crate::delivery::Mark;
use crate::model::failpoint::hit;
use crate::model::log::{Delivery, Origin, Producer, Refusal, TopicRef};
use crate::model::{Clock, Failure, Fault, HeadersRef, Place, RecordRef, SystemClock, Verdict, ids};
use std::sync::Arc;

/// How often a transaction is tried before the log's reason is taken for an answer.
const ATTEMPTS: usize = 5;
/// Marks that are cleared in one transaction.
const TOMBSTONES: usize = 1000;

/// What the slot of an origin says: which kind of record was refused.
const RECORD: u16 = 0;
const MARK: u16 = 1;

pub(super) struct Sender {
    producer: Box<dyn Producer>,
    /// By index of [`super::chunk::Target::topic`].
    topics: Vec<TopicRef>,
    marks: TopicRef,
    by: Arc<str>,
    /// Id of the dead-letter topic.
    letters: Arc<str>,
    clock: SystemClock,
}

impl Sender {
    /// Fences whoever works on the letters of this processor now: from here on it commits nothing.
    pub(super) fn open(letters: &Letters<'_>, topics: &[Arc<str>]) -> Result<Sender, Fault> {
        let marks = letters.ensure_marks()?;
        let by = ids::letters_id(&letters.application.id, &letters.processor.name);
        let mut producer = letters.log.producer(&by, Delivery::ExactlyOnce)?;
        let topics = topics.iter().map(|topic| producer.topic(topic)).collect::<Result<_, _>>()?;
        let marks = producer.topic(&marks)?;
        let (by, letters) = (by.into(), letters.topic.id.as_str().into());
        Ok(Sender { producer, topics, marks, by, letters, clock: SystemClock::default() })
    }

    /// Commits a chunk. Letters whose records the log refuses are marked so in the chunk, and the rest is committed.
    pub(super) fn commit(&mut self, chunk: &mut Chunk) -> Result<(), Fault> {
        let mut attempt = 1;
        loop {
            match self.attempt(chunk) {
                Ok(refused) if refused.is_empty() => return Ok(()),
                Ok(refused) => {
                    self.producer.abort()?;
                    refused.into_iter().for_each(|refusal| refuse(chunk, refusal));
                    // fewer are left each time: these attempts end by themselves
                    attempt = 1;
                }
                Err(fault) => attempt = self.again(fault, attempt)?,
            }
        }
    }

    /// Deletes marks whose letters are gone.
    pub(super) fn clear(&mut self, places: &[Place]) -> Result<(), Fault> {
        for some in places.chunks(TOMBSTONES) {
            let mut attempt = 1;
            while let Err(fault) = self.tombstones(some) {
                attempt = self.again(fault, attempt)?;
            }
        }
        Ok(())
    }

    /// Aborts what has failed. The number of the next attempt, where there is to be one.
    fn again(&mut self, fault: Fault, attempt: usize) -> Result<usize, Fault> {
        if fault.verdict == Verdict::Transient && attempt < ATTEMPTS {
            tracing::warn!(attempt, "sending again: {fault}");
            // a cluster that is away cannot abort either, which says nothing new
            return self.producer.abort().map(|()| attempt + 1).map_err(|_| fault);
        }
        // The log aborts an open transaction by itself when this process is gone; a failure here adds nothing.
        let _ = self.producer.abort();
        Err(fault)
    }

    fn attempt(&mut self, chunk: &Chunk) -> Result<Vec<Refusal>, Fault> {
        if chunk.letters().next().is_none() {
            return Ok(Vec::new());
        }
        self.producer.begin()?;
        for (letter, target, record) in chunk.records() {
            let origin = Origin { slot: RECORD, input: 0, offset: letter as i64 };
            self.producer.send(self.topics[target.topic], target.partition, record, origin)?;
        }
        for (letter, planned) in chunk.letters() {
            self.mark(planned.place, Some(planned.to.clone()), letter)?;
        }
        let refused = self.producer.flush()?;
        if refused.is_empty() {
            tracing::debug!(letters = chunk.letters().count(), "committing replayed letters");
            hit("dlq-replay-before-commit");
            self.producer.commit()?;
            hit("dlq-replay-after-commit");
        }
        Ok(refused)
    }

    fn tombstones(&mut self, places: &[Place]) -> Result<(), Fault> {
        self.producer.begin()?;
        places.iter().try_for_each(|place| self.mark(*place, None, 0))?;
        self.producer.commit()
    }

    /// Writes a mark, or deletes it where `to` is `None`.
    fn mark(&mut self, place: Place, to: Option<Arc<str>>, letter: usize) -> Result<(), Fault> {
        let at = self.clock.wall_ms();
        let mark = |to| Mark { at, by: self.by.clone(), to, topic: self.letters.clone() }.encode();
        let (key, value) = (place.to_string(), to.map(mark));
        let record = RecordRef {
            key: Some(key.as_bytes()),
            value: value.as_deref().map(str::as_bytes),
            headers: HeadersRef::default(),
            timestamp: at,
        };
        self.producer.send(self.marks, Some(0), record, Origin { slot: MARK, input: 0, offset: letter as i64 })
    }
}

fn refuse(chunk: &mut Chunk, refusal: Refusal) {
    let Refusal { origin, code, message } = refusal;
    let message = if origin.slot == MARK { format!("its mark: {message}") } else { message };
    chunk.refuse(origin.offset as usize, Failure::new(code, message));
}
