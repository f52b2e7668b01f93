//! What the admin surface asks of a host: the runtime's control, or another one in tests.

use crate::model::Fault;
use crate::runtime::Control;
use crate::runtime::Snapshot;
use crate::runtime::control::state::{Answer, Get, Page, Scan, Value};
use crate::runtime::control::{Deploy, Deployed, History, Identity, Rollback, Status};

/// A host. All but `identity` and `health` may take a while.
pub trait Asked: Send + Sync {
    fn identity(&self) -> &Identity;
    fn health(&self) -> Snapshot;
    /// The address by which other hosts can be told of this one.
    fn listens_at(&self, address: &str);
    fn status(&self) -> Result<Status, Fault>;
    fn get(&self, ask: &Get) -> Result<Answer<Value>, Fault>;
    fn scan(&self, ask: &Scan) -> Result<Answer<Page>, Fault>;
    fn history(&self, processor: &str) -> Result<History, Fault>;
    fn deploy(&self, ask: Deploy) -> Result<Deployed, Fault>;
    fn rollback(&self, ask: &Rollback) -> Result<Deployed, Fault>;
    fn pause(&self, processor: &str, paused: bool, by: &str) -> Result<bool, Fault>;
}

impl Asked for Control {
    fn identity(&self) -> &Identity {
        Control::identity(self)
    }

    fn health(&self) -> Snapshot {
        Control::health(self)
    }

    fn listens_at(&self, address: &str) {
        Control::listens_at(self, address.to_owned());
    }

    fn status(&self) -> Result<Status, Fault> {
        Control::status(self)
    }

    fn get(&self, ask: &Get) -> Result<Answer<Value>, Fault> {
        Control::get(self, ask)
    }

    fn scan(&self, ask: &Scan) -> Result<Answer<Page>, Fault> {
        Control::scan(self, ask)
    }

    fn history(&self, processor: &str) -> Result<History, Fault> {
        Control::history(self, processor)
    }

    fn deploy(&self, ask: Deploy) -> Result<Deployed, Fault> {
        Control::deploy(self, ask)
    }

    fn rollback(&self, ask: &Rollback) -> Result<Deployed, Fault> {
        Control::rollback(self, ask)
    }

    fn pause(&self, processor: &str, paused: bool, by: &str) -> Result<bool, Fault> {
        Control::pause(self, processor, paused, by)
    }
}
