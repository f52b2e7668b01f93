//! The calls into the host below, each in one place.

use super::inspect::Inspection;
use super::progress::RestoreBar;
use crate::config::{Application, Processor};
use crate::http::{self, Reach, RenderMetrics};
use crate::model::Fault;
use crate::model::log::Log;
use crate::model::manifest::{Manifest, World};
use crate::plugin::Engine;
use crate::runtime::{self, OpenAdmin, RunOptions, ShowRestore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use crate::http::{Client, Failure};
pub(super) use crate::runtime::{End, Lines, Refusals, Report};

/// A component that was built.
pub(super) struct Built {
    pub path: PathBuf,
    pub bytes: u64,
}

pub(super) fn open_log(application: &Application) -> Result<Arc<dyn Log>, Fault> {
    runtime::open_log(application)
}

/// The log for a verb that only reads.
pub(super) fn look_at_log(application: &Application) -> Result<Arc<dyn Log>, Fault> {
    runtime::look_at_log(application)
}

/// `metrics` is what the admin surface shows.
pub(super) fn run(application: Application, until_idle: bool, metrics: RenderMetrics) -> Result<End, Fault> {
    let bar = RestoreBar::default();
    let show = move |progress| bar.show(progress);
    let (admin, folder) = (application.admin.clone(), application.state_dir.clone());
    let open = move |control| {
        let surface = http::open(Arc::new(control), &admin, &folder, metrics)?;
        Ok(Box::new(surface) as Box<dyn Send>)
    };
    let (show_restore, open_admin) = (Some(Box::new(show) as ShowRestore), Some(Box::new(open) as OpenAdmin));
    runtime::run(application, RunOptions { until_idle, show_restore, open_admin })
}

pub(super) fn check(application: &Application) -> Result<Report, Refusals> {
    http::check(&application.admin)?;
    runtime::check(application)
}

/// The running host of an application, as the command line names it.
pub(super) fn find(application: &Application, host: Option<&str>) -> Result<Client, Failure> {
    Client::find(Reach { application, host })
}

/// What the plugin of each processor says of itself.
pub(super) fn describe(application: &Application) -> Result<Vec<(World, Manifest)>, Fault> {
    let engine = Engine::with_stack(None, application.plugin_stack_bytes)?;
    let describe = |processor: &Processor| {
        let named = |fault: Fault| fault.during(format!("processor {}", processor.name));
        engine.load(&processor.plugin).map(|found| (found.world, found.manifest.clone())).map_err(named)
    };
    application.processors.iter().map(describe).collect()
}

pub(super) fn inspect(component: &Path) -> Result<Inspection, Fault> {
    let found = Engine::new(None)?.load(component)?;
    Ok(Inspection {
        manifest: found.manifest.clone(),
        world: found.world,
        imports: found.imports.clone(),
        digest: found.digest.clone(),
        bytes: found.bytes.len() as u64,
        compile_time: found.compile_time,
    })
}

/// The bytes of a component's file, once it is one that a host would load.
pub(super) fn component(file: &Path) -> Result<Vec<u8>, Fault> {
    let engine = Engine::new(None)?;
    let name = file.display().to_string();
    // in the engine's words where it cannot be read
    let Ok(bytes) = std::fs::read(file) else { return engine.load(file).map(|_| Vec::new()) };
    engine.load_bytes(&name, bytes.clone()).map(|_| bytes)
}

/// Builds the crate in `dir` into `out`; `say` is told of each step. What no host would load is not written.
pub(super) fn build(
    dir: &Path,
    out: &Path,
    lines: bool,
    install: bool,
    say: &mut dyn FnMut(&str),
) -> Result<Built, Fault> {
    let options = pelton_build::Options { target_dir: None, lines, install };
    let fault = |error: pelton_build::BuildError| Fault::fatal("build-failed", error.to_string());
    let toolchain = pelton_build::find_toolchain(&options, say).map_err(fault)?;
    let made = pelton_build::make(&toolchain, dir, &options).map_err(fault)?;
    Engine::new(None)?.load_bytes(&made.name, made.component.clone())?;
    let built = made.write(out).map_err(fault)?;
    Ok(Built { path: built.path, bytes: built.bytes })
}
