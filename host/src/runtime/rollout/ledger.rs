//! The topic of versions: read to its end, and changed under a lock that is the fencing of one transactional id.

use crate::model::failpoint::hit;
use crate::model::log::{Delivery, Log, Origin, Producer, TopicInfo, TopicSpec};
use crate::model::{Batch, Fault, HeadersRef, RecordRef, TopicPartition, Verdict, ids};
use crate::runtime::walk::{Stretch, walk};
use crate::versions::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The only partition.
const PARTITION: i32 = 0;
/// No input record has made this one.
const ORIGIN: Origin = Origin { slot: 0, input: 0, offset: 0 };

/// What the topic says, up to an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// By processor.
    pub records: BTreeMap<String, Record>,
    /// The next offset to read.
    pub position: i64,
}

/// The topic of an application.
#[derive(Clone)]
pub(in crate::runtime) struct Ledger {
    pub log: Arc<dyn Log>,
    application: String,
}

/// How the topic is made.
pub(in crate::runtime) fn spec(application: &str) -> TopicSpec {
    let properties = vec![("cleanup.policy".to_owned(), "compact".to_owned())];
    TopicSpec { name: ids::versions_topic(application), partitions: 1, replication: None, properties }
}

/// Refuses a topic that would forget, or scatter what is in it.
pub(in crate::runtime) fn check(info: &TopicInfo) -> Result<(), Fault> {
    if info.limits.compact && !info.limits.delete && info.partitions == 1 {
        return Ok(());
    }
    let message = format!("topic {}: it holds the active versions, and would forget or scatter them", info.name);
    Err(Fault::fatal("versions-topic-unfit", message)
        .hint("give it one partition and cleanup.policy = compact; or delete it while no host runs, which forgets the versions"))
}

impl Known {
    pub(super) fn take(&mut self, batch: &Batch) -> Result<Vec<Record>, Fault> {
        let mut new = Vec::new();
        for (_, record) in batch.iter() {
            let (Some(key), Some(value)) = (record.key, record.value) else { continue };
            let found = Record::decode(value)?;
            if found.processor.as_bytes() == key {
                self.records.insert(found.processor.clone(), found.clone());
                new.push(found);
            }
        }
        Ok(new)
    }
}

impl Ledger {
    pub(in crate::runtime) fn new(log: Arc<dyn Log>, application: &str) -> Ledger {
        Ledger { log, application: application.to_owned() }
    }

    pub(super) fn place(&self) -> TopicPartition {
        TopicPartition::new(ids::versions_topic(&self.application), PARTITION)
    }

    /// Everything that is committed now. Nothing where the topic is not there yet.
    pub(super) fn read(&self) -> Result<Known, Fault> {
        if self.log.topic(&self.place().topic)?.is_none() {
            return Ok(Known::default());
        }
        self.read_to_end()
    }

    /// Writes the record that `next` makes of what is there; nothing where it makes none. Whoever else is at it is fenced: the last to
    /// ask has the lock, and what those before have not committed by then fails.
    ///
    /// `Transient` `deploy-overtaken`: somebody else has just taken the lock.
    pub(super) fn change<T>(
        &self,
        next: impl FnOnce(&Known) -> Result<(Option<Record>, T), Fault>,
    ) -> Result<(Option<Record>, T), Fault> {
        let mut producer = self.log.producer(&ids::deploy_id(&self.application), Delivery::ExactlyOnce)?;
        let (record, result) = next(&self.read_to_end()?)?;
        if let Some(record) = &record {
            self.commit(&mut *producer, record).map_err(overtaken)?;
        }
        Ok((record, result))
    }

    fn read_to_end(&self) -> Result<Known, Fault> {
        let (partition, mut known) = (self.place(), Known::default());
        let ends = self.log.ends(&partition)?;
        let stretch = Stretch { partition, from: ends.start, to: ends.end, settled: true };
        walk::<Fault>(&*self.log, &stretch, &mut |batch, _| known.take(batch).map(|_| true))?;
        known.position = ends.end;
        Ok(known)
    }

    fn commit(&self, producer: &mut dyn Producer, record: &Record) -> Result<(), Fault> {
        let value = record.encode()?;
        let (key, headers) = (Some(record.processor.as_bytes()), HeadersRef::default());
        let line = RecordRef { key, value: Some(&value), headers, timestamp: record.time_ms };
        let to = producer.topic(&self.place().topic)?;
        producer.begin()?;
        producer.send(to, Some(PARTITION), line, ORIGIN)?;
        if let Some(refusal) = producer.flush()?.into_iter().next() {
            producer.abort()?;
            let message = format!("topic {} refuses the record of a version: {}", self.place().topic, refusal.message);
            return Err(Fault::fatal("version-refused", message).hint("check the topic's limits"));
        }
        hit("deploy-before-commit");
        producer.commit()?;
        hit("deploy-after-commit");
        Ok(())
    }
}

fn overtaken(fault: Fault) -> Fault {
    match fault.verdict {
        Verdict::Fenced => Fault::transient("deploy-overtaken", "somebody else has changed a version at this moment")
            .hint("look at `pelton history`, and try again"),
        _ => fault,
    }
}
