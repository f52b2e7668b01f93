//! A producer: transactions (exactly once), or plain sends followed by plain commits of offsets (at least once).
//!
//! Its client reports by events, and rdkafka's own way of serving them lasts 100 ms a round: reports are taken from the queue here.
//! librdkafka keeps a record until its report has been served, so every wait of this file serves them.

use super::context::Context;
use super::group::{KafkaGroup, commits};
use super::raw::{Event, Queue, Topic, hurry};
use super::reports::{Ledger, Sent};
use super::{CALL, Cluster, faults, options};
use crate::model::log::{Delivery, Group, OffsetCommit, Origin, Producer, Refusal, TopicRef};
use crate::model::{Fault, RecordRef, Verdict};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::producer::{BaseProducer, Producer as _};
use std::sync::Arc;
use std::time::Duration;

/// librdkafka's own `batch.size`.
const BATCH_BYTES: u64 = 1_000_000;

/// What a batch needs beside its records.
const BATCH_OVERHEAD: u64 = 512;

/// Reports are served after this many sends at the latest.
const SERVE_AFTER: usize = 1024;

/// How long one wait for reports lasts before the time is looked at.
const ROUND: Duration = Duration::from_millis(100);

/// Between tries of a transactional call.
const PAUSE: Duration = Duration::from_millis(10);

/// Rounds that a send waits for room in a full queue.
const FULL_ROUNDS: usize = 50;

pub(super) struct KafkaProducer {
    client: Client,
    cluster: Arc<Cluster>,
    id: String,
    delivery: Delivery,
    ledger: Ledger,
    open: bool,
    /// Sends since reports were last served.
    unserved: usize,
    /// At least once: what to commit after the outputs are acknowledged.
    offsets: Vec<(KafkaGroup, Vec<OffsetCommit>)>,
}

/// A client with what belongs to it, in the order in which it must be dropped.
struct Client {
    topics: Vec<Topic>,
    names: Vec<String>,
    queue: Queue,
    producer: BaseProducer<Context>,
    batch_bytes: u64,
    lingers: bool,
}

impl KafkaProducer {
    pub(super) fn open(cluster: &Arc<Cluster>, id: &str, delivery: Delivery) -> Result<KafkaProducer, Fault> {
        let client = Client::open(cluster, id, delivery, None)?;
        Ok(KafkaProducer {
            client,
            cluster: Arc::clone(cluster),
            id: id.to_owned(),
            delivery,
            ledger: Ledger::default(),
            open: false,
            unserved: 0,
            offsets: Vec::new(),
        })
    }

    /// Makes batches fit a topic that takes less than the usual. librdkafka does not split a batch that is refused as too large, so
    /// small records would be blamed; the size is fixed when a client is made.
    fn fit(&mut self, max_message_bytes: u64) -> Result<(), Fault> {
        let bytes = max_message_bytes.saturating_sub(BATCH_OVERHEAD).max(1);
        if bytes >= self.client.batch_bytes {
            return Ok(());
        }
        if self.open {
            let message = format!("producer {} must be made anew for smaller batches, after its transaction", self.id);
            return Err(Fault::transient("producer-busy", message));
        }
        self.drain(CALL);
        self.renew(Some(bytes))
    }

    /// Replaces the client by a new one of the same id, and resolves the topics again in the same order.
    fn renew(&mut self, batch_bytes: Option<u64>) -> Result<(), Fault> {
        let mut client = Client::open(&self.cluster, &self.id, self.delivery, batch_bytes)?;
        for name in &self.client.names {
            client.resolve(name)?;
        }
        self.client = client;
        Ok(())
    }

    /// Serves what there is to report, waiting up to `wait` for the first. Whether there was something.
    fn serve(&mut self, wait: Duration) -> bool {
        let (ledger, client) = (&mut self.ledger, &self.client);
        let context = client.producer.client().context();
        self.unserved = 0;
        let served = client.queue.serve(wait, &mut |event| match event {
            Event::Report(report) => ledger.settle(&report, |topic| client.name(topic)),
            Event::Log { level, facility, text } => context.line(level_of(level), facility, text),
            Event::Error(code, text) => context.trouble(Some(code), text),
        });
        if !served {
            context.caught_up();
        }
        served
    }

    /// Waits until everything sent is acknowledged, or something is refused: librdkafka sends nothing more in a transaction that can
    /// only be aborted, so what waits behind a refused record stays. Whether there is an outcome in time.
    fn acknowledge(&mut self) -> bool {
        let deadline = self.now() + self.budget();
        self.hurry();
        while self.in_flight() {
            let served = self.serve(ROUND);
            if !served && !self.ledger.is_clean() {
                return true;
            }
            if !served && self.now() > deadline {
                return false;
            }
        }
        true
    }

    /// Waits until nothing is on its way. Whether that was reached in time.
    fn drain(&mut self, within: Duration) -> bool {
        let deadline = self.now() + within;
        self.hurry();
        while self.in_flight() {
            if !self.serve(ROUND) && self.now() > deadline {
                return false;
            }
        }
        true
    }

