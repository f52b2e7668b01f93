//! A topic and its partitions, on disk and in memory.

use crate::model::Fault;
use crate::model::log::{Ends, TopicInfo, TopicLimits, TopicSpec};
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TopicRecord {
    /// Never used twice in a folder: what a deleted topic left behind cannot come back.
    pub(super) number: u32,
    pub(super) id: String,
    pub(super) partitions: i32,
    pub(super) properties: Vec<(String, String)>,
}

/// A partition on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartitionRecord {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Records that are there, for the cleaner.
    pub(super) records: i64,
    /// Records that its last cleaning left.
    pub(super) cleaned: i64,
}

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: Arc<str>,
    pub(super) record: TopicRecord,
    pub(super) limits: TopicLimits,
    pub(super) partitions: Vec<Partition>,
    pub(super) deleted: AtomicBool,
}

/// A partition in memory. Numbers change only under the commit lock.
#[derive(Default)]
pub(super) struct Partition {
    start: AtomicI64,
    end: AtomicI64,
    records: AtomicI64,
    cleaned: AtomicI64,
    wakes: Mutex<Vec<(u64, Wake)>>,
}

impl TopicRecord {
    pub(super) fn new(number: u32, spec: &TopicSpec) -> TopicRecord {
        // Two seeded hashes: a topic made again, even in a folder made again, is another topic.
        let random = || RandomState::new().hash_one(number);
        TopicRecord {
            number,
            id: format!("{:016x}{:016x}", random(), random()),
            partitions: spec.partitions,
            properties: spec.properties.clone(),
        }
    }
}

impl Topic {
    pub(super) fn new(name: &str, record: TopicRecord, partitions: Vec<Partition>) -> Result<Topic, Fault> {
        let limits = TopicLimits::with(name, &record.properties)?;
        Ok(Topic { name: name.into(), record, limits, partitions, deleted: AtomicBool::new(false) })
    }

    pub(super) fn info(&self) -> TopicInfo {
        TopicInfo {
            name: self.name.to_string(),
            id: self.record.id.clone(),
            partitions: self.record.partitions,
            limits: self.limits.clone(),
        }
    }

    pub(super) fn partition(&self, partition: i32) -> Result<&Partition, Fault> {
        usize::try_from(partition).ok().and_then(|at| self.partitions.get(at)).ok_or_else(|| {
            Fault::fatal("partition-unknown", format!("topic {} has no partition {partition}", self.name))
        })
    }

    pub(super) fn check_alive(&self) -> Result<(), Fault> {
        if self.deleted.load(Ordering::Acquire) { Err(missing(&self.name)) } else { Ok(()) }
    }
}

impl Partition {
    pub(super) fn new(record: PartitionRecord) -> Partition {
        let partition = Partition::default();
        partition.set(record);
        partition
    }

    pub(super) fn get(&self) -> PartitionRecord {
        PartitionRecord {
            start: self.start.load(Ordering::Acquire),
            end: self.end.load(Ordering::Acquire),
            records: self.records.load(Ordering::Relaxed),
            cleaned: self.cleaned.load(Ordering::Relaxed),
        }
    }

    /// The end is stored last: who sees it may read up to it.
    pub(super) fn set(&self, record: PartitionRecord) {
        self.records.store(record.records, Ordering::Relaxed);
        self.cleaned.store(record.cleaned, Ordering::Relaxed);
        self.start.store(record.start, Ordering::Release);
        self.end.store(record.end, Ordering::Release);
    }

    /// Nothing uncommitted is ever here: both ends are one.
    pub(super) fn ends(&self) -> Ends {
        let record = self.get();
        Ends { start: record.start, stable: record.end, end: record.end }
    }

    pub(super) fn end(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    pub(super) fn add_wake(&self, reader: u64, wake: Wake) {
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.retain(|(id, _)| *id != reader);
        wakes.push((reader, wake));
    }

    pub(super) fn remove_wake(&self, reader: u64) {
        self.wakes.lock().unwrap_or_else(PoisonError::into_inner).retain(|(id, _)| *id != reader);
    }

    /// Tells the readers, outside the lock.
    pub(super) fn wake(&self) {
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        wakes.iter().for_each(|(_, wake)| wake());
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

pub(super) fn missing(name: &str) -> Fault {
    Fault::fatal("topic-missing", format!("topic {name} does not exist in the embedded log"))
        .hint("create it with create_topics = true and a [topics] section")
}
