//! A producer of the embedded log that writes down what is asked of it, and loses the answer of a commit where a test says so.

use crate::local::LocalLog;
use crate::model::log::{Delivery, Group, Log, OffsetCommit, Origin, Producer, Refusal, TopicRef};
use crate::model::{Fault, RecordRef};
use std::sync::{Arc, Mutex};

/// How a commit's answer is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Whether the log has committed in spite of it.
    pub(crate) committed: bool,
    /// What was acknowledged on every topic by the flush before, as Kafka tells it.
    pub(crate) acknowledged: i64,
}

/// Writes down calls as lines such as `send out`.
struct Recorder {
    inner: Box<dyn Producer>,
    topics: Vec<String>,
    calls: Arc<Mutex<Vec<String>>>,
    loss: Arc<Mutex<Option<Loss>>>,
}

pub(super) fn recorder(
    log: &LocalLog,
    calls: &Arc<Mutex<Vec<String>>>,
    loss: &Arc<Mutex<Option<Loss>>>,
) -> Box<dyn Producer> {
    let inner = log.producer("worker", Delivery::ExactlyOnce).unwrap();
    Box::new(Recorder { inner, topics: Vec::new(), calls: calls.clone(), loss: loss.clone() })
}

impl Recorder {
    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }
}

impl Producer for Recorder {
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault> {
        let topic = self.inner.topic(name)?;
        self.topics.resize(self.topics.len().max(topic.0 as usize + 1), String::new());
        self.topics[topic.0 as usize] = name.to_owned();
        Ok(topic)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.inner.begin()
    }

    fn send(&mut self, to: TopicRef, at: Option<i32>, record: RecordRef<'_>, origin: Origin) -> Result<(), Fault> {
        self.note(format!("send {}", self.topics[to.0 as usize]));
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
        match *self.loss.lock().unwrap() {
            Some(Loss { committed: false, .. }) => {}
            _ => self.inner.commit()?,
        }
        match *self.loss.lock().unwrap() {
            Some(_) => Err(Fault::fenced("producer-fenced", "committing")),
            None => Ok(()),
        }
    }

    fn abort(&mut self) -> Result<(), Fault> {
        self.note("abort");
        self.inner.abort()
    }

    fn acknowledged(&self, topic: TopicRef, partition: i32) -> Option<i64> {
        let early = self.loss.lock().unwrap().map(|loss| loss.acknowledged);
        early.or_else(|| self.inner.acknowledged(topic, partition))
    }
}
