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
        self.read_on(Known::default())
    }

    /// Writes the record that `next` makes of what is there; nothing where it makes none. What is `known` already is not read again.
    /// Whoever else is at it is fenced: the last to ask has the lock, and what those before have not committed by then fails.
    ///
    /// `Transient` `deploy-overtaken`: somebody else has just taken the lock.
    pub(super) fn change(
        &self,
        known: Known,
        next: impl FnOnce(&Known) -> Result<Option<Record>, Fault>,
    ) -> Result<Option<Record>, Fault> {
        let mut producer = self.log.producer(&ids::deploy_id(&self.application), Delivery::ExactlyOnce)?;
        let record = next(&self.read_on(known)?)?;
        if let Some(record) = &record
            && let Err(fault) = self.commit(&mut *producer, record)
        {
            drop(producer);
            self.resolve(record, fault)?;
        }
        Ok(record)
    }

    /// A commit that failed leaves open whether its record is there: looked up. What failed in passing is written once more, where
    /// nobody else was quicker.
    fn resolve(&self, record: &Record, fault: Fault) -> Result<(), Fault> {
        let again = match fault.verdict {
            Verdict::Fenced => None,
            Verdict::Transient => Some(self.log.producer(&ids::deploy_id(&self.application), Delivery::ExactlyOnce)?),
            _ => return Err(fault),
        };
        let known = self.read()?;
        let found = known.records.get(&record.processor);
        let other = |now: &&Record| {
            now.sequence > record.sequence || now.sequence == record.sequence && now.digest != record.digest
        };
        match (found, again) {
            (Some(now), _) if now == record => Ok(()),
            (now, Some(mut producer)) if now.filter(other).is_none() => {
                self.commit(&mut *producer, record).map_err(overtaken)
            }
            _ => Err(overtaken(Fault { verdict: Verdict::Fenced, ..fault })),
        }
    }

    fn read_on(&self, mut known: Known) -> Result<Known, Fault> {
        let partition = self.place();
        let ends = self.log.ends(&partition)?;
        let from = known.position.max(ends.start);
        let stretch = Stretch { partition, from, to: ends.end, settled: true };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalLog;
    use crate::model::SystemClock;
    use crate::versions::{Candidate, How, Outcome};

    fn candidate(digest: &str) -> Candidate {
        Candidate {
            digest: digest.into(),
            plugin: "p".into(),
            version: "1".into(),
            stores: Vec::new(),
            by: "me".into(),
            time_ms: 1,
            how: How::Deploy,
            can_go_back: true,
        }
    }

    fn ledger(dir: &std::path::Path) -> Ledger {
        let log = LocalLog::open(dir, Arc::new(SystemClock::default())).unwrap();
        let ledger = Ledger::new(Arc::new(log), "app");
        assert_eq!(ledger.read(), Ok(Known::default()), "without the topic nothing is known");
        ledger.log.create_topic(&spec("app")).unwrap();
        check(&ledger.log.topic("app-versions").unwrap().unwrap()).unwrap();
        ledger
    }

    fn deploy(ledger: &Ledger, digest: &str) -> Result<Option<Record>, Fault> {
        let next = |known: &Known| match known.records.get("p") {
            None => Record::first("p", 1, candidate(digest)),
            Some(now) => now.next(candidate(digest), Outcome::Replaced),
        };
        ledger.change(Known::default(), |known| Ok(Some(next(known))))
    }

    #[test]
    fn what_is_written_is_what_everybody_reads() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = ledger(dir.path());
        for (n, digest) in ["a", "b", "c"].into_iter().enumerate() {
            let written = deploy(&ledger, digest).unwrap().unwrap();
            assert_eq!(written.sequence, n as i64 + 1);
            assert_eq!(ledger.read().unwrap().records["p"], written);
        }
        let nothing = ledger.change(Known::default(), |_| Ok(None)).unwrap();
        assert_eq!((nothing, ledger.read().unwrap().records["p"].digest.as_str()), (None, "c"));
    }

    #[test]
    fn of_two_at_once_the_one_that_had_the_lock_first_fails() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = ledger(dir.path());
        deploy(&ledger, "a").unwrap();
        let overtaken = ledger.change(Known::default(), |known| {
            deploy(&ledger, "b").unwrap();
            Ok(Some(known.records["p"].next(candidate("c"), Outcome::Replaced)))
        });
        assert_eq!(overtaken.map(|_| ()).unwrap_err().code, "deploy-overtaken");
        let now = &ledger.read().unwrap().records["p"];
        assert_eq!((now.sequence, now.digest.as_str()), (2, "b"));
    }

    #[test]
    fn a_topic_that_forgets_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let good = ledger(dir.path()).log.topic("app-versions").unwrap().unwrap();
        let with = |change: fn(&mut TopicInfo)| {
            let mut info = good.clone();
            change(&mut info);
            check(&info).map_err(|fault| fault.code)
        };
        let unfit = Err("versions-topic-unfit");
        assert_eq!(with(|info| info.limits.delete = true), unfit);
        assert_eq!(with(|info| info.limits.compact = false), unfit);
        assert_eq!(with(|info| info.partitions = 2), unfit);
    }
}
