//! What is done besides returning something.

use std::cell::RefCell;
use std::hint::black_box;

use pelton_sdk::Context;

use crate::lie;
use crate::verb::Verb;

/// Rounds of the busy loop that take about a millisecond: there is no clock in here to ask.
const ROUNDS_PER_MS: u64 = 4_500_000;
const BLOCK: usize = 1 << 20;
/// The first is one.
pub(crate) const MEASURES: &[f64] = &[1.5, f64::NAN, f64::INFINITY, -1.0, 1e300];

thread_local! {
    /// Blocks of the call that runs now.
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Does what the verb says, as far as it ends and says nothing about the record.
#[expect(clippy::panic, reason = "to panic is what a record asks for")]
pub(crate) fn perform(verb: Verb) {
    match verb {
        Verb::Panic => std::panic::panic_any("record asks for a panic"),
        Verb::Trap => trap(),
        Verb::Loop => spin(u64::MAX),
        Verb::Recurse => {
            let _ = black_box(recurse(0));
        }
        Verb::Alloc(blocks) => (0..blocks).for_each(|_| keep_block()),
        Verb::Log(lines) => (1..=lines).for_each(|line| pelton_sdk::info!(of = lines, "line {line}")),
        Verb::Busy(milliseconds) => spin(ROUNDS_PER_MS.saturating_mul(milliseconds)),
        Verb::Lie(lie) => lie::intend(lie),
        _ => {}
    }
}

/// Counts once under each of so many names, of which every second is none.
pub(crate) fn count_names(count: u64, ctx: &mut Context) {
    for number in 0..count {
        let name = if number % 2 == 0 { format!("name_{number}") } else { format!("No Name \"{number}\"\n") };
        // names are constants, as in every plugin that means well
        ctx.count(name.leak(), 1);
    }
}

/// Frees what the call kept.
pub(crate) fn end_call() {
    KEPT.take();
}

/// Writes each byte, so that the memory is really there.
fn keep_block() {
    KEPT.with_borrow_mut(|kept| kept.push(black_box(vec![1; BLOCK])));
}

/// Burns time in a way that no optimiser sees through.
fn spin(rounds: u64) {
    for round in 0..rounds {
        black_box(round);
    }
}

/// Calls itself until the stack is used up.
fn recurse(depth: u64) -> u64 {
    match black_box(depth) {
        u64::MAX => depth,
        _ => black_box(recurse(depth + 1)) + 1,
    }
}

/// Traps without a panic. A function of its own, so that a stack shows it by name.
#[cfg(target_arch = "wasm32")]
#[inline(never)]
fn trap() {
    core::arch::wasm32::unreachable()
}

/// A native build is for tests and checks, and this is never run.
#[cfg(not(target_arch = "wasm32"))]
fn trap() {
    std::process::abort()
}
