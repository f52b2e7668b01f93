//! What can go wrong, and what to do about it.

use std::path::{Path, PathBuf};

use crate::TARGET;

/// Why there is no component. Messages say what was attempted and what helps.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No compiler for the target, and none could be installed.
    #[error(
        "no rust compiler for {TARGET} was found{tried}; install one of these:\n  \
         rustup target add {TARGET}\n  \
         apt-get install {packages} (Debian, as root)"
    )]
    NoToolchain {
        /// What was tried, for people; may be empty.
        tried: String,
        /// Debian's packages.
        packages: &'static str,
    },
    /// A program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Program {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The folder holds no crate, or one that cargo cannot read.
    #[error("no guest crate in {}: {reason}", dir.display())]
    NoCrate {
        /// The folder.
        dir: PathBuf,
        /// What cargo said.
        reason: String,
    },
    /// The crate makes no module.
    #[error("crate `{name}` makes no module: add `crate-type = [\"cdylib\"]` under `[lib]` in its Cargo.toml")]
    NoModule {
        /// The crate.
        name: String,
    },
    /// The compiler refused; it has told why on standard error.
    #[error("crate `{name}` does not build for {TARGET}; the compiler's messages are above")]
    Compile {
        /// The crate.
        name: String,
    },
    /// The module is no plugin.
    #[error(
        "module of `{name}` cannot be made a component: {reason}; a plugin calls `pelton_sdk::transform!` or `aggregate!` once"
    )]
    Component {
        /// The crate.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn file(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File { action, path: path.to_owned(), source }
    }

    pub(crate) fn program(program: &Path, source: std::io::Error) -> Self {
        Self::Program { program: program.display().to_string(), source }
    }
}
