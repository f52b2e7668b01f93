//! A producer of the embedded log that writes down what is asked of it, and loses the answer of a commit where a test says so.

use crate::local::LocalLog;
use crate::model::log::{Delivery, Group, Log, OffsetCommit, Origin, Producer, Refusal, TopicRef};
use crate::model::{Fault, RecordRef, TopicPartition};
use std::sync::{Arc, Mutex};

/// How a commit's answer is lost. What was sent is acknowledged by the flush before, as on Kafka.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Whether the log has committed in spite of it.
    pub(crate) committed: bool,
}

/// Writes down calls as lines such as `send out`.
struct Recorder {
    inner: Box<dyn Producer>,
    log: LocalLog,
    delivery: Delivery,
    /// Name of each topic, and how many records were sent to it since the last commit or abort.
    topics: Vec<(String, i64)>,
    calls: Arc<Mutex<Vec<String>>>,
    loss: Arc<Mutex<Option<Loss>>>,
}

pub(super) fn recorder(
    log: &LocalLog,
    calls: &Arc<Mutex<Vec<String>>>,
    loss: &Arc<Mutex<Option<Loss>>>,
    delivery: Delivery,
) -> Box<dyn Producer> {
    let inner = log.producer("worker", delivery).unwrap();
    let (log, topics) = (log.clone(), Vec::new());
    Box::new(Recorder { inner, log, delivery, topics, calls: calls.clone(), loss: loss.clone() })
}

impl Recorder {
    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    fn forget(&mut self) {
        self.topics.iter_mut().for_each(|(_, sent)| *sent = 0);
    }

    /// One past what the open transaction has sent to a topic.
    fn expected(&self, topic: TopicRef, partition: i32) -> Option<i64> {
        let (name, sent) = &self.topics[topic.0 as usize];
        let end = self.log.ends(&TopicPartition::new(name.as_str(), partition)).unwrap().end;
        (*sent > 0).then_some(end + sent)
    }
}

impl Producer for Recorder {
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault> {
        let topic = self.inner.topic(name)?;
        self.topics.resize(self.topics.len().max(topic.0 as usize + 1), (String::new(), 0));
        self.topics[topic.0 as usize].0 = name.to_owned();
        Ok(topic)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.inner.begin()
    }

    fn send(&mut self, to: TopicRef, at: Option<i32>, record: RecordRef<'_>, origin: Origin) -> Result<(), Fault> {
        let (name, sent) = &mut self.topics[to.0 as usize];
        *sent += 1;
        let call = format!("send {name}");
        self.note(call);
        self.inner.send(to, at, record, origin)
    }

    fn flush(&mut self) -> Result<Vec<Refusal>, Fault> {
        self.note("flush");
        self.inner.flush()
    }

    fn send_offsets(&mut self, group: &dyn Group, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        self.note("offsets");
        self.inner.send_offsets(group, offsets)
    }

    fn commit(&mut self) -> Result<(), Fault> {
        self.note("commit");
        let loss = *self.loss.lock().unwrap();
        if loss.is_none_or(|loss| loss.committed) {
            self.inner.commit()?;
        }
        self.forget();
        match loss {
            Some(_) => Err(Fault::fenced("producer-fenced", "committing")),
            None => Ok(()),
        }
    }

    fn abort(&mut self) -> Result<(), Fault> {
        self.note("abort");
        self.forget();
        self.inner.abort()
    }

    fn acknowledged(&self, topic: TopicRef, partition: i32) -> Option<i64> {
        let lost = self.loss.lock().unwrap().is_some() && self.delivery == Delivery::ExactlyOnce;
        let early = if lost { self.expected(topic, partition) } else { None };
        early.or_else(|| self.inner.acknowledged(topic, partition))
    }
}
