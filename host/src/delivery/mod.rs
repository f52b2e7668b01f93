//! What becomes of a failed record: pure functions from failure to decision and to dead letter.

pub mod envelope;
pub mod policy;

pub use envelope::{DeadLetter, ROOM, Source};
pub use policy::{Cause, Decision, counted_as, decide};
