//! Pelton's host: a stream processor whose logic is WebAssembly plugins. Rooms in the order of their floors, lowest first;
//! each imports only lower floors (`ARCHITECTURE.md`).

pub mod model;

pub mod config;
pub mod metrics;

pub mod components;
pub mod kafka;
pub mod local;
pub mod plugin;
pub mod state;

pub mod changelog;
pub mod delivery;
pub mod versions;

pub mod task;

pub mod runtime;

pub mod http;

pub mod cli;
