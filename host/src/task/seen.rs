//! What others may see of a task, between two of its turns: where it is, and what is committed in its stores.

use super::{State, Task};
use crate::model::Fault;
use crate::model::state::ScanRange;
use crate::state::CommittedPage;
use std::sync::Arc;
use std::time::Duration;

/// A task at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub partition: i32,
    pub processor: Arc<str>,
    pub state: State,
    /// Of the version that it runs.
    pub sequence: i64,
    /// Every input's topic, with the next offset of its last commit; `None` before the first.
    pub committed: Vec<(Arc<str>, Option<i64>)>,
    /// Records that wait by key.
    pub parked: u64,
    /// Bytes of uncommitted state.
    pub overlay_bytes: u64,
    /// When the call in flight began, on the monotonic clock.
    pub calling_since: Option<Duration>,
}

impl Task {
    pub fn seen(&self) -> Seen {
        Seen {
            partition: self.id.partition,
            processor: self.id.processor.clone(),
            state: self.state.clone(),
            sequence: self.version.sequence,
            committed: self.intake.committed(),
            parked: self.park.as_ref().map_or(0, |park| park.records() as u64),
            overlay_bytes: self.overlay_bytes(),
            calling_since: self.call.as_ref().map(|running| running.since),
        }
    }

    /// When the record that the task waits for failed first, in milliseconds since the epoch.
    pub fn retried_since(&self) -> Option<i64> {
        self.intake.retrying().map(|attempts| attempts.first_ms)
    }

    /// A value as of the last commit. `None`: there is no store of that name; the inner: it has no such key.
    #[allow(clippy::option_option, reason = "two different absences, named in the comment")]
    pub fn committed_value(&self, store: &str, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Fault> {
        let Some(stores) = self.stores() else { return Ok(None) };
        stores.number(store).map(|store| stores.committed_value(store, key)).transpose()
    }

    /// Entries as of the last commit. `None`: there is no store of that name.
    pub fn committed_page(&self, store: &str, range: &ScanRange) -> Result<Option<CommittedPage>, Fault> {
        let Some(stores) = self.stores() else { return Ok(None) };
        stores.number(store).map(|store| stores.committed_page(store, range)).transpose()
    }
}
