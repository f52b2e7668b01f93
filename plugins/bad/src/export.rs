//! The component's exports, by hand where other plugins have `pelton_sdk::transform!`: only here can a result be spoilt after the SDK
//! made it, and only here is the end of a call known.

use std::cell::RefCell;

use pelton_sdk::bindings::transform::exports::pelton::plugin::{lifecycle, transform};
use pelton_sdk::guest::{self, Package, Slot};

use crate::{Bad, deeds, lie};

thread_local! {
    static PLUGIN: Slot<Bad> = const { RefCell::new(None) };
}

struct Component;

impl lifecycle::Guest for Component {
    fn describe() -> lifecycle::Manifest {
        let package = Package { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
        guest::transform::describe::<Bad, _>(package)
    }

    fn init(context: lifecycle::Context) -> Result<(), String> {
        PLUGIN.with(|slot| guest::transform::init::<Bad, _>(slot, context))
    }
}

impl transform::Guest for Component {
    fn apply(batch: transform::Batch) -> transform::Progress {
        let progress = PLUGIN.with(|slot| guest::transform::apply::<Bad, _>(slot, &batch));
        deeds::end_call();
        lie::tell(progress)
    }
}

// Names of exports are no names for a native linker; a native build is for tests and checks.
#[cfg(target_arch = "wasm32")]
pelton_sdk::bindings::transform::export!(Component with_types_in pelton_sdk::bindings::transform);
#[cfg(not(target_arch = "wasm32"))]
const _: Component = Component;
