//! The tests that run the built binary, on both logs. One program, so that they share one broker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod admin;
mod amid;
mod cases;
mod crash;
mod dead_letters;
mod dead_topic;
mod delivery;
mod dlq;
mod first_steps;
mod groups;
mod harness;
mod isolation;
mod kills;
mod lineage;
mod metrics;
mod ordering;
mod output;
mod parked;
mod plugins;
mod records;
mod restore;
mod retries;
mod shutdown;
mod slow;
mod startup;
mod status;
mod swaps;

use pelton_tests::{Account, App, Log, Rec, kafka, wait};
use std::time::Duration;

const BOTH: [Log; 2] = [Log::Embedded, Log::Kafka];

/// What a job with the topics `in`, `out` and `dead` was given and has made.
struct Topics {
    input: Vec<Rec>,
    output: Vec<Rec>,
    dead: Vec<Rec>,
}

impl Topics {
    fn of(app: &App) -> Topics {
        Topics { input: app.read("in"), output: app.read("out"), dead: app.read("dead") }
    }

    fn account(&self) -> Account<'_> {
        Account { input: &self.input, output: &self.output, dead: &self.dead }
    }
}

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
