//! The tests that run the built binary, on both logs. One program, so that they share one broker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;
