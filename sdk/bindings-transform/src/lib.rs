//! Bindings of the `transform-plugin` world, generated from `wit/`; `pelton-sdk` is the face of them.

wit_bindgen::generate!({
    path: "../../wit",
    world: "transform-plugin",
    pub_export_macro: true,
    default_bindings_module: "pelton_sdk::bindings::transform",
});
