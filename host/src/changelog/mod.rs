//! State changes as records of a compacted topic, and the restore loop.
//!
//! A changelog record's key and value are the store's, byte for byte; a null value deletes. The changelog is what counts: a
//! store that does not stand for a known point of it is rebuilt from it, and never mixed with it.

mod plan;
mod produce;
mod restore;
mod topic;

#[cfg(test)]
mod tests;

pub use plan::{Plan, Reason, plan};
pub use produce::produce;
pub use restore::{Progress, Restore, Step};
pub use topic::{check, spec};
