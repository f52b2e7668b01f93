//! The words that every room shares: records, effects, faults, ids, the clock, and the seams that the rooms above implement.

pub mod bytes;
pub mod clock;
pub mod effects;
pub mod failpoint;
pub mod fault;
pub mod fnv;
pub mod folder;
pub mod ids;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod partitioner;
pub mod record;
pub mod state;

pub use clock::{Clock, SystemClock};
pub use effects::{Effects, Emits, Ending, Failure, Progress, Rejection, Writes};
pub use fault::{Fault, Verdict};
pub use ids::{Place, TaskId, TopicPartition};
pub use partitioner::partition_for_key;
pub use record::{Batch, Column, Headers, HeadersRef, RecordRef};
