//! Which letters have been replayed: the topic of marks, read, made and cleared.

use super::Letters;
use crate::delivery::Mark;
use crate::delivery::mark::marked_place;
use crate::model::log::{Log, TopicInfo, TopicSpec};
use crate::model::{Fault, Place, RecordRef, TopicPartition, ids};
use crate::runtime::walk::{Stretch, walk};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A topic that was just made is looked for so often, and so long between.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// The marks of one dead-letter topic.
#[derive(Default)]
pub(super) struct Marks {
    /// Id of the dead-letter topic.
    letters: String,
    by_place: HashMap<Place, Mark>,
    names: HashSet<Arc<str>>,
}

impl Marks {
    /// Reads the topic of marks to its end. `settled`: also what is in transactions that are open now, once they end. Without the
    /// topic there are none.
    pub(super) fn read(log: &dyn Log, letters: &TopicInfo, settled: bool) -> Result<Marks, Fault> {
        let name = ids::marks_topic(&letters.name);
        let mut marks = Marks { letters: letters.id.clone(), ..Marks::default() };
        if log.topic(&name)?.is_none() {
            return Ok(marks);
        }
        let partition = TopicPartition::new(name, 0);
        let ends = log.ends(&partition)?;
        let to = if settled { ends.end } else { ends.stable };
        let stretch = Stretch { partition, from: ends.start, to, settled };
        walk::<Fault>(log, &stretch, &mut |batch, _| {
            batch.iter().try_for_each(|(offset, record)| marks.take(&stretch.partition, offset, record))?;
            Ok(true)
        })?;
        Ok(marks)
    }

    pub(super) fn get(&self, place: Place) -> Option<&Mark> {
        self.by_place.get(&place).filter(|mark| *mark.topic == *self.letters)
    }

    /// Places whose letters are gone: before the starts of their partitions, or in a topic that was deleted since.
    pub(super) fn stale(&self, starts: &[i64]) -> Vec<Place> {
        let is_gone = |place: &Place| {
            let start = usize::try_from(place.partition).ok().and_then(|at| starts.get(at));
            self.get(*place).is_none() || start.is_none_or(|start| place.offset < *start)
        };
        let mut stale: Vec<Place> = self.by_place.keys().copied().filter(is_gone).collect();
        stale.sort_unstable();
        stale
    }

    fn take(&mut self, topic: &TopicPartition, offset: i64, record: RecordRef<'_>) -> Result<(), Fault> {
        let Some(place) = record.key.and_then(marked_place) else { return Ok(()) };
        let Some(value) = record.value else {
            self.by_place.remove(&place);
            return Ok(());
        };
        // not to know what it says might replay its letter twice
        let mark = Mark::decode(value, |name| share(&mut self.names, name)).ok_or_else(|| unreadable(topic, offset))?;
        self.by_place.insert(place, mark);
        Ok(())
    }
}

impl Letters<'_> {
    /// Makes the topic of marks where it is missing, and refuses one that would forget.
    pub(super) fn ensure_marks(&self) -> Result<String, Fault> {
        let name = ids::marks_topic(&self.topic.name);
        let known = match self.log.topic(&name)? {
            Some(known) => known,
            None => self.make_marks(&name)?,
        };
        if known.limits.delete || !known.limits.compact || known.partitions != 1 {
            let message = format!("topic {name}: it keeps what has been replayed, and would forget or scatter it");
            return Err(Fault::fatal("marks-topic-unfit", message).hint(
                "give it one partition and cleanup.policy = compact, or delete it where nothing was replayed yet",
            ));
        }
        Ok(name)
    }

    fn make_marks(&self, name: &str) -> Result<TopicInfo, Fault> {
        let properties = vec![("cleanup.policy".to_owned(), "compact".to_owned())];
        self.log.create_topic(&TopicSpec { name: name.to_owned(), partitions: 1, replication: None, properties })?;
        // the cluster's metadata lags behind a creation
        for _ in 0..LOOKS {
            if let Some(known) = self.log.topic(name)? {
                return Ok(known);
            }
            std::thread::park_timeout(PAUSE);
        }
        Err(Fault::transient("topic-not-yet-there", format!("topic {name}: created, but not yet to be seen")))
    }
}

fn share(names: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    match names.get(name) {
        Some(known) => known.clone(),
        None => {
            let new: Arc<str> = name.into();
            names.insert(new.clone());
            new
        }
    }
}

fn unreadable(topic: &TopicPartition, offset: i64) -> Fault {
    Fault::fatal("mark-unreadable", format!("the mark at {topic} offset {offset} cannot be read"))
        .hint("was it written by a newer pelton, or by something else?")
}
