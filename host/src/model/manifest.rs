//! What a plugin says of itself, and what it is told at its start (`wit/plugin.wit`, interface `lifecycle`).

use std::fmt;

/// Which world a component belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// No state at all.
    Transform,
    Aggregate,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            World::Transform => "transform",
            World::Aggregate => "aggregate",
        })
    }
}

/// How a store's keys relate to the records' keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value per record key.
    Key,
    /// Any key of the partition, scans.
    Partition,
}

/// A store that a plugin declares. Stores are known by name, never by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSpec {
    pub name: String,
    pub scope: Scope,
    pub codec: String,
    pub schema_version: u32,
    /// The oldest schema version that this plugin can read.
    pub reads_from: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub sdk: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// The application may name outputs beyond these.
    pub other_outputs: bool,
    pub stores: Vec<StoreSpec>,
}

/// What an instance is told before its first batch. Names here, indexes in batches and effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub application: String,
    pub processor: String,
    pub partition: u32,
    /// Name and topic.
    pub inputs: Vec<(String, String)>,
    pub outputs: Vec<(String, String)>,
    /// In the manifest's order: the index that writes use.
    pub stores: Vec<String>,
    /// The processor's settings table as JSON.
    pub settings: String,
    pub max_record_bytes: u32,
}
