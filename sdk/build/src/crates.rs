//! One build of one guest crate, by cargo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::BuildError;
use crate::toolchain::Toolchain;
use crate::{Options, TARGET, default_target_dir};

/// The profile of guests, given on the command line so that any crate gets it. Panics abort: they trap, after the SDK's hook.
/// Link-time optimisation over one unit: smaller and faster where it counts, a second more.
const PROFILE: &[&str] = &[
    "profile.plugin.inherits=\"release\"",
    "profile.plugin.panic=\"abort\"",
    "profile.plugin.lto=\"fat\"",
    "profile.plugin.codegen-units=1",
    "profile.plugin.incremental=false",
];

/// `getrandom` 0.3 and later calls a function that the SDK defines; without this it does not know the target. (0.2 is told by a feature.)
const RANDOM: &str = "target.wasm32-unknown-unknown.rustflags=[\"--cfg\",\"getrandom_backend=\\\"custom\\\"\"]";

/// Function names stay, so that a trap's backtrace can be read; everything else of the debugger's goes.
const NAMES: &[&str] = &["profile.plugin.debug=false", "profile.plugin.strip=\"debuginfo\""];
const LINES: &[&str] = &["profile.plugin.debug=\"line-tables-only\"", "profile.plugin.strip=\"none\""];

/// A guest crate.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) name: String,
    manifest: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    filenames: Vec<PathBuf>,
}

/// Finds the crate in `dir`.
pub(crate) fn describe(toolchain: &Toolchain, dir: &Path) -> Result<Guest, BuildError> {
    let no_crate = |reason: String| BuildError::NoCrate { dir: dir.to_owned(), reason };
    let manifest = dir.join("Cargo.toml").canonicalize().map_err(|error| no_crate(format!("Cargo.toml: {error}")))?;
    let mut command = toolchain.cargo();
    command.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(&manifest);
    let output = command.output().map_err(|error| BuildError::program(command.get_program().as_ref(), error))?;
    if !output.status.success() {
        return Err(no_crate(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(|error| no_crate(error.to_string()))?;
    let package = metadata.packages.into_iter().find(|package| package.manifest_path == manifest);
    let package = package.ok_or_else(|| no_crate("Cargo.toml is a workspace; name one of its crates".to_owned()))?;
    match package.targets.iter().any(Target::is_module) {
        true => Ok(Guest { name: package.name, manifest }),
        false => Err(BuildError::NoModule { name: package.name }),
    }
}

/// Builds the crate and names its core module.
pub(crate) fn compile(toolchain: &Toolchain, guest: &Guest, options: &Options) -> Result<PathBuf, BuildError> {
    let mut command = command(toolchain, guest, options);
    let program = PathBuf::from(command.get_program());
    // Cargo talks to people on standard error, which stays theirs.
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| BuildError::program(&program, error))?;
    if !output.status.success() {
        return Err(BuildError::Compile { name: guest.name.clone() });
    }
    let module = output.stdout.split(|&byte| byte == b'\n').find_map(|line| module_in(line, &guest.manifest));
    module.ok_or_else(|| BuildError::NoModule { name: guest.name.clone() })
}

fn command(toolchain: &Toolchain, guest: &Guest, options: &Options) -> Command {
    let mut command = toolchain.cargo();
    command.args([
        "build",
        "--lib",
        "--profile=plugin",
        "--message-format=json-render-diagnostics",
        "--target",
        TARGET,
    ]);
    command.arg("--manifest-path").arg(&guest.manifest);
    command.arg("--target-dir").arg(options.target_dir.clone().unwrap_or_else(default_target_dir));
    let debug = if options.lines { LINES } else { NAMES };
    command.args(PROFILE.iter().chain(debug).chain([&RANDOM]).flat_map(|setting| ["--config", setting]));
    command.args(toolchain.build_arguments());
    command
}

/// The module in one of cargo's messages, if that is what it is about.
fn module_in(line: &[u8], manifest: &Path) -> Option<PathBuf> {
    let artifact: Artifact = serde_json::from_slice(line).ok()?;
    let ours = artifact.manifest_path == manifest && artifact.target.is_module();
    artifact.filenames.into_iter().find(|name| ours && name.extension().is_some_and(|extension| extension == "wasm"))
}

impl Target {
    fn is_module(&self) -> bool {
        self.kind.iter().any(|kind| kind == "cdylib")
    }
}
