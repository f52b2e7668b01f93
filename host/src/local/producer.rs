//! Producing: records wait in columns until the commit; what a topic refuses is known at once and told at the flush.

use super::commit::{Pending, PendingOffset};
use super::group::LocalGroup;
use super::inner::{Inner, State};
use super::topic::Topic;
use crate::model::log::{Delivery, Group, OffsetCommit, Origin, Producer, Refusal, TopicRef};
use crate::model::{Fault, RecordRef, partition_for_key};
use std::sync::Arc;

pub(super) struct LocalProducer {
    inner: Arc<Inner>,
    id: String,
    /// Who the id belongs to now decides whether this producer is fenced.
    number: u64,
    delivery: Delivery,
    pending: Vec<Pending>,
    offsets: Vec<PendingOffset>,
    refusals: Vec<Refusal>,
    open: bool,
    /// Something was refused: the transaction is only good for abort.
    refused: bool,
    /// Spreads records without a key.
    turn: u32,
}

impl LocalProducer {
    /// Fences earlier producers of this id; what they have pending dies with them.
    pub(super) fn new(inner: Arc<Inner>, id: &str, delivery: Delivery) -> LocalProducer {
        let number = inner.number();
        if delivery == Delivery::ExactlyOnce {
            inner.state().producers.insert(id.to_owned(), number);
        }
        LocalProducer {
            inner,
            id: id.to_owned(),
            number,
            delivery,
            pending: Vec::new(),
            offsets: Vec::new(),
            refusals: Vec::new(),
            open: false,
            refused: false,
            turn: 0,
        }
    }

    fn check_owner(&self, state: &State) -> Result<(), Fault> {
        if self.delivery == Delivery::ExactlyOnce && state.producers.get(&self.id) != Some(&self.number) {
            return Err(Fault::fenced(
                "producer-fenced",
                format!("producer {} has been replaced by a newer one", self.id),
            ));
        }
        Ok(())
    }

    /// Writes what is pending, with or without the offsets.
    fn write(&mut self, with_offsets: bool) -> Result<(), Fault> {
        let mut pending = std::mem::take(&mut self.pending);
        let offsets = if with_offsets { std::mem::take(&mut self.offsets) } else { Vec::new() };
        let result = self.inner.commit(&mut pending, &offsets, || self.check_owner(&self.inner.state()));
        self.pending = pending;
        result
    }

    fn choose(&mut self, topic: &Topic, partition: Option<i32>, key: Option<&[u8]>) -> i32 {
        let count = topic.record.partitions;
        match (partition, key) {
            (Some(partition), _) => partition,
            (None, Some(key)) => partition_for_key(key, count),
            (None, None) => {
                self.turn = self.turn.wrapping_add(1);
                (self.turn % count.max(1) as u32) as i32
            }
        }
    }

    fn close(&mut self) {
        self.offsets.clear();
        self.refusals.clear();
        self.open = false;
        self.refused = false;
    }
}

impl Producer for LocalProducer {
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault> {
        let topic = self.inner.existing(name)?;
        let known = self.pending.iter().position(|pending| Arc::ptr_eq(&pending.topic, &topic));
        let at = known.unwrap_or_else(|| {
            self.pending.push(Pending::new(topic));
            self.pending.len() - 1
        });
        Ok(TopicRef(at as u32))
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.check_owner(&self.inner.state())?;
        self.open = true;
        Ok(())
    }

    fn send(
        &mut self,
        to: TopicRef,
        partition: Option<i32>,
        mut record: RecordRef<'_>,
        origin: Origin,
    ) -> Result<(), Fault> {
        if !self.open && self.delivery == Delivery::ExactlyOnce {
            return Err(Fault::fatal("transaction-not-open", "a record was sent outside a transaction"));
        }
        let target = self.pending.get(to.0 as usize).map(|pending| pending.topic.clone()).ok_or_else(unknown_topic)?;
        if record.timestamp == 0 {
            record.timestamp = 1;
        }
        if let Some((code, message)) = target.limits.refusal(&target.name, &record, self.inner.clock.wall_ms()) {
            self.refusals.push(Refusal { origin, code, message });
            self.refused = true;
            return Ok(());
        }
        let partition = self.choose(&target, partition, record.key);
        target.partition(partition)?;
        // Offsets are given out at the commit.
        self.pending[to.0 as usize].partitions[partition as usize].push(0, record);
        Ok(())
    }

    fn flush(&mut self) -> Result<Vec<Refusal>, Fault> {
        self.check_owner(&self.inner.state())?;
        if self.delivery == Delivery::AtLeastOnce {
            self.write(false)?;
            self.refused = false;
        }
        Ok(std::mem::take(&mut self.refusals))
    }

    fn send_offsets(&mut self, group: &dyn Group, offsets: &[OffsetCommit]) -> Result<(), Fault> {
        let local = group.as_any().downcast_ref::<LocalGroup>().ok_or_else(|| foreign(group))?;
        {
            let state = self.inner.state();
            self.check_owner(&state)?;
            local.check_member(&state)?;
            offsets.iter().try_for_each(|commit| same_topic(&state, commit))?;
        }
        let pending = offsets.iter().map(|commit| PendingOffset { group: local.shared_name(), commit: commit.clone() });
        self.offsets.extend(pending);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Fault> {
        if self.refused {
            return Err(Fault::transient("transaction-refused", "the transaction holds a record that was refused"));
        }
        self.write(true)?;
        self.close();
        Ok(())
    }

    fn abort(&mut self) -> Result<(), Fault> {
        match self.delivery {
            Delivery::ExactlyOnce => self.pending.iter_mut().for_each(Pending::clear),
            Delivery::AtLeastOnce => self.write(false)?,
        }
        self.close();
        Ok(())
    }

    fn acknowledged(&self, topic: TopicRef, partition: i32) -> Option<i64> {
        *self.pending.get(topic.0 as usize)?.acknowledged.get(usize::try_from(partition).ok()?)?
    }
}

fn unknown_topic() -> Fault {
    Fault::fatal("topic-unknown", "a record was sent to a topic that this producer has not resolved")
}

fn foreign(group: &dyn Group) -> Fault {
    Fault::fatal("group-foreign", format!("group {} does not belong to the embedded log", group.name()))
}

fn same_topic(state: &State, commit: &OffsetCommit) -> Result<(), Fault> {
    commit.check(state.topics.get(&*commit.partition.topic).map(|topic| topic.record.id.as_str()))
}
