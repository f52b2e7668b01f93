//! Every metric's name and labels in one place, and the handles through which the rooms count.

pub mod names;

mod handles;
mod registry;

pub use handles::{ChangelogMetrics, CommitMetrics, ProcessorMetrics, Traffic};
pub use registry::Registry;
