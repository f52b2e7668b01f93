//! A log in memory, just enough of one for `produce`, `consume` and `topics`.

use crate::model::log::{
    Committed, Delivery, Ends, FetchLimit, Group, GroupListener, GroupSpec, Log, Member, OffsetCommit, Origin,
    Producer, Refusal, Source, TopicInfo, TopicLimits, TopicRef, TopicSpec,
};
use crate::model::{Batch, Fault, RecordRef, TopicPartition};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Partitions = Vec<Batch>;

#[derive(Clone, Default)]
pub(super) struct Memory {
    topics: Arc<Mutex<BTreeMap<String, Partitions>>>,
    pub commits: Arc<Mutex<usize>>,
    /// So many commits fail first.
    pub failures: Arc<Mutex<usize>>,
}

struct Writer {
    log: Memory,
    topic: String,
    open: Vec<(i32, Batch)>,
    refused: Vec<Refusal>,
}

struct Reader {
    log: Memory,
    partition: TopicPartition,
    position: i64,
}

impl Memory {
    fn batch(&self, partition: &TopicPartition) -> Batch {
        self.topics.lock().unwrap()[&*partition.topic][partition.partition as usize].clone()
    }
}

impl Log for Memory {
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Fault> {
        Ok(self.topics()?.into_iter().find(|t| t.name == name))
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        let limits = TopicLimits {
            max_message_bytes: 1 << 20,
            timestamp_before_ms: i64::MAX,
            timestamp_after_ms: i64::MAX,
            compact: false,
            delete: true,
            delete_retention_ms: 0,
        };
        let info = |(name, partitions): (&String, &Partitions)| TopicInfo {
            name: name.clone(),
            id: name.clone(),
            partitions: partitions.len() as i32,
            limits: limits.clone(),
        };
        Ok(self.topics.lock().unwrap().iter().map(info).collect())
    }

    fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault> {
        let partitions = vec![Batch::default(); spec.partitions as usize];
        self.topics.lock().unwrap().entry(spec.name.clone()).or_insert(partitions);
        Ok(())
    }

    fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault> {
        let end = self.batch(partition).len() as i64;
        Ok(Ends { start: 0, stable: end, end })
    }

    fn delete_records(&self, partition: &TopicPartition, _: i64) -> Result<(), Fault> {
        Err(Fault::fatal("delete-refused", format!("deleting records of {partition} in memory")))
    }

    fn producer(&self, _: &str, _: Delivery) -> Result<Box<dyn Producer>, Fault> {
        Ok(Box::new(Writer { log: self.clone(), topic: String::new(), open: vec![], refused: vec![] }))
    }

    fn join(&self, _: GroupSpec, _: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault> {
        Err(Fault::fatal("no-groups", "joining a group in memory"))
    }

    fn committed(&self, _: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        Ok(vec![Committed::default(); partitions.len()])
    }

    fn reader(&self, partition: &TopicPartition, offset: i64) -> Result<Box<dyn Source>, Fault> {
        Ok(Box::new(Reader { log: self.clone(), partition: partition.clone(), position: offset }))
    }
}

impl Producer for Writer {
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault> {
        self.topic = name.to_owned();
        Ok(TopicRef(0))
    }

    fn begin(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn send(
        &mut self,
        _: TopicRef,
        partition: Option<i32>,
        record: RecordRef<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        if record.value == Some(b"refuse me") {
            self.refused.push(Refusal { origin, code: "output-refused", message: "for its value".to_owned() });
        }
        let count = self.log.topics.lock().unwrap()[&self.topic].len();
        let by_key = record.key.unwrap_or_default().iter().map(|b| *b as usize).sum::<usize>() % count;
        let mut batch = Batch::default();
        batch.push(0, record);
        self.open.push((partition.unwrap_or(by_key as i32), batch));
        Ok(())
    }

    fn flush(&mut self) -> Result<Vec<Refusal>, Fault> {
        Ok(std::mem::take(&mut self.refused))
    }

    fn send_offsets(&mut self, _: &dyn Group, _: &[OffsetCommit]) -> Result<(), Fault> {
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Fault> {
        let mut failures = self.log.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err(Fault::transient("again", "committing in memory"));
        }
        *self.log.commits.lock().unwrap() += 1;
        let mut topics = self.log.topics.lock().unwrap();
        let partitions = topics.get_mut(&self.topic).unwrap();
        for (partition, batch) in self.open.drain(..) {
            let to = &mut partitions[partition as usize];
            let offset = to.len() as i64;
            batch.iter().for_each(|(_, record)| to.push(offset, record));
        }
        Ok(())
    }

    fn abort(&mut self) -> Result<(), Fault> {
        self.open.clear();
        Ok(())
    }

    fn acknowledged(&self, _: TopicRef, _: i32) -> Option<i64> {
        None
    }
}

impl Source for Reader {
    fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    fn seek(&mut self, offset: i64) -> Result<(), Fault> {
        self.position = offset;
        Ok(())
    }

    fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit, _: Duration) -> Result<usize, Fault> {
        let all = self.log.batch(&self.partition);
        let found = all.iter().skip(self.position as usize).take(limit.records);
        let count = found.map(|(offset, record)| batch.push(offset, record)).count();
        self.position += count as i64;
        Ok(count)
    }

    fn position(&self) -> i64 {
        self.position
    }

    fn at_end(&self) -> bool {
        self.position == self.log.batch(&self.partition).len() as i64
    }

    fn on_ready(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        wake();
    }
}
