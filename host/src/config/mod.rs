//! Settings: data only, validated in one place, described in one table from which the reference page is made.

pub mod librdkafka;
pub mod settings;

pub use settings::{Application, Kafka, Limits, LogKind, Processor, Topic};
