//! A log that is not there yet, for those who only look: it has no topics, and looking does not make it.

use super::topic;
use crate::model::log::{
    Committed, Delivery, Ends, GroupListener, GroupSpec, Log, Member, Producer, Source, TopicInfo, TopicSpec,
};
use crate::model::{Fault, TopicPartition};
use std::sync::Arc;

/// An empty log that cannot be changed.
pub struct AbsentLog;

impl Log for AbsentLog {
    fn topic(&self, _: &str) -> Result<Option<TopicInfo>, Fault> {
        Ok(None)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        Ok(Vec::new())
    }

    fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault> {
        Err(absent(&format!("creating topic {}", spec.name)))
    }

    fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault> {
        Err(topic::missing(&partition.topic))
    }

    fn delete_records(&self, partition: &TopicPartition, _: i64) -> Result<(), Fault> {
        Err(topic::missing(&partition.topic))
    }

    fn producer(&self, id: &str, _: Delivery) -> Result<Box<dyn Producer>, Fault> {
        Err(absent(&format!("producing as {id}")))
    }

    fn join(&self, spec: GroupSpec, _: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault> {
        Err(absent(&format!("joining group {}", spec.group)))
    }

    fn committed(&self, _: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        Ok(vec![Committed::default(); partitions.len()])
    }

    fn reader(&self, partition: &TopicPartition, _: i64) -> Result<Box<dyn Source>, Fault> {
        Err(topic::missing(&partition.topic))
    }
}

fn absent(doing: &str) -> Fault {
    Fault::fatal("log-absent", format!("{doing}: the embedded log does not exist yet"))
        .hint("`pelton produce` and `pelton run` make it")
}
