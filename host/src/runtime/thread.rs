//! Threads of a host: named, and a start that fails is told in one form.

use crate::model::Fault;
use std::thread::{Builder, JoinHandle};

/// Starts a thread. `what` it is, in the words of `Fatal` `no-thread`.
pub(super) fn start<T: Send + 'static>(
    name: impl Into<String>,
    what: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Fault> {
    let failed = |error| Fault::fatal("no-thread", format!("starting {what}: {error}"));
    Builder::new().name(name.into()).spawn(run).map_err(failed)
}
