//! The seam to the log, shaped by Kafka's rules and kept by the embedded log too: sources, transactions, groups.

use super::{Batch, Fault, RecordRef, TopicPartition, Verdict};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// A log: an Apache Kafka cluster, or the embedded one. Everything else is opened through it.
///
/// Calls that ask the cluster wait a bounded time and then fail as [`Transient`](super::Verdict::Transient).
pub trait Log: Send + Sync {
    /// What is known of a topic; `None` where it does not exist.
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, Fault>;

    fn topics(&self) -> Result<Vec<TopicInfo>, Fault>;

    /// Creates a topic, and waits until it can be used. One that exists already is left as it is.
    fn create_topic(&self, spec: &TopicSpec) -> Result<(), Fault>;

    /// Where a partition begins and ends now.
    fn ends(&self, partition: &TopicPartition) -> Result<Ends, Fault>;

    /// [`Log::ends`] of many partitions, in their order, without a round trip for each where that can be had.
    fn ends_of(&self, partitions: &[TopicPartition]) -> Result<Vec<Ends>, Fault> {
        partitions.iter().map(|partition| self.ends(partition)).collect()
    }

    /// Deletes the records of a partition before the offset `before` (at most all), for good; its start moves there. `Fatal`
    /// `delete-refused` where the topic's policy keeps records, as that of a compacted topic does on Kafka.
    fn delete_records(&self, partition: &TopicPartition, before: i64) -> Result<(), Fault>;

    /// A producer with a stable identity. With [`Delivery::ExactlyOnce`] this fences every earlier producer of the same id, and
    /// completes or aborts what it left open, before it returns.
    fn producer(&self, id: &str, delivery: Delivery) -> Result<Box<dyn Producer>, Fault>;

    /// Joins a consumer group. Nothing happens before the member is polled.
    fn join(&self, spec: GroupSpec, listener: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault>;

    /// What a group has committed, by transactions that have ended: those that are open are not waited for. For whoever looks before
    /// it joins.
    fn committed(&self, group: &str, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault>;

    /// Reads one partition outside any group, committed records only, from `offset`. For restores and for `consume`.
    fn reader(&self, partition: &TopicPartition, offset: i64) -> Result<Box<dyn Source>, Fault>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    ExactlyOnce,
    /// Offsets are committed after the outputs are acknowledged; a crash between repeats outputs.
    AtLeastOnce,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicInfo {
    pub name: String,
    /// Changes when a topic is deleted and created again (KIP-516).
    pub id: String,
    pub partitions: i32,
    pub limits: TopicLimits,
}

/// What a topic refuses, and how it is cleaned. Read at start and now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicLimits {
    /// `max.message.bytes`: of a record batch, so of one record with its overhead.
    pub max_message_bytes: u64,
    /// `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms`; `i64::MAX` for no bound.
    pub timestamp_before_ms: i64,
    pub timestamp_after_ms: i64,
    /// `cleanup.policy` contains `compact`.
    pub compact: bool,
    /// `cleanup.policy` contains `delete`.
    pub delete: bool,
    /// `delete.retention.ms`: how long a tombstone outlives its compaction.
    pub delete_retention_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    pub name: String,
    pub partitions: i32,
    /// Copies of each partition; `None` leaves it to the cluster. The embedded log has one.
    pub replication: Option<i32>,
    /// Further topic settings by Kafka's names, such as `cleanup.policy`.
    pub properties: Vec<(String, String)>,
}

/// Offsets at which a partition begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The first offset that can still be read.
    pub start: i64,
    /// The end as readers of committed records see it (last stable offset).
    pub stable: i64,
    /// The end as readers of uncommitted records see it (high watermark).
    pub end: i64,
}

/// The records of one partition, read ahead into a queue of its own. Not fetching is the backpressure.
pub trait Source: Send {
    fn partition(&self) -> &TopicPartition;

    /// Goes to `offset` and forgets what was read ahead. A source given by a group reads nothing before its first seek.
    /// `Transient` where the client is not ready for it yet: call again.
    fn seek(&mut self, offset: i64) -> Result<(), Fault>;

    /// Appends what is there to `batch`: at most `max_records`, and no more than `max_bytes` unless the first record alone is
    /// larger. Waits up to `wait` for the first record. Returns how many were appended.
    fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit, wait: Duration) -> Result<usize, Fault>;

    /// The next offset to read. Moves past transaction markers and compacted gaps too, once the end has been reached.
    fn position(&self) -> i64;

    /// Whether the last fetch found the end of the partition (as readers of committed records see it) at [`Source::position`].
    fn at_end(&self) -> bool;

    /// Calls `wake` whenever the queue stops being empty, and once at once. May be called from any thread, which holds the queue's
    /// lock: `wake` must not use the source. What a full batch left in the queue is not told again: fetch until nothing comes.
    fn on_ready(&mut self, wake: Arc<dyn Fn() + Send + Sync>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimit {
    pub records: usize,
    pub bytes: usize,
}

/// A topic that a producer has resolved. Valid for the producer that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicRef(pub u32);

/// The input record that made an output, so that its refusal is that record's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The task's slot in its worker.
    pub slot: u16,
    /// Index into the task's inputs.
    pub input: u16,
    pub offset: i64,
}

/// A record that the log refused for what it is: its origin's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub origin: Origin,
    /// `output-too-large`, `output-timestamp-refused` or `output-refused`.
    pub code: &'static str,
    pub message: String,
}

