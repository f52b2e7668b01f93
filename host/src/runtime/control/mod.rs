//! What a way in from outside may ask of a running host: one handle, for any thread, there before the host has reached its log.

mod ask;
mod look;
mod read;
pub mod state;
mod status;
#[cfg(test)]
mod tests;

pub use ask::{Deploy, Deployed, History, HistoryEntry, Rollback};
pub use status::{
    FailureStatus, LagStatus, PositionStatus, ProcessorState, ProcessorStatus, RestoreStatus, Status, TaskState,
    TaskStatus, VersionStatus,
};

use super::assignment::Assignment;
use super::hosts::Directory;
use super::rollout::Rollout;
use super::worker::Handle;
use super::{Health, Hosts, Shared, Snapshot};
use crate::model::Fault;
use std::sync::{Arc, Mutex, OnceLock};

/// A running host as seen from outside. Clones are the same one.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Identity,
    health: Arc<Health>,
    hosts: Arc<Hosts>,
    /// Milliseconds since the epoch.
    started_ms: i64,
    running: OnceLock<Running>,
}

/// Which host it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The application's id.
    pub application: String,
    /// Of this state folder; stable over restarts.
    pub instance: String,
    pub pid: u32,
}

/// What there is once the host has reached its log and knows its topics.
pub(super) struct Running {
    shared: Arc<Shared>,
    rollout: Arc<Rollout>,
    workers: Vec<Handle>,
    /// One per processor, in the file's order.
    assignments: Vec<Arc<Assignment>>,
    /// Who holds what is not here.
    directory: Mutex<Directory>,
}

impl Running {
    pub(super) fn new(
        shared: Arc<Shared>,
        rollout: Arc<Rollout>,
        workers: Vec<Handle>,
        assignments: Vec<Arc<Assignment>>,
    ) -> Running {
        Running { shared, rollout, workers, assignments, directory: Mutex::default() }
    }
}

impl Control {
    pub(super) fn new(identity: Identity, health: Arc<Health>, started_ms: i64) -> Control {
        let (hosts, running) = (Arc::default(), OnceLock::new());
        Control { inner: Arc::new(Inner { identity, health, hosts, started_ms, running }) }
    }

    pub(super) fn hosts(&self) -> Arc<Hosts> {
        self.inner.hosts.clone()
    }

    /// From now on the rest can be asked.
    pub(super) fn started(&self, running: Running) {
        let _ = self.inner.running.set(running);
    }

    pub fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// Says where this host's way in is, so that other hosts can send there who asks them for what this one holds.
    pub fn listens_at(&self, address: String) {
        self.inner.hosts.listens_at(address);
    }

    /// Whether the host is live and ready, and if not, why.
    pub fn health(&self) -> Snapshot {
        self.inner.health.snapshot()
    }

    /// `Transient` `starting` before the host has reached its log.
    fn running(&self) -> Result<&Running, Fault> {
        let starting = || Fault::transient("starting", "the host is starting: its log and topics are not known yet");
        self.inner.running.get().ok_or_else(starting)
    }
}