    /// After a send: serves reports now and then, or at once where the one record to blame is sought.
    fn sent(&mut self) -> Result<(), Fault> {
        self.unserved += 1;
        if self.ledger.one_by_one() && !self.acknowledge() {
            return Err(self.unacknowledged());
        }
        if self.unserved >= SERVE_AFTER {
            while self.serve(Duration::ZERO) {}
        }
        Ok(())
    }

    /// What ended the client, where something has: what it says of its records then is that they were purged.
    fn told(&self, fault: Fault) -> Fault {
        match self.client.producer.client().fatal_error() {
            Some((code, reason)) => faults::producer_ended(code, &reason, self.doing("sending records")),
            None => fault,
        }
    }

    fn unacknowledged(&self) -> Fault {
        Fault::transient("broker-away", self.doing("waiting for acknowledgements") + ": none in time")
    }

    /// Makes what lingers go out now. Once per wait: librdkafka's sender spins while somebody flushes and it may not send, and what is
    /// missed here goes when its `linger.ms` is over.
    fn hurry(&self) {
        if self.client.lingers && self.in_flight() {
            hurry(self.client.producer.client());
        }
    }

    fn in_flight(&self) -> bool {
        self.client.producer.in_flight_count() > 0
    }

    fn now(&self) -> Duration {
        self.cluster.clock.monotonic()
    }

    /// The time that a transaction may take at most; what is not done by then the coordinator has aborted.
    fn budget(&self) -> Duration {
        self.cluster.settings.transaction_timeout
    }

    /// Repeats a transactional call while it may go on where it was left (librdkafka resumes it), for as long as the transaction may
    /// last.
    fn persist(&mut self, call: impl Fn(&BaseProducer<Context>) -> KafkaResult<()>) -> KafkaResult<()> {
        let deadline = self.now() + self.budget();
        loop {
            let answer = call(&self.client.producer);
            let again = matches!(&answer, Err(KafkaError::Transaction(error)) if error.is_retriable());
            while self.serve(Duration::ZERO) {}
            if !again || self.now() > deadline {
                return answer;
            }
            // Some answers come at once: no spinning.
            self.serve(PAUSE);
        }
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} of producer {}", self.id)
    }

    /// What a commit's failure means: nothing was committed where an abort is asked for; else nobody here knows.
    fn uncommitted(&self, error: &KafkaError) -> Fault {
        let fault = faults::of(error, self.doing("committing the transaction"));
        let known = matches!(error, KafkaError::Transaction(error) if error.txn_requires_abort());
        match fault.verdict {
            Verdict::Transient if !known => Fault { verdict: Verdict::Fenced, code: "commit-unknown", ..fault },
            _ => fault,
        }
    }

    fn commit_offsets(&mut self) -> Result<(), Fault> {
        for (group, offsets) in std::mem::take(&mut self.offsets) {
            group.commit(&offsets)?;
        }
        Ok(())
    }

    fn finished(&mut self) {
        self.open = false;
        self.offsets.clear();
        self.ledger.forget();
    }

    fn abort_transaction(&mut self) -> Result<(), Fault> {
        while self.serve(Duration::ZERO) {}
        // The call waits for the reports of what it purges, which only this thread can serve: short waits, and serving between.
        let wait = if self.in_flight() { Duration::from_millis(20) } else { CALL };
        let ended = self.persist(|producer| producer.abort_transaction(wait));
        self.open = false;
        ended.map_err(|error| {
            let fault = faults::of(&error, self.doing("aborting the transaction"));
            // A new producer of the same id aborts what this one could not.
            if fault.verdict == Verdict::Transient { Fault { verdict: Verdict::Fenced, ..fault } } else { fault }
        })
    }
}

impl Producer for KafkaProducer {
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault> {
        if let Some(known) = self.client.names.iter().position(|known| known == name) {
            return Ok(TopicRef(known as u32));
        }
        let Some(info) = self.cluster.topic(name)? else {
            let fault = Fault::fatal("topic-missing", format!("topic {name} does not exist"));
            return Err(fault.hint("create the topic, or set create_topics"));
        };
        self.fit(info.limits.max_message_bytes)?;
        self.client.resolve(name)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        if self.open {
            return Ok(());
        }
        if self.delivery == Delivery::ExactlyOnce {
            let begun = self.client.producer.begin_transaction();
            begun.map_err(|error| faults::of(&error, self.doing("beginning a transaction")))?;
        }
        self.open = true;
        Ok(())
    }

    fn send(
        &mut self,
        to: TopicRef,
        partition: Option<i32>,
        record: RecordRef<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        // librdkafka takes 0 for "now".
        let timestamp = if record.timestamp == 0 { 1 } else { record.timestamp };
        let tag = self.ledger.add(Sent { origin, topic: to.0, placed: partition.is_some() });
        for _ in 0..FULL_ROUNDS {
            let Some(topic) = self.client.topics.get(to.0 as usize) else { break };
            match topic.produce(partition, record, timestamp, tag) {
                Ok(()) => return self.sent(),
                Err(Code::QueueFull) => drop(self.serve(ROUND)),
                Err(code) => {
                    let unsent = self.ledger.unsend(code, &self.client.name(to.0));
                    return unsent.map_err(|fault| self.told(fault));
                }
            }
        }
        self.ledger.unsend(Code::QueueFull, &self.client.name(to.0))
    }

