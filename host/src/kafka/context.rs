//! What librdkafka calls back: its logs, its errors, and the rebalances of a group.

use super::faults;
use super::member::Assignments;
use crate::model::Clock;
use rdkafka::ClientContext;
use rdkafka::TopicPartitionList;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use rdkafka::types::RDKafkaRespErr;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

/// A line of the same kind is written once in this time; what comes between is counted.
const QUIET: Duration = Duration::from_secs(10);

/// The context of every client. Consumers in a group have assignments too.
pub(super) struct Context {
    clock: Arc<dyn Clock>,
    assignments: Option<Assignments>,
    /// By kind: librdkafka tells of one failure by several kinds in turn.
    lines: Mutex<HashMap<String, Lines>>,
}

/// When a line of a kind was written last, and how many like it were held back since.
struct Lines {
    at: Duration,
    held: u64,
}

impl Context {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Context {
        Context { clock, assignments: None, lines: Mutex::default() }
    }

    pub(super) fn with_assignments(clock: Arc<dyn Clock>, assignments: Assignments) -> Context {
        Context { assignments: Some(assignments), ..Context::new(clock) }
    }

    pub(super) fn assignments(&self) -> Option<&Assignments> {
        self.assignments.as_ref()
    }

    /// Writes a line of librdkafka's: what it calls an error it mends by itself, so it is a warning here.
    pub(super) fn line(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        if (level as i32) > RDKafkaLogLevel::Warning as i32 {
            tracing::debug!(target: "pelton::kafka", facility, "{text}");
        } else if let Some(held) = self.due(facility) {
            tracing::warn!(target: "pelton::kafka", facility, held, "{text}");
        }
    }

    /// How many lines of this kind were held back, when it is time for one again.
    fn due(&self, kind: &str) -> Option<u64> {
        let now = self.clock.monotonic();
        let mut lines = self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match lines.get_mut(kind) {
            Some(last) if now < last.at + QUIET => {
                last.held += 1;
                None
            }
            Some(last) => {
                last.at = now;
                Some(std::mem::take(&mut last.held))
            }
            None => {
                lines.insert(kind.to_owned(), Lines { at: now, held: 0 });
                Some(0)
            }
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.line(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // The end of a partition is an event here, and it comes often.
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            self.line(RDKafkaLogLevel::Warning, "ERROR", reason);
        }
    }

    fn stats_raw(&self, _: &[u8]) {}
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, event: RDKafkaRespErr, list: &mut TopicPartitionList) {
        let Some(assignments) = &self.assignments else { return };
        let outcome = match event {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => assignments.assign(consumer, list),
            _ => assignments.revoke(consumer, list),
        };
        if let Err(error) = outcome {
            assignments.fail(faults::of(&error, "taking part in a rebalance"));
        }
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = usize;

    /// Reports are taken from the queue directly; what comes here belongs to a producer that is being dropped.
    fn delivery(&self, _: &DeliveryResult<'_>, _: usize) {}
}
