//! Every metric's name and labels in one place, the handles through which the rooms count, and the page that shows the numbers.

pub mod names;

mod buckets;
mod handles;
mod page;
mod process;
mod registry;
#[cfg(test)]
mod tests;
mod text;

pub use handles::{
    CommitMetrics, Custom, CustomMetrics, GroupMetrics, HostMetrics, MemoryMetrics, PluginMetrics, ProcessorMetrics,
    StoreMetrics, StoreSize, Traffic,
};
pub use page::metrics_page;
pub use registry::Registry;
pub use text::CONTENT_TYPE;
