//! Pelton's SDK for plugins in Rust: the author handles one record at a time, everything else is done here.
//!
//! A plugin is a type that implements [`Transform`] or [`Aggregate`], handed to [`transform!`] or [`aggregate!`].
//! The host calls with a batch of records as columns; the SDK walks it, fetches state in bulk, keeps the call's own
//! writes in view, and undoes what a rejected record did. Effects of a record are all or nothing.

/// The walk over a batch.
mod call;
/// Typed values of a store.
pub mod codec;
/// Entries of a column: byte strings laid end to end, null as length -1.
mod column;
/// What a plugin may do while it handles a record.
mod context;
/// The one place where a plugin says what it reads, writes and keeps.
mod declaration;
/// Emits of a call, and the builder of one emit.
mod emit;
/// Randomness for crates that ask the platform for it.
pub mod entropy;
/// What a record's failure means: reject, retry or stop.
mod error;
/// The component's exports, in terms of the rest.
#[doc(hidden)]
pub mod guest;
/// What the SDK needs of the host to serve state.
mod host;
/// Ids and random numbers that a replay repeats.
mod identity;
/// Log lines to the host.
pub mod log;
/// The traits that a plugin implements.
mod plugin;
/// One input record, borrowed from its batch.
mod record;
/// State of a call: what was fetched, with the call's own writes on top.
mod state;
/// Typed handles of stores.
mod store;
/// What a plugin counts and measures itself.
mod tally;
#[cfg(test)]
mod tests;

pub use codec::{Json, Postcard};
pub use context::Context;
pub use declaration::{Declaration, Input, Output, Schema, StatefulDeclaration};
pub use emit::{Emit, Field, Null};
pub use error::{Error, Outcome, Verdict};
pub use identity::Id;
pub use plugin::{Aggregate, NoSettings, Transform};
pub use record::{Header, Headers, Record};
pub use state::{Page, Scan};
pub use store::{KeyStore, PartitionStore, Wanted};

/// The generated bindings, for the export macros.
#[doc(hidden)]
pub mod bindings {
    pub use pelton_bindings_aggregate as aggregate;
    pub use pelton_bindings_transform as transform;
}

/// What most plugins need, in one import.
pub mod prelude {
    pub use crate::{
        Aggregate, Context, Declaration, Error, Input, Json, KeyStore, Null, Outcome, Output, PartitionStore, Postcard,
        Record, Scan, StatefulDeclaration, Transform,
    };
}
