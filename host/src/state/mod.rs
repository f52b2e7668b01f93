//! Stores: one RocksDB per task, the overlay of uncommitted writes over it, applied offsets. With `local`, the only rooms that name rocksdb.
//!
//! A store's data, its changelog position and the input offsets change in one write batch, without a write-ahead log: after
//! a crash all of them are older together, and the changelog brings back the rest. Nothing uncommitted gets here.

mod applied;
mod clear;
mod committed;
mod faults;
mod load;
mod options;
mod overlay;
mod recent;
mod scan;
mod stores;
mod view;

#[cfg(test)]
mod tests;

pub use applied::{Applied, AppliedState, Position, StoreState};
pub use committed::CommittedPage;
pub use load::Load;
pub use options::Shared;
pub use overlay::Change;
pub use stores::Stores;
