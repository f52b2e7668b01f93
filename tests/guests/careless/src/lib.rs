//! Counts the records of each key and emits `COUNT VALUE`, for tests; only then it does what the value's first word says, so that every
//! failure comes after effects that must not last.
//!
//! `ok` · `reject` · `retry [MS]` (always, after so long) · `flaky N [MS]` (a retry until attempt N, counted from 1) · `slow BUSY MS` (busy for
//! about so long, then as `retry MS`) · `busy MS` · `stop` · `panic` · `divide` (by zero) · `trap` · `loop`. What is behind is free text. Whoever asks
//! for a retry logs `attempt N of VALUE`. Each record is counted (`handled`) and its value measured (`value_bytes`). The setting `init` makes it fail before its first record: `loop`, `panic` or `refuse`.

use pelton_sdk::prelude::*;
use serde::Deserialize;
use std::hint::black_box;
use std::str::SplitWhitespace;
use std::time::Duration;

/// Rounds of the busy loop that take about a millisecond: there is no clock in here to ask.
const ROUNDS_PER_MS: u64 = 4_500_000;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    init: String,
}

struct Careless {
    out: Output,
    counts: KeyStore<u64>,
}

impl Aggregate<Settings> for Careless {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out"), counts: declaration.key_store("counts") }
    }

    fn configure(&mut self, settings: Settings) -> Result<(), Error> {
        match &*settings.init {
            "loop" => spin(u64::MAX),
            "panic" => std::panic::panic_any("the settings ask for a panic"),
            "refuse" => return Err(Error::reject("asked-to-refuse", "the settings ask to be refused")),
            _ => {}
        }
        Ok(())
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        let value = record.text()?;
        let count = self.counts.get(ctx)?.unwrap_or(0) + 1;
        self.counts.put(ctx, &count)?;
        ctx.emit(self.out).headers(record.headers()).text(format_args!("{count} {value}"))?;
        ctx.count("handled", 1);
        ctx.observe("value_bytes", value.len() as f64);
        misbehave(value, ctx)
    }
}

/// Everything that this record was to do is done.
fn misbehave(value: &str, ctx: &Context) -> Outcome {
    let mut words = value.split_whitespace();
    match words.next().unwrap_or_default() {
        "reject" => return Err(Error::reject("asked-to-reject", "record asks to be rejected").detail("asked", value)),
        "stop" => return Err(Error::stop("asked-to-stop", "record asks to stop the stream")),
        "retry" => return retry(value, words, ctx),
        "flaky" if attempt(ctx) < number(&mut words).unwrap_or(0) => return retry(value, words, ctx),
        "slow" => {
            spin(milliseconds(&mut words));
            return retry(value, words, ctx);
        }
        "busy" => spin(milliseconds(&mut words)),
        "panic" => panics(),
        "divide" => divides(value.len() as u64),
        "trap" => traps(),
        "loop" => spin(u64::MAX),
        _ => {}
    }
    Ok(())
}

/// A retry after what the next word says; by the application's policy where it is no number.
fn retry(value: &str, mut words: SplitWhitespace, ctx: &Context) -> Outcome {
    pelton_sdk::warn!("attempt {} of {value}", attempt(ctx));
    let error = Error::retry("asked-to-retry", "record asks to be tried again");
    Err(match number(&mut words) {
        Some(ms) => error.after(Duration::from_millis(ms)),
        None => error,
    })
}

/// Counted from 1.
fn attempt(ctx: &Context) -> u64 {
    u64::from(ctx.attempt()) + 1
}

fn number(words: &mut SplitWhitespace) -> Option<u64> {
    words.next().and_then(|word| word.parse().ok())
}

/// Rounds of the busy loop for the next word.
fn milliseconds(words: &mut SplitWhitespace) -> u64 {
    ROUNDS_PER_MS.saturating_mul(number(words).unwrap_or(0))
}

/// Burns time in a way that no optimiser sees through.
fn spin(rounds: u64) {
    for round in 0..rounds {
        black_box(round);
    }
}

#[inline(never)]
fn panics() {
    std::panic::panic_any("record asks for a panic");
}

/// Rust checks the divisor, so this is a panic with a message of its own.
#[inline(never)]
fn divides(number: u64) {
    black_box(number / black_box(0));
}

/// Traps without a panic.
#[cfg(target_arch = "wasm32")]
#[inline(never)]
fn traps() {
    core::arch::wasm32::unreachable()
}

/// A native build exists for checks only and is never run.
#[cfg(not(target_arch = "wasm32"))]
fn traps() {
    std::process::abort()
}

pelton_sdk::aggregate!(Careless);
