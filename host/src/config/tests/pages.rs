//! The reference page is fresh, and every TOML that the documentation and the examples show is taken.

use crate::config::{Environment, page, parse};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    manifest_dir().join("..")
}

#[test]
fn settings_page() {
    let path = root().join("docs/settings.md");
    if std::env::var_os("PELTON_BLESS").is_some() {
        fs::write(&path, page::settings_page()).unwrap();
    }
    let stale = fs::read_to_string(&path).unwrap_or_default() != page::settings_page();
    assert!(!stale, "docs/settings.md is stale; run: PELTON_BLESS=1 cargo test -p pelton --lib settings_page");
}

#[test]
fn every_toml_that_is_shown_is_taken() {
    let mut seen = 0;
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        for shown in shown(&file, &text) {
            check(&file, &shown);
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} found");
}

/// Files of documentation, and application files of examples and templates.
fn files() -> Vec<PathBuf> {
    let mut found = vec![];
    collect(&root().join("docs"), &mut found);
    collect(&root().join("examples"), &mut found);
    found.extend(["README.md", "ARCHITECTURE.md"].map(|name| root().join(name)).into_iter().filter(|p| p.exists()));
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let wanted = |p: &Path| p.extension().is_some_and(|e| e == "md" || e == "toml") && !p.ends_with("Cargo.toml");
        if path.is_dir() {
            collect(&path, found);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

fn shown(file: &Path, text: &str) -> Vec<String> {
    if file.extension().is_some_and(|e| e == "toml") {
        return vec![text.to_owned()];
    }
    let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().to_owned());
    blocks.filter(|b| !["[package]", "[dependencies]", "[lib]"].iter().any(|cargo| b.contains(cargo))).collect()
}

/// A block without [application] is a part of a file: it may lack keys, and what others of its parts would settle.
fn check(file: &Path, text: &str) {
    let variables = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    let environment: Environment = variables.map(|(name, _)| (name.to_owned(), "value".to_owned())).collect();
    let Err(errors) = parse(text, file, &environment) else { return };
    let part = !text.contains("[application]");
    let real = errors.mistakes.iter().filter(|m| !(part && ["missing-key", "conflict"].contains(&m.code)));
    let real: Vec<String> = real.map(|m| m.to_string()).collect();
    assert!(real.is_empty(), "{} shows what is refused: {real:#?}\n{text}", file.display());
}

/// The crate's folder as cargo says it when it runs this: what was compiled may come from another clone that shares the target folder.
fn manifest_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo"))
}
