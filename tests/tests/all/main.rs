//! The tests that run the built binary, on both logs. One program, so that they share one broker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod crash;
mod dlq;
mod groups;
mod harness;
mod kills;
mod plugins;
mod records;
mod restore;
mod shutdown;
mod slow;
mod startup;

use pelton_tests::{App, Log, Rec, kafka, wait};
use std::time::Duration;

const BOTH: [Log; 2] = [Log::Embedded, Log::Kafka];

/// How often a scenario repeats its fault: few in `make test`, all that it states with `PELTON_FULL`.
fn repeats(few: usize, full: usize) -> usize {
    let wanted = std::env::var("PELTON_FULL").is_ok_and(|v| !v.is_empty() && v != "0");
    if wanted { full } else { few }
}

/// Waits until committed readers see `n` records of a topic on Kafka; gives them.
fn see(app: &App, topic: &str, n: usize, limit: Duration) -> Vec<Rec> {
    let what = format!("{n} records in {topic} of {}", app.id);
    wait::until(&what, limit, || {
        // The ends are cheap to ask for; they count markers too, so they only say when it is worth reading.
        let enough = kafka::total(&app.topic(topic)) >= n as i64;
        enough.then(|| app.read(topic)).filter(|records| records.len() >= n)
    })
}
