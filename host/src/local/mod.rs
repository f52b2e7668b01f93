//! The embedded log: the same seam as Kafka, kept in RocksDB, for one process.
//!
//! Topics, partitions, offsets, groups and fencing follow Kafka; a commit (records of all topics and the offsets of groups) is
//! one atomic write, on disk before it returns. Records lie in chunks of columns, so that producing and fetching move columns.
//! Topics keep everything, unless `cleanup.policy` contains `compact`: then superseded records go, a little at each commit.

mod absent;
mod chunk;
mod clean;
mod columns;
mod commit;
mod group;
mod inner;
mod keys;
mod log;
mod producer;
mod source;
mod storage;
mod topic;

#[cfg(test)]
mod tests;

pub use absent::AbsentLog;
pub use log::LocalLog;
