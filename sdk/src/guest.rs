//! The component's exports in terms of the SDK: what [`crate::transform!`] and [`crate::aggregate!`] expand to calls of.

use std::cell::RefCell;

use pelton_bindings_transform::pelton::plugin::diagnostics;
use pelton_bindings_transform::pelton::plugin::types::{
    Batch, Column, Effects, Emits, Ending, Headers, Progress, Writes,
};
use serde::de::DeserializeOwned;

use crate::call::{Core, Names};
use crate::column;
use crate::declaration::{Declaration, Input, Scope};
use crate::entropy;
use crate::error::{Error, chain};
use crate::host::{Host, NoState, ScanRequest};
use crate::plugin::{Aggregate, Transform};
use crate::state::State;

/// Where a component keeps its plugin between calls.
pub type Slot<T> = RefCell<Option<Runtime<T>>>;

/// A plugin that was initialised.
pub struct Runtime<T> {
    plugin: T,
    core: Core,
}

/// The package of the plugin: its name and version.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The package's name.
    pub name: &'static str,
    /// The package's version.
    pub version: &'static str,
}

/// What the host says at the start, independent of the world.
struct Setup {
    application: String,
    processor: String,
    inputs: Vec<(String, String)>,
    outputs: Vec<(String, String)>,
    stores: Vec<String>,
    settings: String,
}

/// Makes a component of a type that implements [`crate::Transform`]. Once per crate, which must be a `cdylib`.
#[macro_export]
macro_rules! transform {
    ($plugin:ty) => {
        $crate::export_plugin!($plugin, transform);
    };
}