    fn flush(&mut self) -> Result<Vec<Refusal>, Fault> {
        match self.acknowledge() {
            true => self.ledger.outcome().map_err(|fault| self.told(fault)),
            false => Err(self.unacknowledged()),
        }
    }

    fn send_offsets(&mut self, group: &dyn Group, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        let Some(group) = group.as_any().downcast_ref::<KafkaGroup>() else {
            return Err(Fault::fatal("group-of-another-log", format!("group {} is not this cluster's", group.name())));
        };
        self.cluster.check(offsets)?;
        if self.delivery == Delivery::AtLeastOnce {
            self.offsets.push((group.clone(), offsets.to_vec()));
            return Ok(());
        }
        let (list, metadata) = (commits(offsets)?, group.metadata()?);
        let doing = format!("sending the offsets of group {}", group.name());
        self.persist(|producer| producer.send_offsets_to_transaction(&list, &metadata, CALL))
            .map_err(|error| faults::of(&error, doing))
    }

    fn commit(&mut self) -> Result<(), Fault> {
        let refused = self.flush()?;
        if !refused.is_empty() || !self.ledger.is_clean() {
            return Err(Fault::transient(
                "outputs-refused",
                self.doing("committing the transaction") + ": records were refused",
            ));
        }
        match self.delivery {
            Delivery::AtLeastOnce => self.commit_offsets()?,
            Delivery::ExactlyOnce => {
                let ended = self.persist(|producer| producer.commit_transaction(CALL));
                ended.map_err(|error| self.uncommitted(&error))?;
            }
        }
        self.finished();
        Ok(())
    }

    fn abort(&mut self) -> Result<(), Fault> {
        let was_open = std::mem::take(&mut self.open);
        if was_open && self.delivery == Delivery::ExactlyOnce {
            self.abort_transaction()?;
        }
        // Tags are given anew: nothing may be on its way.
        if !self.drain(self.budget()) {
            let message = self.doing("aborting the transaction") + ": outputs are still on their way";
            return Err(Fault::fenced("producer-fenced", message));
        }
        let refused = self.ledger.has_refused();
        self.finished();
        // librdkafka 2.12 goes on with sequence numbers that count the refused batch, and the broker does not: the next transaction
        // would be lost for nothing. Where no new client can be had now, it is.
        if refused && let Err(fault) = self.renew(Some(self.client.batch_bytes)) {
            tracing::debug!(%fault, "the producer goes on with its client");
        }
        Ok(())
    }

    fn acknowledged(&self, topic: TopicRef, partition: i32) -> Option<i64> {
        self.ledger.acknowledged(topic.0, partition)
    }
}

impl Client {
    fn open(cluster: &Cluster, id: &str, delivery: Delivery, batch: Option<u64>) -> Result<Client, Fault> {
        let doing = format!("opening producer {id}");
        let config = options::producer(&cluster.settings, id, delivery, batch);
        let producer: BaseProducer<Context> =
            config.create_with_context(cluster.context()).map_err(|error| faults::of(&error, &doing))?;
        if delivery == Delivery::ExactlyOnce {
            init(&producer).map_err(|error| faults::of(&error, &doing))?;
        }
        let queue = Queue::main(producer.client())
            .ok_or_else(|| Fault::transient("kafka-error", format!("{doing}: the client has no queue")))?;
        let batch_bytes = config.get("batch.size").and_then(|bytes| bytes.parse().ok()).unwrap_or(BATCH_BYTES);
        let lingers = config.get("linger.ms") != Some("0");
        Ok(Client { topics: Vec::new(), names: Vec::new(), queue, producer, batch_bytes, lingers })
    }

    fn resolve(&mut self, name: &str) -> Result<TopicRef, Fault> {
        let topic = Topic::resolve(self.producer.client(), name)
            .ok_or_else(|| Fault::fatal("name-refused", format!("{name} is not a topic's name")))?;
        self.topics.push(topic);
        self.names.push(name.to_owned());
        Ok(TopicRef(self.topics.len() as u32 - 1))
    }

    fn name(&self, topic: u32) -> String {
        self.names.get(topic as usize).cloned().unwrap_or_default()
    }
}

/// Fences earlier producers of the id. Tried twice: the coordinator may still load its log, or finish the old transaction.
fn init(producer: &BaseProducer<Context>) -> KafkaResult<()> {
    match producer.init_transactions(CALL) {
        Err(KafkaError::Transaction(error)) if error.is_retriable() => producer.init_transactions(CALL),
        answer => answer,
    }
}

fn level_of(level: i32) -> RDKafkaLogLevel {
    match level {
        i32::MIN..=3 => RDKafkaLogLevel::Error,
        4 => RDKafkaLogLevel::Warning,
        5 | 6 => RDKafkaLogLevel::Info,
        _ => RDKafkaLogLevel::Debug,
    }
}
