//! A component that was loaded: what it is, what it wants, what it promises.

use super::bindings::exports::pelton::plugin::lifecycle;
use super::export::Linked;
use super::fault::CallFault;
use super::host::{Data, Quota};
use super::pace::Pace;
use super::world;
use crate::model::manifest::{Manifest, Scope, StoreSpec, World};
use crate::model::{Clock, Fault, SystemClock};
use std::collections::HashSet;
use std::future::Future;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use wasmtime::UpdateDeadline;

/// What a plugin may use to describe itself.
const DESCRIBE_MEMORY: u64 = 64 << 20;
const DESCRIBE_BYTES: u64 = 1 << 20;
const DESCRIBE_DEADLINE: Duration = Duration::from_secs(2);
/// Loops and calls between two looks at the clock.
const STEPS_PER_LOOK: u64 = 1 << 10;
/// Longest name in a manifest, in characters.
const NAME_LENGTH: usize = 100;

/// A plugin, compiled and linked; makes any number of instances.
pub struct Component {
    pub manifest: Manifest,
    pub world: World,
    /// SHA-256 of the file, in hex.
    pub digest: String,
    /// The file, to be kept where other hosts find it.
    pub bytes: Vec<u8>,
    /// How long it took to compile, or to load from the cache.
    pub compile_time: Duration,
    /// Full names of what it imports.
    pub imports: Vec<String>,
    pub(super) linked: Linked,
    /// The code, where it was compiled now and is not in the cache yet.
    pub(super) fresh: Option<wasmtime::component::Component>,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Manifest { name, version, .. } = &self.manifest;
        f.debug_struct("Component").field("name", name).field("version", version).field("digest", &self.digest).finish()
    }
}

/// Asks a component for its manifest, and checks it.
pub(super) fn describe(linked: &Linked, world: World) -> Result<Manifest, Fault> {
    let manifest = Manifest::from(ask(linked)?);
    check(&manifest, world).map_err(|what| invalid(&what))?;
    Ok(manifest)
}

fn ask(linked: &Linked) -> Result<lifecycle::Manifest, Fault> {
    let (memory, output_bytes, stack_bytes) = (DESCRIBE_MEMORY, DESCRIBE_BYTES, linked.given().stack_bytes);
    let pace = Pace::Until(SystemClock::default(), DESCRIBE_DEADLINE);
    let mut store = linked.store(Data::new(Quota { memory, output_bytes, stack_bytes }, pace));
    watch(&mut store, SystemClock::default());
    let instance = finish(linked.instantiate(&mut store)).map_err(|e| failed(&e, store.data_mut()))?;
    let mut running = linked.bind(store, &instance).map_err(|e| world::other_shape(&e))?;
    finish(running.describe()).map_err(|e| failed(&e, running.store.data_mut()))
}

/// Ends the guest at its deadline without anybody's ticks: every loop and call of the guest looks. Slow, and only for `describe`.
fn watch(store: &mut wasmtime::Store<Data>, clock: SystemClock) {
    let mut steps = 0u64;
    store.set_epoch_deadline(0);
    store.epoch_deadline_callback(move |_| {
        steps += 1;
        let late = steps.is_multiple_of(STEPS_PER_LOOK) && clock.monotonic() > DESCRIBE_DEADLINE;
        Ok(if late { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(0) })
    });
}

/// Runs a future that never waits.
fn finish<T>(future: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(wasmtime::Error::msg("plugin waited for something while it described itself")),
    }
}

fn failed(error: &wasmtime::Error, data: &mut Data) -> Fault {
    invalid(&format!("`describe` failed: {}", CallFault::of(error, data)))
}

fn invalid(what: &str) -> Fault {
    Fault::fatal("plugin-manifest-invalid", format!("component's description of itself cannot be used: {what}"))
        .hint("correct the plugin's declaration and build it again")
}

