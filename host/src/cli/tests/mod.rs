//! Verbs over a log in memory.

mod memory;
mod verbs;
