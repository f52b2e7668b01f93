//! The settings of an application as typed data, with their defaults. How they are written is `parse`'s business.

use crate::model::log::{Delivery, GroupProtocol};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One application file.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Prefix of groups, transactional ids and internal topics.
    pub id: String,
    /// Where the instance id, the stores and caches are kept. Absolute, or relative to the file's folder (resolved when loaded).
    pub state_dir: PathBuf,
    pub commit_interval: Duration,
    /// Most bytes of overlay, emits and dead letters in an open transaction of one worker before it commits early.
    pub commit_bytes: u64,
    pub delivery: Delivery,
    /// Threads that run tasks.
    pub workers: usize,
    pub group_protocol: GroupProtocol,
    /// Classic groups: how long a silent member keeps its partitions.
    pub session_timeout: Duration,
    /// How long shutting down may take before the process exits with what is not committed dropped.
    pub shutdown_grace: Duration,
    /// A worker silent for longer makes the host unhealthy and exit.
    pub stuck_after: Duration,
    /// Block cache of all stores together, bytes.
    pub cache_bytes: u64,
    /// Memtables of all stores together, bytes.
    pub write_buffer_bytes: u64,
    /// Stack of a guest, bytes; one for all plugins, which share an engine.
    pub plugin_stack_bytes: u64,
    pub admin: Admin,
    pub components: Components,
    pub log: LogKind,
    /// What `create_topics` makes, by topic name.
    pub topics: BTreeMap<String, Topic>,
    pub create_topics: bool,
    /// `PROCESSOR/STORE` that may begin empty though records are worked off; from the command line, for one start.
    pub new_stores: Vec<String>,
    pub processors: Vec<Processor>,
}

/// The admin surface.
#[derive(Clone, Default, PartialEq)]
pub struct Admin {
    /// Address and port, as they are written.
    pub listen: String,
    /// What every request but those for health must carry, where there is one.
    pub token: Option<String>,
    /// PEM files of the certificate with its chain, and of its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub behind_proxy: bool,
    /// The address that others are told.
    pub advertise: Option<String>,
}

/// Where deployed components are kept.
#[derive(Clone, Default, PartialEq)]
pub struct Components {
    /// An absolute folder, or a URL.
    pub store: String,
    /// Of the client of a store that has a URL.
    pub properties: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LogKind {
    Kafka(Kafka),
    Local { dir: PathBuf },
}

#[derive(Clone, PartialEq)]
pub struct Kafka {
    pub brokers: String,
    /// How long the coordinator waits for a silent transaction before it aborts it.
    pub transaction_timeout: Duration,
    /// Read-ahead of the whole process, bytes, divided among partitions.
    pub fetch_bytes: u64,
    /// Any librdkafka property; those that would break a promise have been refused.
    pub properties: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    pub partitions: i32,
    pub replication: Option<i32>,
    /// Further topic settings by Kafka's names.
    pub properties: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq)]
pub struct Processor {
    pub name: String,
    /// The component's file, absolute.
    pub plugin: PathBuf,
    /// Whether a changed file is deployed.
    pub watch: bool,
    /// How long a new version is on probation.
    pub probation: Duration,
    pub dead_letter_topic: Option<String>,
    /// The plugin's input name → its topic and where to start without a committed offset.
    pub inputs: BTreeMap<String, Input>,
    /// The plugin's output name → its topic.
    pub outputs: BTreeMap<String, String>,
    /// Handed to the plugin's `init` as JSON.
    pub settings: serde_json::Value,
    pub limits: Limits,
    pub ordering: Ordering,
    pub retry: Retry,
    pub dead_letter: DeadLetters,
    pub parking: Parking,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub topic: String,
    pub start: Start,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Earliest,
    Latest,
}

/// What a guest may use. All hold per instance, that is per task.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Linear memory, bytes.
    pub memory: u64,
    /// An instance with more linear memory than this after a call, and than it began with, is replaced.
    pub memory_keep: u64,
    /// Deadline of one call, whatever its size.
    pub record_deadline: Duration,
    /// Deadline of instantiation and `init`.
    pub init_deadline: Duration,
    /// Most records of a batch.
    pub batch_records: usize,
    /// Most bytes of a batch; a larger record goes alone.
    pub batch_bytes: usize,
    /// Most emits of one call, and most state writes.
    pub emits: usize,
    /// Most bytes that a call may return (emits, writes and rejections together), and that one host call may carry.
    pub output_bytes: u64,
    /// Log lines a guest may write per second.
    pub log_lines: u32,
}

