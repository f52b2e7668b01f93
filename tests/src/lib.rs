//! What the tests share: the broker, the built binary as a child process, records in and out of either log, oracles, and the
//! house's rules. Everything is black box: nothing here imports the host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test harness fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test harness tells its seed and the logs of what failed")]
#![allow(clippy::disallowed_methods, reason = "deadlines of tests are real time")]

/// The house's rules about its own sources, as checks on text.
pub mod house;

/// A record and its one-line JSON form.
pub mod record;

/// Seeded randomness.
pub mod rng;

/// Bounded waiting.
pub mod wait;

/// The broker that all tests share.
pub mod broker;
/// Topics and records of a Kafka cluster.
pub mod kafka;
/// A TCP proxy that cuts connections and refuses writes.
pub mod proxy;
/// A broker's refusal of a write.
mod refusal;

/// The built binary as a child process.
pub mod host;

/// A host's admin surface.
pub mod admin;
/// An application on either log.
pub mod app;
/// Input with a known answer.
pub mod load;
/// What is in a state folder.
pub mod store;

/// Changes between two runs.
mod change;
/// Input that misbehaves, with known ends.
pub mod hostile;
/// Dead letters as they describe themselves.
pub mod letter;

/// Versions of one plugin.
pub mod versions;

/// Where each input ended.
pub mod account;
/// The end-to-end cases that are folders.
pub mod cases;
/// Judges of outcomes.
pub mod oracle;

pub use account::Account;
pub use app::{App, Log, Processor};
pub use letter::Letter;
pub use record::Rec;
pub use rng::Rng;
