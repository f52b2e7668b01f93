//! Components: compiled, cached, linked and called under limits. The only room that names wasmtime.
//!
//! This room never blames: it says what happened to a call ([`CallFault`]), and the rooms above decide whose failure that is.

mod bindings;
mod call;
mod compiled;
mod component;
mod engine;
mod export;
mod fault;
mod guest;
mod host;
mod limits;
mod log;
mod pace;
mod start;
#[cfg(test)]
pub(crate) mod tests;
mod validate;
mod wasi;
mod world;

pub use call::{Call, Outcome};
pub use component::Component;
pub use engine::{Engine, GUEST_STACK, TICK};
pub use fault::CallFault;
pub use guest::Guest;
pub use limits::Limit;
pub use log::{GuestLine, GuestLog, Level, Traced};
pub use start::{Start, Unstarted};
