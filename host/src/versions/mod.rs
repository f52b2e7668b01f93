//! Which version of its plugin a processor runs, for all hosts alike: records in a compacted topic of the application's own. What a
//! record may follow is decided here, and how one is read and written; this room never names a client, and never loads a component.

mod record;
mod stores;

pub use record::{Candidate, Entry, How, Outcome, Record};
pub use stores::{Schema, fits, same_stores};
