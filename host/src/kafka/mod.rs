//! Apache Kafka behind the seam of `model::log`. The only room that names rdkafka.
//!
//! Every call that asks the cluster is bounded (`CALL`). Queues belong to clients: whoever holds one holds its client too.

mod cluster;
mod context;
mod faults;
mod group;
mod member;
mod options;
mod producer;
mod raw;
mod reports;
mod source;

use crate::config;
use crate::model::log::{
    Committed, Delivery, Ends, GroupListener, GroupSpec, Log, Member, Producer, Source, TopicInfo, TopicSpec,
};
use crate::model::{Clock, Fault, TopicPartition};
use cluster::Cluster;
use group::Observers;
use rdkafka::consumer::Consumer as _;
use rdkafka::{Offset, TopicPartitionList};
use source::{Consumer, KafkaSource};
use std::sync::Arc;
use std::time::Duration;

/// The longest that one question to the cluster may take.
const CALL: Duration = Duration::from_secs(5);

/// An Apache Kafka cluster, version 4 or what speaks its protocol.
pub struct Kafka {
    cluster: Arc<Cluster>,
    /// Clients that ask for the offsets of groups, by group: made when first asked.
    observers: Observers,
}

impl Kafka {
    /// Reaches the cluster, or says within five seconds that it is away (`Transient`, `broker-away`). Properties that librdkafka
    /// does not take are `Fatal` (`bad-property`).
    pub fn connect(settings: &config::Kafka, clock: Arc<dyn Clock>) -> Result<Kafka, Fault> {
        let cluster = Cluster::new(settings.clone(), clock)?;
        cluster.reach()?;
        Ok(Kafka { cluster: Arc::new(cluster), observers: Observers::default() })
    }
}

impl Log for Kafka {
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Fault> {
        self.cluster.topic(name)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        self.cluster.topics()
    }

    fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault> {
        self.cluster.create_topic(spec)
    }

    fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault> {
        self.cluster.ends(partition)
    }

    fn ends_of(&self, partitions: &[TopicPartition]) -> Result<Vec<Ends>, Fault> {
        self.cluster.ends_of(partitions)
    }

    fn delete_records(&self, partition: &TopicPartition, before: i64) -> Result<(), Fault> {
        self.cluster.delete_records(partition, before)
    }

    fn producer(&self, id: &str, delivery: Delivery) -> Result<Box<dyn Producer>, Fault> {
        Ok(Box::new(producer::KafkaProducer::open(&self.cluster, id, delivery)?))
    }

    fn join(&self, spec: GroupSpec, listener: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault> {
        Ok(Box::new(member::KafkaMember::join(&self.cluster, spec, listener)?))
    }

    fn committed(&self, group: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        self.observers.last_committed(&self.cluster, group, partitions)
    }

    fn reader(&self, partition: &TopicPartition, offset: i64) -> Result<Box<dyn Source>, Fault> {
        let doing = |error| faults::of(&error, format!("reading {partition} at {offset}"));
        let consumer: Consumer =
            options::reader(&self.cluster.settings).create_with_context(self.cluster.context()).map_err(doing)?;
        let consumer = Arc::new(consumer);
        let queue = raw::Queue::of_partition(consumer.client(), &partition.topic, partition.partition)
            .ok_or_else(|| Fault::fatal("name-refused", format!("reading {partition}: not a topic's name")))?;
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&partition.topic, partition.partition, Offset::Offset(offset)).map_err(doing)?;
        consumer.assign(&list).map_err(doing)?;
        Ok(Box::new(KafkaSource::reading(queue, consumer, partition.clone(), offset)))
    }
}
