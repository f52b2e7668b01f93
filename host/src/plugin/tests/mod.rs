//! Tests of the room with guests made here: a puppet that obeys the first byte of its batch, and files that are no plugins.

mod asked;
mod calls;
mod deadlines;
mod loading;
mod malformed;
pub(crate) mod puppet;
mod returned;
mod wasi;
