//! Compilers that can build for the target: one that has the target installed, or Debian's, which builds the standard
//! library from source.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::BuildError;
use crate::{Options, TARGET};

/// Debian's packages: compiler, cargo, the library's source of the same version, and a linker.
const PACKAGES: &str = "rustc-web cargo-web rust-web-src lld-19";

/// Versions of `wasm-ld` that may be installed under a versioned name, newest first.
const LINKER_VERSIONS: std::ops::RangeInclusive<u32> = 16..=30;

/// A compiler for the target.
#[derive(Clone, Debug)]
pub struct Toolchain(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// The `cargo` of the path, whose compiler has the target installed.
    Installed,
    /// The system's compiler, with the library's source and a linker.
    System { linker: PathBuf },
}

/// Finds a compiler. With [`Options::install`] it tries to install one; each such step is told to `report` first.
pub fn find_toolchain(options: &Options, report: &mut dyn FnMut(&str)) -> Result<Toolchain, BuildError> {
    if let Some(found) = present() {
        return Ok(found);
    }
    let mut tried = String::new();
    let steps: &[(&str, bool)] = &[
        ("rustup target add wasm32-unknown-unknown", true),
        ("apt-get install -y --no-install-recommends rustc-web cargo-web rust-web-src lld-19", is_root()),
    ];
    for (step, allowed) in steps.iter().filter(|_| options.install) {
        if !allowed {
            continue;
        }
        report(&format!("no compiler for {TARGET} yet; running `{step}`"));
        if run(step)
            && let Some(found) = present()
        {
            return Ok(found);
        }
        tried.push_str(&format!("; `{step}` did not help"));
    }
    Err(BuildError::NoToolchain { tried, packages: PACKAGES })
}

impl Toolchain {
    /// A cargo command for the target, without its verb.
    pub(crate) fn cargo(&self) -> Command {
        match &self.0 {
            Kind::Installed => clean(Command::new("cargo")),
            Kind::System { linker } => system_cargo(linker),
        }
    }

    /// Arguments that a build needs beyond the usual.
    pub(crate) fn build_arguments(&self) -> &'static [&'static str] {
        match &self.0 {
            Kind::Installed => &[],
            Kind::System { .. } => &["-Zbuild-std=std,panic_abort"],
        }
    }

    /// Where the compiler comes from, for people.
    pub fn description(&self) -> &'static str {
        match &self.0 {
            Kind::Installed => "installed target",
            Kind::System { .. } => "system compiler, standard library from source",
        }
    }
}

fn present() -> Option<Toolchain> {
    if has_target(Path::new("rustc")) {
        return Some(Toolchain(Kind::Installed));
    }
    let source = Path::new("/usr/lib/rustlib/src/rust/library/std/src/lib.rs");
    let complete = source.exists() && Path::new("/usr/bin/cargo").exists() && Path::new("/usr/bin/rustc").exists();
    complete.then(linker).flatten().map(|linker| Toolchain(Kind::System { linker }))
}

/// The folder that the compiler names exists only where the target is installed.
fn has_target(rustc: &Path) -> bool {
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn linker() -> Option<PathBuf> {
    let versioned = LINKER_VERSIONS.rev().map(|version| format!("/usr/bin/wasm-ld-{version}"));
    versioned.chain(["/usr/bin/wasm-ld".to_owned()]).map(PathBuf::from).find(|path| path.exists())
}

fn system_cargo(linker: &Path) -> Command {
    let mut command = clean(Command::new("/usr/bin/cargo"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("/usr/bin:{path}")).env("RUSTC", "/usr/bin/rustc");
    // Building the library from source is a feature that the stable compiler keeps behind this switch.
    command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    command
}

/// Without what an outer cargo, or flags meant for this machine's processor, would bring in.
fn clean(mut command: Command) -> Command {
    for name in ["CARGO", "RUSTC", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(name);
    }
    command
}

fn run(step: &str) -> bool {
    let mut words = step.split(' ');
    let Some(program) = words.next() else { return false };
    Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
