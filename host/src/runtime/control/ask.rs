//! Changes that are asked for from outside: another version of a plugin, the one before, a pause.

use super::Control;
use crate::model::Fault;
use crate::versions::How;
use serde::{Deserialize, Serialize};

/// A version to deploy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deploy {
    pub processor: String,
    /// The component's file.
    pub component: Vec<u8>,
    /// Who asks.
    pub by: String,
    /// Whether a version is wanted that cannot be rolled back by itself.
    pub no_rollback: bool,
}

/// A version to go back to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollback {
    pub processor: String,
    /// The beginning of a digest in the history, or `None` for the version before the active one.
    pub to: Option<String>,
    pub by: String,
}

/// A version that has become active.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    pub sequence: i64,
    pub digest: String,
    /// Of the plugin, as it says.
    pub plugin: String,
    pub version: String,
    /// Until when it is rolled back by itself where it fails, in milliseconds since the epoch; `None` for never.
    pub probation_until_ms: Option<i64>,
    /// What was noticed and does not stand in the way.
    pub notes: Vec<String>,
}

/// The versions of one processor, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub processor: String,
    pub paused: bool,
    pub entries: Vec<HistoryEntry>,
}

/// One version that was active, or is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub sequence: i64,
    pub digest: String,
    pub plugin: String,
    pub version: String,
    /// Who made it active, and when in milliseconds since the epoch.
    pub by: String,
    pub time_ms: i64,
    /// `start`, `deploy`, `watch`, `rollback` or `probation`.
    pub how: String,
    /// What became of it: `active`, `replaced`, or `rolled back: REASON`.
    pub result: String,
}

impl Control {
    /// The last versions of a processor, at most 20.
    pub fn history(&self, processor: &str) -> Result<History, Fault> {
        self.running()?.rollout.history(processor)
    }

    /// Makes another version of a processor's plugin the active one, on all hosts. Waits until this host's tasks run it.
    pub fn deploy(&self, ask: Deploy) -> Result<Deployed, Fault> {
        self.running()?.rollout.deploy(ask, How::Deploy)
    }

    /// Makes an earlier version the active one.
    pub fn rollback(&self, ask: &Rollback) -> Result<Deployed, Fault> {
        self.running()?.rollout.go_back(ask)
    }

    /// Pauses a processor on all hosts, or lets it go on. False where it was so already.
    pub fn pause(&self, processor: &str, paused: bool, by: &str) -> Result<bool, Fault> {
        self.running()?.rollout.pause(processor, paused, by)
    }
}
