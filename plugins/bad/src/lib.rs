//! Misbehaves on demand, for tests: the first word of a record's value says how. What it does not know it emits unchanged.
//!
//! `ok` · `reject` · `retry` · `stop` · `panic` · `trap` · `loop` (for ever) · `busy MS` (about so long, then as `ok`)

use std::hint::black_box;

use pelton_sdk::prelude::*;

/// Rounds of the busy loop that take about a millisecond: there is no clock in here to ask.
const ROUNDS_PER_MS: u64 = 4_500_000;

struct Bad {
    out: Output,
}

impl Transform for Bad {
    fn declare(declaration: &mut Declaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out") }
    }

    #[expect(clippy::panic, reason = "to panic is what a test asks for")]
    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        let mut words = record.value().unwrap_or_default().split(|&byte| byte == b' ');
        match words.next().unwrap_or_default() {
            b"reject" => return Err(Error::reject("asked-to-reject", "record asks to be rejected")),
            b"retry" => return Err(Error::retry("asked-to-retry", "record asks to be tried again")),
            b"stop" => return Err(Error::stop("asked-to-stop", "record asks to stop the stream")),
            b"panic" => std::panic::panic_any("record asks for a panic"),
            b"trap" => trap(),
            b"loop" => spin(u64::MAX),
            b"busy" => spin(ROUNDS_PER_MS.saturating_mul(milliseconds(words.next()))),
            _ => {}
        }
        ctx.emit(self.out).headers(record.headers()).value(record.value());
        Ok(())
    }
}

/// The number in the verb's second word; what is none counts as nothing.
fn milliseconds(word: Option<&[u8]>) -> u64 {
    word.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(0)
}

/// Burns time in a way that no optimiser sees through.
fn spin(rounds: u64) {
    for round in 0..rounds {
        black_box(round);
    }
}

/// Traps without a panic.
#[cfg(target_arch = "wasm32")]
fn trap() {
    core::arch::wasm32::unreachable()
}

/// A native build exists for checks only and is never run.
#[cfg(not(target_arch = "wasm32"))]
fn trap() {
    std::process::abort()
}

pelton_sdk::transform!(Bad);
