//! Bindings of the `aggregate-plugin` world, generated from `wit/`; `pelton-sdk` is the face of them.
//!
//! What both worlds import comes from the other crate, so that one SDK can speak to both.

wit_bindgen::generate!({
    path: "../../wit",
    world: "aggregate-plugin",
    pub_export_macro: true,
    default_bindings_module: "pelton_sdk::bindings::aggregate",
    with: {
        "pelton:plugin/types@0.1.0": pelton_bindings_transform::pelton::plugin::types,
        "pelton:plugin/log@0.1.0": pelton_bindings_transform::pelton::plugin::log,
        "pelton:plugin/diagnostics@0.1.0": pelton_bindings_transform::pelton::plugin::diagnostics,
    },
});