/// What waits while a record waits for its retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// Its partition.
    #[default]
    Partition,
    /// Only later records of its key.
    Key,
}

/// When a failed record is tried again, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Longest wait before the first retry: every wait is a random share of its bound.
    pub first_delay: Duration,
    /// By how much the bound of each wait is longer than the one before; at least 1.
    pub factor: f64,
    pub max_delay: Duration,
    /// Calls in all, the first included. After the last the record is a dead letter.
    pub max_attempts: u32,
    /// Failure code → what is done about it, whatever the rule says.
    pub codes: BTreeMap<String, Action>,
}

/// What may be done about a failed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Retry,
    DeadLetter,
    /// The processor halts.
    Stop,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeadLetters {
    pub oversize: Oversize,
    /// Whether letters have the headers of Kafka Connect's error reporting too.
    pub connect_headers: bool,
    /// How many are too many; `None` for no limit.
    pub limit: Option<LetterLimit>,
}

/// What becomes of a dead letter that its topic does not take for its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// Its value, then its key are cut, and a header says so.
    #[default]
    Truncate,
    /// The processor halts.
    Stop,
}

/// More dead letters than this stop the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LetterLimit {
    /// A share (0 to 1) of the processor's records.
    Share(f64),
    Rate {
        count: u64,
        per: Duration,
    },
}

/// What a task may have parked with `ordering = "key"` before it takes no new input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    pub records: usize,
    pub bytes: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            first_delay: Duration::from_millis(100),
            factor: 2.0,
            max_delay: Duration::from_secs(10),
            max_attempts: 10,
            codes: BTreeMap::new(),
        }
    }
}

impl Default for Parking {
    fn default() -> Self {
        Parking { records: 10_000, bytes: 64 << 20 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory: 64 << 20,
            memory_keep: 4 << 20,
            record_deadline: Duration::from_secs(1),
            init_deadline: Duration::from_secs(5),
            batch_records: 512,
            batch_bytes: 1 << 20,
            emits: 100_000,
            output_bytes: 64 << 20,
            log_lines: 100,
        }
    }
}

impl Default for Kafka {
    fn default() -> Self {
        Kafka {
            brokers: String::new(),
            transaction_timeout: Duration::from_secs(10),
            fetch_bytes: 256 << 20,
            properties: BTreeMap::new(),
        }
    }
}

/// Values of properties may be secrets: only their names are shown.
impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka")
            .field("brokers", &self.brokers)
            .field("transaction_timeout", &self.transaction_timeout)
            .field("fetch_bytes", &self.fetch_bytes)
            .field("properties", &self.properties.keys())
            .finish()
    }
}

/// The token is a secret: it is left out.
impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("listen", &self.listen)
            .field("has_token", &self.token.is_some())
            .field("tls", &self.tls)
            .field("behind_proxy", &self.behind_proxy)
            .field("advertise", &self.advertise)
            .finish()
    }
}

/// Values of properties may be secrets: only their names are shown.
impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Components").field("store", &self.store).field("properties", &self.properties.keys()).finish()
    }
}

/// A plugin's settings may hold secrets: they are left out.
impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processor")
            .field("name", &self.name)
            .field("plugin", &self.plugin)
            .field("watch", &self.watch)
            .field("probation", &self.probation)
            .field("dead_letter_topic", &self.dead_letter_topic)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .field("limits", &self.limits)
            .field("ordering", &self.ordering)
            .field("retry", &self.retry)
            .field("dead_letter", &self.dead_letter)
            .field("parking", &self.parking)
            .finish_non_exhaustive()
    }
}

impl Application {
    /// How long a revocation may wait for workers: half of librdkafka's `max.poll.interval.ms` (300,000 unless a property says
    /// otherwise), at most two minutes. Past it the group would expel this member.
    pub fn revocation_budget(&self) -> Duration {
        let set = match &self.log {
            LogKind::Kafka(kafka) => kafka.properties.get("max.poll.interval.ms").and_then(|ms| ms.parse().ok()),
            LogKind::Local { .. } => None,
        };
        (Duration::from_millis(set.unwrap_or(300_000)) / 2).min(Duration::from_secs(120))
    }

    /// How long an open transaction may be silent; on the embedded log, where none can be, Kafka's default of this file.
    pub fn transaction_timeout(&self) -> Duration {
        match &self.log {
            LogKind::Kafka(kafka) => kafka.transaction_timeout,
            LogKind::Local { .. } => Kafka::default().transaction_timeout,
        }
    }
}
