//! What a way in from outside may ask of a running host: one handle, for any thread, there before the host has reached its log.

mod ask;
pub mod state;
mod status;

pub use ask::{Deploy, Deployed, History, HistoryEntry, Rollback};
pub use status::{
    FailureStatus, PositionStatus, ProcessorState, ProcessorStatus, RestoreStatus, Status, TaskState, TaskStatus,
    VersionStatus,
};

use super::{Health, Shared, Snapshot};
use crate::model::Fault;
use std::sync::{Arc, OnceLock};

/// A running host as seen from outside. Clones are the same one.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Identity,
    health: Arc<Health>,
    running: OnceLock<Running>,
    address: OnceLock<String>,
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
    pub shared: Arc<Shared>,
}

impl Control {
    pub(super) fn new(identity: Identity, health: Arc<Health>) -> Control {
        Control { inner: Arc::new(Inner { identity, health, running: OnceLock::new(), address: OnceLock::new() }) }
    }

    /// From now on the rest can be asked.
    pub(super) fn started(&self, running: Running) {
        let _ = self.inner.running.set(running);
    }

    pub fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// Whether the host is live and ready, and if not, why.
    pub fn health(&self) -> Snapshot {
        self.inner.health.snapshot()
    }

    /// The admin surface listens, and others reach it there.
    pub fn listens_at(&self, address: &str) {
        let _ = self.inner.address.set(address.to_owned());
    }

    /// `Transient` `starting` before the host has reached its log.
    fn running(&self) -> Result<&Running, Fault> {
        let starting = || Fault::transient("starting", "the host is starting: its log and topics are not known yet");
        self.inner.running.get().ok_or_else(starting)
    }
}
