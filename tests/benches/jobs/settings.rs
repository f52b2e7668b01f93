//! What the environment says, and where the built things are.

use pelton_tests::broker::root;
use std::path::PathBuf;

/// Keys of every keyed job.
pub(crate) const KEYS: u64 = 100_000;
/// Partitions of every topic.
pub(crate) const PARTITIONS: i32 = 8;

/// A whole number by its name.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no whole number"));
    std::env::var(name).ok().filter(|text| !text.is_empty()).map_or(default, parse)
}

/// Whether the long ones are wanted too.
pub(crate) fn full() -> bool {
    number("FULL", 0) > 0
}

/// The released binary.
pub(crate) fn pelton() -> PathBuf {
    existing(std::env::var_os("PELTON_BIN").map_or_else(|| root().join("bin/pelton"), PathBuf::from))
}

pub(crate) fn plugin(name: &str) -> PathBuf {
    let folder = std::env::var_os("PELTON_PLUGINS").map_or_else(|| root().join("bin/plugins"), PathBuf::from);
    existing(folder.join(name).with_extension("wasm"))
}

/// The loop to compare with; Cargo builds it before a benchmark.
pub(crate) fn raw_loop() -> PathBuf {
    existing(PathBuf::from(env!("CARGO_BIN_EXE_raw_loop")))
}

fn existing(path: PathBuf) -> PathBuf {
    let path = std::path::absolute(&path).unwrap();
    assert!(path.exists(), "{} is missing: run `make build` first", path.display());
    path
}
