//! Handles of the metrics: made once where work is set up, one atomic addition per batch or commit where it is done.
//!
//! A handle is bound to the recorder that is installed when it is made: install one first ([`super::Registry::install`]).

mod commit;
mod custom;
mod group;
mod host;
mod levels;
mod plugin;
mod processor;
mod store;

pub use commit::CommitMetrics;
pub use custom::{Custom, CustomMetrics};
pub use group::GroupMetrics;
pub use host::{HostMetrics, MemoryMetrics};
pub use plugin::PluginMetrics;
pub use processor::{ProcessorMetrics, Traffic};
pub use store::{StoreMetrics, StoreSize};

use super::names::Metric;
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, SharedString};

const METADATA: Metadata<'static> = Metadata::new("pelton", Level::INFO, None);

/// What a gauge is set to whose series is gone.
const GONE: f64 = f64::NAN;

type Labels<'a> = [(&'static str, &'a str)];

fn counter(metric: Metric, labels: &Labels<'_>) -> Counter {
    metrics::with_recorder(|r| r.register_counter(&key(metric, labels), &METADATA))
}

fn gauge(metric: Metric, labels: &Labels<'_>) -> Gauge {
    metrics::with_recorder(|r| r.register_gauge(&key(metric, labels), &METADATA))
}

fn histogram(metric: Metric, labels: &Labels<'_>) -> Histogram {
    metrics::with_recorder(|r| r.register_histogram(&key(metric, labels), &METADATA))
}

fn key(metric: Metric, labels: &Labels<'_>) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|&(name, value)| Label::new(name, SharedString::from(value.to_owned()))).collect();
    Key::from_parts(metric.name, labels)
}
