//! The sources of the host keep the house's rules.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use pelton_tests::house;
use std::path::{Path, PathBuf};

#[test]
fn the_sources_keep_the_rules() {
    let top = manifest_dir().join("../host/src");
    let files = sources(&top);
    assert!(files.len() > 10, "no sources at {}", top.display());
    let wrong: Vec<String> = files.iter().flat_map(|file| check(&top, file)).collect();
    assert!(wrong.is_empty(), "the house's rules (ARCHITECTURE.md) are broken:\n  {}", wrong.join("\n  "));
}

fn check(top: &Path, file: &Path) -> Vec<String> {
    let path = file.strip_prefix(top).expect("below the top").to_string_lossy().into_owned();
    house::check(&path, &std::fs::read_to_string(file).expect("a readable source"))
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a folder of sources").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// The crate's folder as cargo says it when it runs this: what was compiled may come from another clone that shares the target folder.
fn manifest_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo"))
}