/// One transaction at a time, over all tasks of a worker.
///
/// Faults of every method: `Transient` = abort, rewind and go on with this producer; `Fenced` = the producer is of no more use and
/// the outcome of a commit is unknown; `Fatal` = topic- or cluster-wide refusal that a person must mend.
/// With [`Delivery::AtLeastOnce`] nothing can be taken back: `abort` only forgets offsets.
pub trait Producer: Send {
    /// Resolves a topic, once.
    fn topic(&mut self, name: &str) -> Result<TopicRef, Fault>;

    /// Opens the transaction. Does nothing where it is open.
    fn begin(&mut self) -> Result<(), Fault>;

    /// Hands a record over; the log may still refuse it later. Without a partition the key decides as in Kafka's default
    /// partitioner (murmur2; records with a null key are spread). A timestamp of 0 is sent as 1.
    fn send(
        &mut self,
        to: TopicRef,
        partition: Option<i32>,
        record: RecordRef<'_>,
        origin: Origin,
    ) -> Result<(), Fault>;

    /// Waits until everything sent is acknowledged. Refused records are returned; then the transaction is only good for `abort`.
    /// `Transient` with the code `output-suspected`: one of several records is to blame, and the same records sent again after the
    /// abort tell which.
    fn flush(&mut self) -> Result<Vec<Refusal>, Fault>;

    /// Adds a group's offsets to the transaction. `metadata` is taken from the group just before. An offset is the next to read.
    fn send_offsets(&mut self, group: &dyn Group, offsets: &[OffsetCommit]) -> Result<(), Fault>;

    /// Commits. A time-out is resumed inside; when this returns `Ok` readers see the records.
    fn commit(&mut self) -> Result<(), Fault>;

    /// Takes back everything since `begin`. Does nothing where no transaction is open.
    fn abort(&mut self) -> Result<(), Fault>;

    /// One past the highest offset acknowledged on this partition by this producer, of records sent with an explicit partition.
    /// Known after `flush` on Kafka, after `commit` on the embedded log.
    fn acknowledged(&self, topic: TopicRef, partition: i32) -> Option<i64>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    pub partition: TopicPartition,
    /// Which topic of that name is meant; empty for any. [`OffsetCommit::check`] is what sending it does first.
    pub topic_id: Arc<str>,
    /// The next offset to read.
    pub offset: i64,
    pub metadata: String,
}

impl OffsetCommit {
    /// Whether the offset counts in the topic that is there now, whose id is `now`. `Fatal` `topic-recreated`. `Transient`
    /// `topic-deleted`, as one broker may not know a topic yet: whether it is gone is for somebody to find out who asks again.
    pub fn check(&self, now: Option<&str>) -> Result<(), Fault> {
        if self.topic_id.is_empty() || now == Some(&*self.topic_id) {
            return Ok(());
        }
        let topic = &self.partition.topic;
        match now {
            Some(_) => Err(Fault::recreated(topic)),
            None => Err(Fault { verdict: Verdict::Transient, ..Fault::deleted(topic) }),
        }
    }
}

impl Fault {
    /// A topic that is in use is another one by now.
    pub fn recreated(topic: &str) -> Fault {
        Fault::fatal("topic-recreated", format!("topic {topic} was deleted and created again while this host uses it"))
            .hint("find out who did it; the next start reads a new input from its start, and refuses a new changelog until you choose")
    }

    /// A topic that is in use is there no more.
    pub fn deleted(topic: &str) -> Fault {
        Fault::fatal("topic-deleted", format!("topic {topic} was deleted while this host uses it"))
            .hint("find out who did it; the next start needs it, or makes it where create_topics is set")
    }
}

/// How to be a member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    pub group: String,
    pub topics: Vec<Arc<str>>,
    pub protocol: GroupProtocol,
    /// Static member id (KIP-345); classic groups only.
    pub instance_id: String,
    pub session_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupProtocol {
    /// Classic groups with static members.
    Classic,
    /// KIP-848 groups with dynamic members.
    Consumer,
}

/// One membership. Polled on a thread of its own; the listener is called from inside `poll` and `leave`.
pub trait Member: Send {
    /// Serves the group for at most `wait`. `Fatal` where the membership cannot go on.
    fn poll(&mut self, wait: Duration) -> Result<(), Fault>;

    fn group(&self) -> Arc<dyn Group>;

    /// Gives partitions back (through the listener) and closes. A static member keeps its claim until its session ends.
    fn leave(&mut self) -> Result<(), Fault>;
}

/// Told of what a group gives and takes, on the member's polling thread.
pub trait GroupListener: Send + Sync {
    /// Sources not yet positioned: they read nothing before their first seek.
    fn assigned(&self, sources: Vec<Box<dyn Source>>);

    /// Returns only after all work on these partitions has been committed or aborted: the log gives them away afterwards.
    fn revoked(&self, partitions: &[TopicPartition]);

    /// The partitions may belong to others already: work on them must be aborted and dropped before this returns.
    fn lost(&self, partitions: &[TopicPartition]);
}

/// A group as seen from any thread.
pub trait Group: Send + Sync {
    fn name(&self) -> &str;

    /// Committed offsets as readers of committed transactions see them; `Transient` while a transaction that holds some is open.
    fn committed(&self, partitions: &[TopicPartition]) -> Result<Vec<Committed>, Fault>;

    /// For the producer of the same log only.
    fn as_any(&self) -> &dyn Any;
}

/// What a group has committed for a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to read; `None` where nothing was committed.
    pub offset: Option<i64>,
    pub metadata: String,
}
