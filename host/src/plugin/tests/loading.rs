//! Every mistake in a plugin's file is one fault that names it; a good one loads, from the cache too.

use super::puppet::{PUPPET, WIT, component, file, puppet_bytes};
use crate::model::Verdict;
use crate::model::manifest::{Scope, World};
use crate::plugin::Engine;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Loads `bytes` and expects a Fatal fault with `code` whose message has all of `words`.
fn refused(bytes: &[u8], code: &str, words: &[&str]) {
    let (_dir, path) = file(bytes);
    let fault = Engine::new(None).unwrap().load(&path).unwrap_err();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, code), "{fault}");
    assert!(words.iter().all(|word| fault.message.contains(word)), "{fault}");
    assert!(fault.message.contains("plugin.wasm"), "{fault}");
}

#[test]
fn the_puppet_loads_with_its_manifest() {
    let (_dir, path) = file(&puppet_bytes());
    let loaded = Engine::new(None).unwrap().load(&path).unwrap();
    assert_eq!(loaded.world, World::Aggregate);
    assert_eq!(loaded.manifest.name, "puppet");
    assert_eq!(loaded.manifest.inputs, ["input"]);
    assert_eq!(loaded.manifest.outputs, ["output"]);
    assert_eq!((loaded.manifest.stores[0].name.as_str(), loaded.manifest.stores[0].scope), ("store", Scope::Key));
    assert!(loaded.imports.contains(&"pelton:plugin/state@0.1.0".to_owned()), "{:?}", loaded.imports);
    assert_eq!(loaded.bytes.len() as u64, std::fs::metadata(&path).unwrap().len());
    assert_eq!(loaded.digest.len(), 64);
}

#[test]
fn a_missing_file() {
    let fault = Engine::new(None).unwrap().load("/nowhere/plugin.wasm".as_ref()).unwrap_err();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "plugin-missing"));
    assert!(fault.message.contains("/nowhere/plugin.wasm"), "{fault}");
}

#[test]
fn files_that_are_not_components() {
    refused(b"#!/bin/sh\n", "plugin-not-wasm", &[]);
    refused(b"", "plugin-not-wasm", &[]);
    refused(b"\0asm\x07\0\0\0", "plugin-not-wasm", &["version"]);
    refused(b"\0asm\x0d\0\x01\0\xff\xff\xff", "plugin-not-wasm", &["valid"]);
    refused(&wat::parse_str("(module)").unwrap(), "plugin-core-module", &["core"]);
}

#[test]
fn components_of_another_world() {
    refused(&wat::parse_str("(component)").unwrap(), "plugin-other-world", &["exports nothing"]);
    let wit = "package acme:other; world plugin { export run: func(); }";
    let other = component(r#"(module (func (export "run")))"#, wit, "plugin");
    refused(&other, "plugin-other-world", &["exports run"]);
}

#[test]
fn another_version_of_the_interface() {
    let newer = component(&PUPPET.replace("@0.1.0", "@0.1.1"), &WIT.replace("@0.1.0", "@0.1.1"), "aggregate-plugin");
    refused(&newer, "plugin-other-interface", &["@0.1.1", "@0.1.0"]);
}

#[test]
fn another_shape_of_the_same_version() {
    let wit = WIT.replace("schema-version: u32,", "schema-version: u64,");
    assert_ne!(wit, WIT);
    let (_dir, path) = file(&component(PUPPET, &wit, "aggregate-plugin"));
    let fault = Engine::new(None).unwrap().load(&path).unwrap_err();
    assert_eq!(fault.code, "plugin-other-interface", "{fault}");
}

#[test]
fn an_import_that_nobody_has() {
    let wit =
        format!("{WIT}\ninterface net {{ get: func(); }}\nworld online {{ include aggregate-plugin; import net; }}");
    let import = r#"(module (import "pelton:plugin/net@0.1.0" "get" (func))"#;
    refused(
        &component(&PUPPET.replacen("(module", import, 1), &wit, "online"),
        "plugin-unlinkable",
        &["pelton:plugin/net"],
    );
}

#[test]
fn descriptions_that_fail() {
    let with = |code: &str| component(&PUPPET.replace("(nop) ;; DESCRIBE", code), WIT, "aggregate-plugin");
    refused(&with("(call $boom)"), "plugin-manifest-invalid", &["unreachable"]);
    refused(&with("(call $hog)"), "plugin-manifest-invalid", &["memory"]);
    refused(&with("(i32.store (i32.const 1028) (i32.const 0))"), "plugin-manifest-invalid", &["name"]);
    refused(&with("(i32.store (i32.const 1144) (i32.const 2))"), "plugin-manifest-invalid", &["schema"]);
}

#[test]
fn an_endless_description_ends_without_ticks() {
    let endless = component(&PUPPET.replace("(nop) ;; DESCRIBE", "(call $spin)"), WIT, "aggregate-plugin");
    refused(&endless, "plugin-manifest-invalid", &["describe"]);
}

#[test]
fn compiled_code_is_kept_and_a_broken_file_is_written_anew() {
    let (dir, path) = file(&puppet_bytes());
    let cache = dir.path().join("cache");
    let load = || {
        let engine = Engine::new(Some(&cache)).unwrap();
        let component = engine.load(&path).unwrap();
        engine.keep(&component);
        component
    };
    Engine::new(Some(&cache)).unwrap().load(&path).unwrap();
    assert!(!cache.exists(), "loading alone leaves nothing behind");
    let kept = || std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let first = load();
    assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let [compiled] = kept().try_into().unwrap();
    assert!(compiled.file_name().unwrap().to_string_lossy().starts_with(&first.digest));
    let whole = std::fs::read(&compiled).unwrap();
    let inode = std::fs::metadata(&compiled).unwrap().ino();
    load();
    assert_eq!(std::fs::metadata(&compiled).unwrap().ino(), inode, "a hit writes nothing");
    for broken in [&whole[..whole.len() / 2], b"", &[&whole[..whole.len() - 1], b"!"].concat()] {
        std::fs::write(&compiled, broken).unwrap();
        assert_eq!(load().manifest, first.manifest);
        assert_eq!(std::fs::read(&compiled).unwrap().len(), whole.len());
    }
    assert_eq!(kept().len(), 1);
}

#[test]
fn a_cache_that_cannot_be_is_refused() {
    let (_dir, path) = file(b"");
    assert_eq!(Engine::new(Some(&path)).err().unwrap().code, "plugin-cache-unusable");
}
