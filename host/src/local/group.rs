//! Groups in one process: the one member gets every partition at its first poll.

use super::inner::{Inner, State};
use super::source::LocalSource;
use crate::model::log::{Committed, Group, GroupListener, GroupSpec, Member, Source};
use crate::model::{Fault, TopicPartition};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct LocalMember {
    spec: GroupSpec,
    listener: Arc<dyn GroupListener>,
    group: Arc<LocalGroup>,
    /// What it was given; empty before and after.
    owned: Vec<TopicPartition>,
}

pub(super) struct LocalGroup {
    inner: Arc<Inner>,
    name: Arc<str>,
    member: u64,
}

impl LocalMember {
    pub(super) fn new(inner: Arc<Inner>, spec: GroupSpec, listener: Arc<dyn GroupListener>) -> LocalMember {
        let group = LocalGroup { name: spec.group.as_str().into(), member: inner.number(), inner };
        LocalMember { spec, listener, group: Arc::new(group), owned: Vec::new() }
    }

    /// Takes the group where it is free; a second member in this process waits until the first has left.
    fn claim(&self) -> bool {
        let mut state = self.group.inner.state();
        *state.groups.entry(self.group.name.to_string()).or_insert(self.group.member) == self.group.member
    }

    fn assign(&mut self) -> Result<(), Fault> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for name in &self.spec.topics {
            let count = self.group.inner.existing(name)?.record.partitions;
            for partition in 0..count {
                let place = TopicPartition::new(name.clone(), partition);
                sources.push(Box::new(LocalSource::new(self.group.inner.clone(), &place, None)?));
                self.owned.push(place);
            }
        }
        self.listener.assigned(sources);
        Ok(())
    }

    fn release(&self) {
        let mut state = self.group.inner.state();
        if state.groups.get(&*self.group.name) == Some(&self.group.member) {
            state.groups.remove(&*self.group.name);
        }
        drop(state);
        self.group.inner.notify();
    }
}

impl Member for LocalMember {
    fn poll(&mut self, wait: Duration) -> Result<(), Fault> {
        if self.owned.is_empty() && self.claim() {
            return self.assign();
        }
        // Nothing comes while the group is taken, be it by this member.
        self.group.inner.wait_while(wait, |state| state.groups.contains_key(&*self.group.name));
        Ok(())
    }

    fn group(&self) -> Arc<dyn Group> {
        self.group.clone()
    }

    fn leave(&mut self) -> Result<(), Fault> {
        let owned = std::mem::take(&mut self.owned);
        if !owned.is_empty() {
            self.listener.revoked(&owned);
        }
        self.release();
        Ok(())
    }
}

impl Drop for LocalMember {
    /// As when a process dies: nobody is told, and the group is free.
    fn drop(&mut self) {
        self.release();
    }
}

impl LocalGroup {
    /// A group seen from outside, by one who is no member: it can be asked, and commits nothing.
    pub(super) fn observer(inner: Arc<Inner>, name: &str) -> LocalGroup {
        let member = inner.number();
        LocalGroup { inner, name: name.into(), member }
    }

    pub(super) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// Offsets are taken from the member that has the partitions only.
    pub(super) fn check_member(&self, state: &State) -> Result<(), Fault> {
        match state.groups.get(&*self.name) {
            Some(&member) if member == self.member => Ok(()),
            _ => Err(Fault::transient(
                "group-not-member",
                format!("this member has no partitions of group {}", self.name),
            )),
        }
    }
}

impl Group for LocalGroup {
    fn name(&self) -> &str {
        &self.name
    }

    fn committed(&self, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        let committed = |place: &TopicPartition| match self.inner.topic(&place.topic) {
            Some(topic) => self.inner.storage.committed(topic.record.number, place.partition, &self.name),
            None => Ok(Committed::default()),
        };
        partitions.iter().map(committed).collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
