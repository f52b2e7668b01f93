//! What librdkafka calls back: its logs, its errors, and the rebalances of a group.

use super::faults;
use super::member::Assignments;
use crate::model::Clock;
use rdkafka::ClientContext;
use rdkafka::TopicPartitionList;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::ProducerContext;
use rdkafka::types::RDKafkaRespErr;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A line of the same kind is written once in this time; what comes between is counted.
const QUIET: Duration = Duration::from_secs(10);
/// What a client says is old where nobody has listened for so long: it may be over since.
const OLD: Duration = Duration::from_secs(10);

/// The context of every client. Consumers in a group have assignments too.
pub(super) struct Context {
    clock: Arc<dyn Clock>,
    assignments: Option<Assignments>,
    told: Told,
    /// When everything that had come was read. Members are read all the time.
    caught_up: Mutex<Duration>,
    /// The failed connection that was told of last.
    failed: Mutex<String>,
}

/// What was written by any client of a cluster, by kind: an outage is one event, though each client tells of it.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<HashMap<String, Lines>>>);

/// When a line of a kind was written last, and how many like it were held back since.
struct Lines {
    at: Duration,
    held: u64,
}

/// The kind of a connection that failed, as librdkafka calls it.
const FAILED: &str = "FAIL";

impl Context {
    pub(super) fn new(clock: Arc<dyn Clock>, told: Told) -> Context {
        let caught_up = Mutex::new(clock.monotonic());
        Context { clock, assignments: None, told, caught_up, failed: Mutex::default() }
    }

    pub(super) fn with_assignments(self, assignments: Assignments) -> Context {
        Context { assignments: Some(assignments), ..self }
    }

    pub(super) fn assignments(&self) -> Option<&Assignments> {
        self.assignments.as_ref()
    }

    /// Whoever reads what the client says has come to its end.
    pub(super) fn caught_up(&self) {
        *lock(&self.caught_up) = self.clock.monotonic();
    }

    /// Writes a line of librdkafka's: what it calls an error it mends by itself, so it is a warning here.
    pub(super) fn line(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        if facility == FAILED {
            text.clone_into(&mut lock(&self.failed));
        }
        match self.due(level, facility) {
            Some(held) => tracing::warn!(target: "pelton::kafka", facility, held, "{text}"),
            None => tracing::debug!(target: "pelton::kafka", facility, "{text}"),
        }
    }

    /// Writes an error of librdkafka's, where no line said the same before. That brokers are away is told by members alone: they hear
    /// it when it happens, others perhaps long after.
    pub(super) fn trouble(&self, code: Option<Code>, text: &str) {
        let away = code.is_some_and(|code| faults::of_code(code, "").code == faults::AWAY);
        // an end of a partition is an event here, and it comes often
        let silent = code == Some(Code::PartitionEOF) || away && self.assignments.is_none();
        if silent || lock(&self.failed).ends_with(text) {
            tracing::debug!(target: "pelton::kafka", "{text}");
        } else {
            self.line(RDKafkaLogLevel::Warning, if away { FAILED } else { "ERROR" }, text);
        }
    }

    /// How many lines of this kind were held back, when it is time for one.
    fn due(&self, level: RDKafkaLogLevel, kind: &str) -> Option<u64> {
        let now = self.clock.monotonic();
        let old = self.assignments.is_none() && now > *lock(&self.caught_up) + OLD;
        if old || level as i32 > RDKafkaLogLevel::Warning as i32 { None } else { self.told.due(kind, now) }
    }
}

impl Told {
    fn due(&self, kind: &str, now: Duration) -> Option<u64> {
        let mut lines = lock(&self.0);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        self.line(level, facility, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble(error.rdkafka_error_code(), reason);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SystemClock;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::SeqCst))
        }

        fn wall_ms(&self) -> i64 {
            SystemClock::default().wall_ms()
        }
    }

    const WARNING: RDKafkaLogLevel = RDKafkaLogLevel::Warning;

    #[test]
    fn an_outage_is_one_line_whoever_tells_of_it() {
        let clock = Arc::new(Hand::default());
        let told = Told::default();
        let [one, other] = [(); 2].map(|()| Context::new(clock.clone(), told.clone()));
        assert_eq!(one.due(WARNING, FAILED), Some(0));
        assert_eq!((one.due(WARNING, FAILED), other.due(WARNING, FAILED)), (None, None));
        assert_eq!(other.due(WARNING, "GETPID"), Some(0), "another kind");
        assert_eq!(other.due(RDKafkaLogLevel::Info, "TERM"), None);
        clock.0.store(10, Ordering::SeqCst);
        assert_eq!(other.due(WARNING, FAILED), Some(2));
    }

    #[test]
    fn what_was_said_while_nobody_listened_is_no_warning() {
        let clock = Arc::new(Hand::default());
        let context = Context::new(clock.clone(), Told::default());
        clock.0.store(60, Ordering::SeqCst);
        assert_eq!(context.due(WARNING, FAILED), None);
        context.caught_up();
        assert_eq!(context.due(WARNING, FAILED), Some(0));
    }

    /// How many lines of errors were written or held back.
    fn errors(context: &Context) -> usize {
        lock(&context.told.0).contains_key("ERROR").into()
    }

    #[test]
    fn an_error_is_no_second_line_for_a_connection_that_failed() {
        let context = Context::new(Arc::new(Hand::default()), Told::default());
        for code in [Code::AllBrokersDown, Code::BrokerTransportFailure, Code::PartitionEOF] {
            context.trouble(Some(code), "2/2 brokers are down");
        }
        context.line(WARNING, FAILED, "[thrd:b/1]: b/1: SASL authentication error");
        context.trouble(Some(Code::Authentication), "b/1: SASL authentication error");
        assert_eq!(errors(&context), 0);
        context.trouble(Some(Code::TopicAuthorizationFailed), "t: not allowed");
        assert_eq!(errors(&context), 1);
    }
}
