//! The surface over a host that is none: every path, every refusal, and what is not to be had.

mod client;
mod description;
mod fake;
mod limits;
mod paths;
mod raw;
