//! What becomes of a failed record: pure functions from failure to decision, to what is remembered of it, and to the dead letter.

pub mod attempts;
pub mod envelope;
pub mod failures;
pub mod filter;
pub mod limit;
pub mod lineage;
pub mod mark;
pub mod news;
pub mod policy;
pub mod reason;

pub use attempts::{Attempts, beside, parked};
pub use envelope::{DeadLetter, Death, Plugin, ROOM, Source};
pub use failures::{Failures, Mishap};
pub use filter::{LetterFacts, LetterFilter};
pub use limit::LetterGate;
pub use lineage::{Lineage, MOST_STORES};
pub use mark::Mark;
pub use news::{Example, LetterNews, News};
pub use policy::{Cause, Decision, Verdict, counted_as, decide, jitter};
pub use reason::Reason;
