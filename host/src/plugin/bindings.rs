//! The host's side of `wit/plugin.wit`, generated. Both worlds are bound as one: their shared types stay one set of Rust types, and a
//! component is looked up export by export, so it need not have all of them.

wasmtime::component::bindgen!({
    path: "../wit",
    inline: "
        package pelton:host;

        world plugins {
            include pelton:plugin/transform-plugin@0.1.0;
            include pelton:plugin/aggregate-plugin@0.1.0;
        }
    ",
    world: "plugins",
    // What goes in is lowered from borrowed columns; what comes out is lifted into vectors of its own.
    ownership: Borrowing { duplicate_if_necessary: true },
    // Asynchronous, so that a host call can yield to its worker (`pace`).
    imports: { default: async | trappable },
    exports: { default: async },
});
