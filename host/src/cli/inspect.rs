//! `pelton inspect`: what a component is, wants and promises.

use super::args::InspectArgs;
use super::{Out, host};
use crate::model::manifest::{Manifest, Scope, StoreSpec, World};
use serde_json::{Value, json};
use std::time::Duration;

/// What is known of a component.
#[derive(Clone, Debug)]
pub(super) struct Inspection {
    pub manifest: Manifest,
    pub world: World,
    /// Full names with versions.
    pub imports: Vec<String>,
    /// SHA-256, as hex.
    pub digest: String,
    pub bytes: u64,
    pub compile_time: Duration,
}

pub(super) fn inspect(args: &InspectArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let found = host::inspect(&args.component)?;
    if args.json {
        return Ok(writeln!(out.to, "{}", json(&found))?);
    }
    for (name, value) in lines(&found) {
        writeln!(out.to, "{name:<13} {value}")?;
    }
    Ok(())
}

fn lines(found: &Inspection) -> Vec<(&'static str, String)> {
    let manifest = &found.manifest;
    let more = if manifest.other_outputs { " and any other" } else { "" };
    let mut lines = vec![
        ("name", manifest.name.clone()),
        ("version", manifest.version.clone()),
        ("sdk", manifest.sdk.clone()),
        ("world", found.world.to_string()),
        ("inputs", list(&manifest.inputs)),
        ("outputs", list(&manifest.outputs) + more),
    ];
    lines.extend(manifest.stores.iter().map(|store| ("store", show_store(store))));
    lines.extend(found.imports.iter().map(|import| ("imports", import.clone())));
    lines.push(("size", format!("{} bytes", found.bytes)));
    lines.push(("compile time", format!("{} ms", found.compile_time.as_millis())));
    lines.push(("digest", found.digest.clone()));
    lines
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn show_store(store: &StoreSpec) -> String {
    let StoreSpec { name, codec, schema_version, reads_from, .. } = store;
    format!("{name} (scope {}, codec {codec}, schema {schema_version}, reads from {reads_from})", scope(store.scope))
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Key => "key",
        Scope::Partition => "partition",
    }
}

fn json(found: &Inspection) -> Value {
    let manifest = &found.manifest;
    let stores = manifest.stores.iter().map(|s| {
        json!({"name": s.name, "scope": scope(s.scope), "codec": s.codec, "schema_version": s.schema_version, "reads_from": s.reads_from})
    });
    json!({
        "name": manifest.name,
        "version": manifest.version,
        "sdk": manifest.sdk,
        "world": found.world.to_string(),
        "inputs": manifest.inputs,
        "outputs": manifest.outputs,
        "other_outputs": manifest.other_outputs,
        "stores": stores.collect::<Vec<_>>(),
        "imports": found.imports,
        "bytes": found.bytes,
        "compile_ms": found.compile_time.as_millis() as u64,
        "digest": found.digest,
    })
}
