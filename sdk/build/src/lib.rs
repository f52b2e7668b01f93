//! From a guest crate to a component: finds a compiler for the target, builds, wraps, and writes `NAME.wasm` whole or not at all.
//!
//! ```no_run
//! # fn main() -> Result<(), pelton_build::BuildError> {
//! use std::path::Path;
//! let options = pelton_build::Options::default();
//! let toolchain = pelton_build::find_toolchain(&options, &mut |step| eprintln!("{step}"))?;
//! let built = pelton_build::build(&toolchain, Path::new("my-plugin"), Path::new("out"), &options)?;
//! # Ok(()) }
//! ```

/// The core module as a component.
mod component;
/// One build of one crate.
mod crates;
/// What can go wrong, and what to do about it.
mod error;
/// Compilers that can build for the target.
mod toolchain;

use std::path::{Path, PathBuf};

pub use component::{componentize, write_whole};
pub use error::BuildError;
pub use toolchain::{Toolchain, find_toolchain};

/// The target of guests: no operating system, nothing imported that was not asked for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The target folder; [`default_target_dir`] when unset. One folder for all plugins builds the standard library once.
    pub target_dir: Option<PathBuf>,
    /// Keep line tables, so that traps name file and line: about five times the size.
    pub lines: bool,
    /// Install what is missing, where that needs no questions: with `rustup`, or as root with `apt-get`.
    pub install: bool,
}

/// A component that is not written yet.
#[derive(Clone, Debug)]
pub struct Made {
    /// The package's name.
    pub name: String,
    /// The component.
    pub component: Vec<u8>,
}

/// A component that was written.
#[derive(Clone, Debug)]
pub struct Built {
    /// The package's name.
    pub name: String,
    /// The component's file.
    pub path: PathBuf,
    /// The component's size in bytes.
    pub bytes: u64,
}

/// Builds the crate in `dir` and writes its component: [`make`], then [`Made::write`].
pub fn build(toolchain: &Toolchain, dir: &Path, out: &Path, options: &Options) -> Result<Built, BuildError> {
    make(toolchain, dir, options)?.write(out)
}

/// Builds the crate in `dir` and wraps it, without writing it: whoever can load components looks at it first.
pub fn make(toolchain: &Toolchain, dir: &Path, options: &Options) -> Result<Made, BuildError> {
    let guest = crates::describe(toolchain, dir)?;
    let module = crates::compile(toolchain, &guest, options)?;
    let bytes = std::fs::read(&module).map_err(|error| BuildError::file("read the module", &module, error))?;
    let component = componentize(&guest.name, &bytes)?;
    Ok(Made { name: guest.name, component })
}

impl Made {
    /// Writes the component as `NAME.wasm` into `out`, which is created if need be.
    ///
    /// A file of that name is replaced whole, so that a host that watches it never sees a half.
    pub fn write(self, out: &Path) -> Result<Built, BuildError> {
        let path = out.join(&self.name).with_added_extension("wasm");
        write_whole(&path, &self.component)?;
        Ok(Built { name: self.name, path, bytes: self.component.len() as u64 })
    }
}

/// `$CARGO_TARGET_DIR`, or `pelton/target` in the user's cache folder.
pub fn default_target_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CARGO_TARGET_DIR").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default().join(".cache");
        set("XDG_CACHE_HOME").unwrap_or_else(home).join("pelton/target")
    })
}
