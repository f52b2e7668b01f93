//! The calls into the host below, each in one place.

use super::inspect::Inspection;
use crate::config::Application;
use crate::model::Fault;
use crate::model::log::Log;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `check` found: nothing to refuse, and what `run` would create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Per processor: its name, its plugin's name and version.
    pub processors: Vec<(String, String, String)>,
    pub creates: Vec<String>,
}

/// A component that was built.
pub(super) struct Built {
    pub path: PathBuf,
    pub bytes: u64,
}

pub(super) fn open_log(_application: &Application) -> Result<Arc<dyn Log>, Fault> {
    Err(not_connected())
}

pub(super) fn run(_application: Application, _until_idle: bool) -> Result<(), Fault> {
    Err(not_connected())
}

pub(super) fn check(_application: &Application) -> Result<Report, Fault> {
    Err(not_connected())
}

pub(super) fn inspect(_component: &Path) -> Result<Inspection, Fault> {
    Err(not_connected())
}

/// Builds the crate in `dir` into `out`; `say` is told of each step.
pub(super) fn build(
    _dir: &Path,
    _out: &Path,
    _lines: bool,
    _install: bool,
    _say: &mut dyn FnMut(&str),
) -> Result<Built, Fault> {
    Err(not_connected())
}

fn not_connected() -> Fault {
    Fault::fatal("not-connected", "this build of the command line has no host below it")
}