/// Makes a component of a type that implements [`crate::Aggregate`]. Once per crate, which must be a `cdylib`.
#[macro_export]
macro_rules! aggregate {
    ($plugin:ty) => {
        $crate::export_plugin!($plugin, aggregate);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty, $world:ident) => {
        const _: () = {
            use $crate::bindings::$world::exports::pelton::plugin::{lifecycle, $world as world};

            ::std::thread_local! {
                static PLUGIN: $crate::guest::Slot<$plugin> = const { ::std::cell::RefCell::new(None) };
            }

            struct Component;

            impl lifecycle::Guest for Component {
                fn describe() -> lifecycle::Manifest {
                    let package =
                        $crate::guest::Package { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
                    $crate::guest::$world::describe::<$plugin, _>(package)
                }

                fn init(context: lifecycle::Context) -> ::std::result::Result<(), ::std::string::String> {
                    PLUGIN.with(|slot| $crate::guest::$world::init::<$plugin, _>(slot, context))
                }
            }

            impl world::Guest for Component {
                fn apply(batch: world::Batch) -> world::Progress {
                    PLUGIN.with(|slot| $crate::guest::$world::apply::<$plugin, _>(slot, &batch))
                }
            }

            // Names of exports are no names for a native linker; a native build is for tests and checks.
            #[cfg(target_arch = "wasm32")]
    $crate::bindings::$world::export!(Component with_types_in $crate::bindings::$world);
            #[cfg(not(target_arch = "wasm32"))]
            const _: Component = Component;
        };
    };
}

/// What differs between the worlds is their types for the same things, which the generator makes twice.
macro_rules! world_types {
    ($bindings:ident) => {
        use $bindings::exports::pelton::plugin::lifecycle::{self, Context, Manifest};

        fn manifest(package: Package, declaration: Declaration) -> Manifest {
            let stores = declaration.stores.into_iter().map(|store| lifecycle::StoreSpec {
                name: store.name,
                scope: match store.scope {
                    Scope::Key => lifecycle::Scope::Key,
                    Scope::Partition => lifecycle::Scope::Partition,
                },
                codec: store.codec.to_owned(),
                schema_version: store.schema.version,
                reads_from: store.schema.reads_from,
            });
            Manifest {
                name: package.name.to_owned(),
                version: package.version.to_owned(),
                sdk: concat!("pelton-sdk ", env!("CARGO_PKG_VERSION")).to_owned(),
                inputs: declaration.inputs,
                outputs: declaration.outputs,
                other_outputs: declaration.other_outputs,
                stores: stores.collect(),
            }
        }

        fn setup(context: Context) -> Setup {
            let Context { application, processor, partition, inputs, outputs, stores, settings, .. } = context;
            entropy::settle(&application, &processor, &inputs, partition);
            Setup { application, processor, inputs, outputs, stores, settings }
        }
    };
}

/// Exports of a transform.
pub mod transform {
    use super::*;
    world_types!(pelton_bindings_transform);

    pub fn describe<T: Transform<S>, S>(package: Package) -> Manifest {
        report_panics();
        let mut declaration = Declaration::default();
        let _ = T::declare(&mut declaration);
        manifest(package, declaration)
    }

    pub fn init<T: Transform<S>, S: DeserializeOwned>(slot: &Slot<T>, context: Context) -> Result<(), String> {
        report_panics();
        let setup = setup(context);
        let mut declaration = Declaration::default();
        let mut plugin = T::declare(&mut declaration);
        plugin.configure(settings(&setup.settings)?).map_err(|error| error.message().to_owned())?;
        slot.replace(Some(Runtime { plugin, core: bind(&declaration, setup)? }));
        Ok(())
    }

    pub fn apply<T: Transform<S>, S>(slot: &Slot<T>, batch: &Batch) -> Progress {
        let Some(Runtime { plugin, core }) = &mut *slot.borrow_mut() else { return uninitialised() };
        core.begin(batch);
        core.run(&NoState, batch, |record, ctx| plugin.process(record, ctx))
    }
}

/// Exports of an aggregate.
pub mod aggregate {
    use super::*;
    use crate::declaration::StatefulDeclaration;
    world_types!(pelton_bindings_aggregate);

    pub fn describe<T: Aggregate<S>, S>(package: Package) -> Manifest {
        report_panics();
        let mut declaration = StatefulDeclaration::default();
        let _ = T::declare(&mut declaration);
        manifest(package, declaration.0)
    }

    pub fn init<T: Aggregate<S>, S: DeserializeOwned>(slot: &Slot<T>, context: Context) -> Result<(), String> {
        report_panics();
        let setup = setup(context);
        let mut declaration = StatefulDeclaration::default();
        let mut plugin = T::declare(&mut declaration);
        plugin.configure(settings(&setup.settings)?).map_err(|error| error.message().to_owned())?;
        slot.replace(Some(Runtime { plugin, core: bind(&declaration, setup)? }));
        Ok(())
    }

    pub fn apply<T: Aggregate<S>, S>(slot: &Slot<T>, batch: &Batch) -> Progress {
        let Some(Runtime { plugin, core }) = &mut *slot.borrow_mut() else { return uninitialised() };
        core.begin(batch);
        core.read_ahead(&StateImport, batch, |record, wanted| plugin.read_ahead(record, wanted));
        core.run(&StateImport, batch, |record, ctx| plugin.process(record, ctx))
    }
}

/// The `state` import. Only aggregates name it, so that a transform's component does not import it.
struct StateImport;

impl Host for StateImport {
    fn get_many(&self, store: u32, keys: &Column) -> Column {
        pelton_bindings_aggregate::pelton::plugin::state::get_many(store, keys)
    }

    fn scan(&self, request: &ScanRequest<'_>) -> (Column, bool) {
        let ScanRequest { store, start, end, reverse, limit, max_bytes } = *request;
        pelton_bindings_aggregate::pelton::plugin::state::scan(store, start, end, reverse, limit, max_bytes)
    }
}

/// Reads the settings; a table that the application left out is an empty one.
fn settings<S: DeserializeOwned>(json: &str) -> Result<S, String> {
    let json = if matches!(json.trim(), "" | "null") { "{}" } else { json };
    serde_json::from_str(json)
        .map_err(|error| format!("settings of the processor do not fit the plugin: {}", chain(&error)))
}

/// Finds what was declared among what the application binds.
fn bind(declaration: &Declaration, setup: Setup) -> Result<Core, String> {
    let outputs = bind_outputs(declaration, &setup)?;
    let names = Names {
        inputs: bind_inputs(declaration, &setup)?,
        outputs: outputs.iter().map(|(_, number)| *number).collect(),
        output_names: outputs.into_iter().map(|(name, _)| name).collect(),
        topics: setup.inputs.into_iter().map(|(_, topic)| topic).collect(),
        application: setup.application,
        processor: setup.processor,
    };
    let state = State::new(
        bind_stores(declaration, Scope::Key, &setup.stores)?,
        bind_stores(declaration, Scope::Partition, &setup.stores)?,
    );
    Ok(Core::new(names, state))
}

fn bind_inputs(declaration: &Declaration, setup: &Setup) -> Result<Vec<Input>, String> {
    let bound = setup.inputs.iter().map(|(name, _)| {
        let number = number_of(&declaration.inputs, name);
        number.map(Input).ok_or_else(|| format!("plugin has no input `{name}`; it has {:?}", declaration.inputs))
    });
    bound.collect()
}

/// Names and numbers: the declared outputs first, then those that only the application names.
fn bind_outputs(declaration: &Declaration, setup: &Setup) -> Result<Vec<(String, u32)>, String> {
    let bound: Vec<String> = setup.outputs.iter().map(|(name, _)| name.clone()).collect();
    let others: Vec<&String> = bound.iter().filter(|name| !declaration.outputs.contains(name)).collect();
    match others.first() {
        Some(name) if !declaration.other_outputs => {
            return Err(format!("plugin has no output `{name}`; it has {:?}", declaration.outputs));
        }
        _ => {}
    }
    let found = declaration.outputs.iter().chain(others).map(|name| {
        let number = number_of(&bound, name);
        number
            .map(|number| (name.clone(), number))
            .ok_or_else(|| format!("the application names no topic for output `{name}`"))
    });
    found.collect()
}

fn bind_stores(declaration: &Declaration, scope: Scope, bound: &[String]) -> Result<Vec<u32>, String> {
    let declared = declaration.stores.iter().filter(|store| store.scope == scope);
    let found = declared
        .map(|store| number_of(bound, &store.name).ok_or_else(|| format!("the host offers no store `{}`", store.name)));
    found.collect()
}

fn number_of(names: &[String], name: &str) -> Option<u32> {
    u32::try_from(names.iter().position(|known| known == name)?).ok()
}

/// A call before `init`: the host's mistake, told instead of trapped.
#[cold]
fn uninitialised() -> Progress {
    let column = || column::with_capacity(0, 0);
    let headers = Headers { counts: Vec::new(), names: column(), values: column() };
    let (entries, outputs, timestamps) = (Vec::new(), Vec::new(), Vec::new());
    let emits = Emits { entries, outputs, timestamps, keys: column(), values: column(), headers };
    let writes = Writes { entries: Vec::new(), stores: Vec::new(), keys: column(), values: column() };
    let ending = Ending::Stop(Error::stop("uninitialised", "plugin was called before its init").into_failure());
    Progress { done: 0, effects: Effects { emits, writes }, rejected: Vec::new(), ending }
}

/// Hands a panic's message and place to the host before the trap, which carries neither.
fn report_panics() {
    if cfg!(target_arch = "wasm32") {
        std::panic::set_hook(Box::new(|info| {
            let message = info.payload_as_str().unwrap_or("panic without a text");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            diagnostics::panicked(message, &place);
        }));
    }
}