fn check(manifest: &Manifest, world: World) -> Result<(), String> {
    check_name("name", &manifest.name)?;
    check_text("version", &manifest.version)?;
    check_text("sdk", &manifest.sdk)?;
    if manifest.inputs.is_empty() {
        return Err("it declares no input".to_owned());
    }
    check_names("input", manifest.inputs.iter())?;
    check_names("output", manifest.outputs.iter())?;
    check_names("store", manifest.stores.iter().map(|store| &store.name))?;
    if world == World::Transform && !manifest.stores.is_empty() {
        return Err("it is a transform and declares stores".to_owned());
    }
    manifest.stores.iter().try_for_each(check_store)
}

fn check_store(store: &StoreSpec) -> Result<(), String> {
    if store.codec.is_empty() {
        return Err(format!("store `{}` has no codec", store.name));
    }
    if store.reads_from > store.schema_version {
        let StoreSpec { name, reads_from, schema_version, .. } = store;
        return Err(format!(
            "store `{name}` reads schema versions from {reads_from} on and writes the older {schema_version}"
        ));
    }
    Ok(())
}

fn check_names<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        check_name(kind, name)?;
        if !seen.insert(name) {
            return Err(format!("{kind} `{name}` is declared twice"));
        }
    }
    Ok(())
}

/// Names become parts of topic names, so Kafka's alphabet for those holds.
fn check_name(kind: &str, name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=NAME_LENGTH).contains(&name.len()) && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!("{kind} {name:?} is not 1 to {NAME_LENGTH} of A-Z, a-z, 0-9, `.`, `_`, `-`"))
}

/// What is only shown: on one line, and to no terminal more than that.
fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.len() <= NAME_LENGTH && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(format!("{what} {text:?} is longer than {NAME_LENGTH} bytes, or has control characters"))
}

impl From<lifecycle::Manifest> for Manifest {
    fn from(from: lifecycle::Manifest) -> Self {
        Manifest {
            name: from.name,
            version: from.version,
            sdk: from.sdk,
            inputs: from.inputs,
            outputs: from.outputs,
            other_outputs: from.other_outputs,
            stores: from.stores.into_iter().map(StoreSpec::from).collect(),
        }
    }
}

impl From<lifecycle::StoreSpec> for StoreSpec {
    fn from(from: lifecycle::StoreSpec) -> Self {
        let scope = match from.scope {
            lifecycle::Scope::Key => Scope::Key,
            lifecycle::Scope::Partition => Scope::Partition,
        };
        let lifecycle::StoreSpec { name, codec, schema_version, reads_from, .. } = from;
        StoreSpec { name, scope, codec, schema_version, reads_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let store = StoreSpec {
            name: "counts".to_owned(),
            scope: Scope::Key,
            codec: "u64".to_owned(),
            schema_version: 1,
            reads_from: 1,
        };
        Manifest {
            name: "count".to_owned(),
            version: String::new(),
            sdk: String::new(),
            inputs: vec!["in".to_owned()],
            outputs: vec!["out".to_owned()],
            other_outputs: false,
            stores: vec![store],
        }
    }

    fn refused(change: impl FnOnce(&mut Manifest)) -> String {
        let mut manifest = manifest();
        change(&mut manifest);
        check(&manifest, World::Aggregate).unwrap_err()
    }

    #[test]
    fn a_manifest_is_checked() {
        assert_eq!(check(&manifest(), World::Aggregate), Ok(()));
        assert!(check(&manifest(), World::Transform).unwrap_err().contains("declares stores"));
        assert!(refused(|m| m.name.clear()).contains("name"));
        assert!(refused(|m| m.version = "1\u{1b}[2J".to_owned()).contains("version"));
        assert!(refused(|m| m.sdk = "x".repeat(NAME_LENGTH + 1)).contains("sdk"));
        assert!(refused(|m| m.inputs.clear()).contains("no input"));
        assert!(refused(|m| m.inputs.push("in".to_owned())).contains("twice"));
        assert!(refused(|m| m.outputs.push("a/b".to_owned())).contains("a/b"));
        assert!(refused(|m| m.stores[0].reads_from = 2).contains("older"));
        assert!(refused(|m| m.stores[0].codec.clear()).contains("codec"));
    }
}
