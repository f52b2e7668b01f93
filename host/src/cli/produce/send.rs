//! A chunk in one transaction, done again where the log asks for it.

use super::chunk::Chunk;
use crate::config::Application;
use crate::model::log::{Delivery, Log, Origin, Producer, Refusal, TopicRef};
use crate::model::{Fault, Verdict};

/// How often a chunk is tried before the log's reason is taken for an answer.
const ATTEMPTS: usize = 5;

pub(super) struct Sender {
    producer: Box<dyn Producer>,
    topic: TopicRef,
    sent: u64,
}

impl Sender {
    /// With `alone` the identity is the topic's: an earlier attempt that left a transaction open is aborted, and two at once cannot
    /// both succeed. Without it, producers of several processes do not disturb each other.
    pub(super) fn open(log: &dyn Log, application: &Application, topic: &str, alone: bool) -> Result<Self, Fault> {
        let mut id = format!("{}-produce-{topic}", application.id);
        if !alone {
            id = format!("{id}-{}", std::process::id());
        }
        let mut producer = log.producer(&id, Delivery::ExactlyOnce)?;
        let topic = producer.topic(topic)?;
        Ok(Sender { producer, topic, sent: 0 })
    }

    /// Records that are committed.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn send(&mut self, chunk: &Chunk) -> anyhow::Result<()> {
        let mut attempt = 1;
        loop {
            match self.attempt(chunk) {
                Ok(refused) if refused.is_empty() => break,
                Ok(refused) => return Err(self.refused(&refused)),
                Err(fault) if fault.verdict == Verdict::Transient && attempt < ATTEMPTS => {
                    tracing::warn!(attempt, "sending again: {fault}");
                    self.producer.abort()?;
                    attempt += 1;
                }
                Err(fault) => return Err(self.given_up(fault)),
            }
        }
        self.sent += chunk.len() as u64;
        Ok(())
    }

    fn attempt(&mut self, chunk: &Chunk) -> Result<Vec<Refusal>, Fault> {
        if chunk.len() == 0 {
            return Ok(vec![]);
        }
        self.producer.begin()?;
        for (line, partition, record) in chunk.iter() {
            self.producer.send(self.topic, partition, record, Origin { slot: 0, input: 0, offset: line })?;
        }
        let refused = self.producer.flush()?;
        if refused.is_empty() {
            self.producer.commit()?;
        }
        Ok(refused)
    }

    fn refused(&mut self, refused: &[Refusal]) -> anyhow::Error {
        let aborted = self.producer.abort();
        let lines = refused.iter().take(3).map(|r| format!("line {}: {} ({})", r.origin.offset, r.message, r.code));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let rest = refused.len().saturating_sub(3);
        let rest = if rest > 0 { format!("\nand {rest} more") } else { String::new() };
        let done = format!("the topic refused records; {} before them are committed", self.sent);
        match aborted {
            Ok(()) => anyhow::anyhow!("{lines}{rest}\n{done}"),
            Err(fault) => anyhow::anyhow!("{lines}{rest}\n{done}\nand aborting failed: {fault}"),
        }
    }

    fn given_up(&mut self, fault: Fault) -> anyhow::Error {
        // The log aborts an open transaction by itself when this process is gone; a failure here adds nothing.
        let _ = self.producer.abort();
        // nobody shares this producer's identity: whatever became of it, the command just did not get through
        let fault =
            if fault.verdict == Verdict::Fenced { Fault { verdict: Verdict::Transient, ..fault } } else { fault };
        fault.during(format!("producing, after {} committed records", self.sent)).into()
    }
}
