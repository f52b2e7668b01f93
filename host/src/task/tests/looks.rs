//! What a rig's test sees: topics, committed offsets, stores.

use super::rig::{PARKED, Rig};
use crate::model::log::{Committed, FetchLimit, Log};
use crate::model::{Batch, RecordRef, TopicPartition};
use std::collections::BTreeMap;
use std::time::Duration;

impl Rig {
    /// Key and value of everything in a topic.
    pub(crate) fn read(&self, topic: &str) -> Vec<(String, String)> {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        self.batch(topic).iter().map(|(_, record)| (text(record.key), text(record.value))).collect()
    }

    pub(crate) fn values(&self, topic: &str) -> Vec<String> {
        self.read(topic).into_iter().map(|(_, value)| value).collect()
    }

    /// The headers of each dead letter.
    pub(crate) fn letters(&self) -> Vec<BTreeMap<String, String>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let all = |record: RecordRef<'_>| {
            record.headers.iter().map(|(name, value)| (text(name), text(value.unwrap_or_default()))).collect()
        };
        self.batch("dead").iter().map(|(_, record)| all(record)).collect()
    }

    /// Offset and code of each dead letter.
    pub(crate) fn buried(&self) -> Vec<(String, String)> {
        let of =
            |letter: &BTreeMap<String, String>| (letter["pelton-source-offset"].clone(), letter["pelton-code"].clone());
        self.letters().iter().map(of).collect()
    }

    /// Committed counts by key.
    pub(crate) fn counts(&mut self) -> BTreeMap<String, u8> {
        let stores = self.tasks[0].stores().unwrap();
        let entries = stores.dump(0).unwrap().map(Result::unwrap);
        entries.map(|(key, value)| (String::from_utf8_lossy(&key).into_owned(), value[0])).collect()
    }

    /// How many records the committed store has parked.
    pub(crate) fn parked(&mut self) -> usize {
        self.tasks[0].stores().unwrap().dump(1).unwrap().count()
    }

    /// Input and offset of each of them.
    pub(crate) fn parked_ids(&mut self) -> Vec<(String, i64)> {
        let stores = self.tasks[0].stores().unwrap();
        let keys = stores.dump(1).unwrap().map(|entry| entry.unwrap().0);
        keys.map(|key| crate::task::park::place(&key)).collect()
    }

    /// What the park's changelog has, its deletions applied.
    pub(crate) fn parked_in_changelog(&self) -> usize {
        let mut last = BTreeMap::new();
        for (_, record) in self.batch(PARKED).iter() {
            last.insert(record.key.unwrap().to_vec(), record.value.is_some());
        }
        last.values().filter(|there| **there).count()
    }

    /// The group's committed offset of the input.
    pub(crate) fn committed(&self) -> Option<i64> {
        self.committed_of("in").offset
    }

    /// What the group has beside the committed offset of the input.
    pub(crate) fn metadata(&self) -> String {
        self.committed_of("in").metadata
    }

    pub(crate) fn committed_of(&self, topic: &str) -> Committed {
        self.group.committed(&[TopicPartition::new(topic, 0)]).unwrap().remove(0)
    }

    fn batch(&self, topic: &str) -> Batch {
        let mut source = self.log.reader(&TopicPartition::new(topic, 0), 0).unwrap();
        let mut batch = Batch::default();
        while !source.at_end() {
            source.fetch(&mut batch, FetchLimit { records: usize::MAX, bytes: usize::MAX }, Duration::ZERO).unwrap();
        }
        batch
    }
}
