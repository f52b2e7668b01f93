//! What a host is doing, as one value: for `/v1/status` and the command line.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host at one moment. Field names are those of `/v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub application: String,
    pub instance: String,
    pub pid: u32,
    /// Of Pelton.
    pub release: String,
    /// Milliseconds since the epoch.
    pub started_ms: i64,
    pub now_ms: i64,
    /// `kafka` or `local`.
    pub log: String,
    pub live: bool,
    pub ready: bool,
    /// Why it is not ready, one line each: `subject: reason`.
    pub reasons: Vec<String>,
    pub processors: Vec<ProcessorStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorStatus {
    pub name: String,
    pub state: ProcessorState,
    /// Why it is stopped.
    pub reason: Option<String>,
    pub version: VersionStatus,
    pub group: String,
    /// The plugin's name → topic.
    pub inputs: BTreeMap<String, String>,
    pub outputs: BTreeMap<String, String>,
    pub dead_letter_topic: String,
    pub stores: Vec<String>,
    /// Partitions of the inputs, over all hosts.
    pub partitions: i32,
    /// Records that the group has still to work off, over all hosts; `None` where the cluster could not be asked.
    pub lag: Option<i64>,
    /// The same by input partition; those that could not be asked for are without numbers.
    pub lags: Vec<LagStatus>,
    /// Of this host.
    pub tasks: Vec<TaskStatus>,
    /// The last ones on this host, newest first; at most 20.
    pub failures: Vec<FailureStatus>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorState {
    #[default]
    Running,
    Paused,
    Stopped,
}

/// The version of a plugin that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionStatus {
    pub sequence: i64,
    pub digest: String,
    pub plugin: String,
    pub version: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    pub partition: i32,
    pub state: TaskState,
    /// Why it is in a state other than running.
    pub reason: Option<String>,
    /// Of the version that it runs.
    pub sequence: i64,
    pub inputs: Vec<PositionStatus>,
    /// Records that wait by key.
    pub parked: u64,
    pub overlay_bytes: u64,
    pub restore: Option<RestoreStatus>,
    /// For how long the plugin has been at its present call; `None` where it is at none.
    pub call_ms: Option<u64>,
    /// How old this is where the task's worker did not answer in time.
    pub age_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    #[default]
    Opening,
    Restoring,
    Running,
    BackingOff,
    Halted,
}

/// How far a group is behind in a partition of an input, whichever host has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagStatus {
    pub topic: String,
    pub partition: i32,
    /// The group's committed offset; `None` where it has none.
    pub committed: Option<i64>,
    /// As of [`PositionStatus::end`].
    pub end: Option<i64>,
    /// As of [`PositionStatus::lag`].
    pub lag: Option<i64>,
    /// Records that wait by key: the committed offset is past them.
    pub parked: u64,
}

/// Where a task is in an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionStatus {
    pub topic: String,
    /// The next offset to read, as of the last commit; `None` before the first.
    pub committed: Option<i64>,
    /// The end as readers of committed records see it; `None` where the cluster could not be asked.
    pub end: Option<i64>,
    /// Offsets between the two, 0 once only transaction markers are left; `None` where one is not known.
    pub lag: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestoreStatus {
    /// Changelog offsets passed, and to pass.
    pub done: u64,
    pub target: u64,
    pub records_per_second: f64,
}

/// A failure that was handled: a dead letter, a retry's first failure, a halt, an abort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureStatus {
    pub time_ms: i64,
    /// Stable.
    pub code: String,
    pub message: String,
    /// `topic/partition@offset` of the record, where one is to blame.
    pub place: Option<String>,
}
