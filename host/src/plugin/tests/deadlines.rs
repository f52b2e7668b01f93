//! Deadlines hold inside host calls, however a guest lays them out, and what the host does for one of them is bounded.
//!
//! Nothing here runs in real time: a host call ticks the engine itself, and each poll is 5 ms later.

use super::puppet::{PUPPET, WIT, batch, component, context, file, puppet};
use crate::config::Limits;
use crate::model::state::{ScanRange, StateView};
use crate::model::{Column, Fault, Progress};
use crate::plugin::{CallFault, Component, Engine, Guest, GuestLine, GuestLog};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Between two polls.
const STEP: Duration = Duration::from_millis(5);
/// Polls that fit into the deadline of [`limits`].
const POLLS: usize = 40;

/// The host's side of host calls: each one ticks, as if it had taken a whole slice.
struct Slow {
    engine: Engine,
    calls: AtomicUsize,
    /// Bytes of each value that state answers.
    value: usize,
}

struct SlowState(Arc<Slow>);

impl Slow {
    fn called(&self) {
        self.calls.fetch_add(1, Relaxed);
        self.engine.tick();
    }
}

impl GuestLog for Slow {
    fn line(&self, line: &GuestLine<'_>) {
        // The puppet's own lines, not what is said of it.
        if line.message == "boom" {
            self.called();
        }
    }

    fn suppressed(&self, _: u64) {}
}

impl StateView for SlowState {
    fn get_many(&mut self, _: u32, keys: &Column) -> Result<Column, Fault> {
        self.0.called();
        assert!(keys.len() <= 1024, "one part is {} keys", keys.len());
        let value = vec![7; self.0.value];
        Ok(keys.iter().map(|_| Some(&value[..])).collect())
    }

    fn scan(&mut self, _: u32, range: &ScanRange) -> Result<(Column, bool), Fault> {
        self.0.called();
        assert!(range.limit <= 4096 && range.max_bytes <= 1 << 20, "one page is bounded: {range:?}");
        Ok((Column::default(), false))
    }
}

fn limits() -> Limits {
    Limits { record_deadline: STEP * POLLS as u32, log_lines: u32::MAX, ..Limits::default() }
}

/// Runs one record, and counts the host calls that did something.
fn run(
    (engine, component): (Engine, Arc<Component>),
    limits: Limits,
    verb: &str,
    value: usize,
) -> (Result<Progress, CallFault>, usize) {
    let slow = Arc::new(Slow { engine, calls: AtomicUsize::new(0), value });
    let state = Arc::new(Mutex::new(SlowState(slow.clone())));
    let mut guest = Guest::new(component, context("{}"), limits, Some(state), slow.clone());
    let mut call = guest.call(batch(&[("k", verb)]), Duration::ZERO);
    let outcome = (0..).find_map(|polls| call.poll(STEP * polls)).unwrap();
    (outcome.result, slow.calls.load(Relaxed))
}

/// Expects that the deadline ended the call, with one host call or part of one in each slice.
fn misses(plugin: (Engine, Arc<Component>), verb: &str) {
    let (result, calls) = run(plugin, limits(), verb, 0);
    assert_eq!(result, Err(CallFault::Deadline), "{verb}");
    assert!(calls > 0 && calls <= POLLS + 2, "{verb}: {calls} calls");
}

#[test]
fn host_calls_in_a_loop_miss_their_deadline() {
    for verb in ["C", "A", "S"] {
        misses(puppet(), verb);
    }
}

#[test]
fn a_look_up_of_a_million_keys_misses_its_deadline_on_the_way() {
    misses(puppet(), "M");
}

#[test]
fn host_calls_laid_end_to_end_miss_their_deadline() {
    // No loop and no call of its own between them: the engine's interruption never gets to look.
    let body = "(call $log (i32.const 3) (i32.const 163) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0))".repeat(1000);
    let verb = format!("(if (i32.eq (local.get $verb) (i32.const 0x45)) (then {body}))");
    let (_dir, path) = file(&component(&PUPPET.replace(";; VERBS", &verb), WIT, "aggregate-plugin"));
    let engine = Engine::new(None).unwrap();
    let plugin = engine.load(&path).unwrap();
    misses((engine, plugin), "E");
}

#[test]
fn a_start_function_that_calls_the_host_for_ever_ends_too() {
    let plugin = puppet();
    let slow = Arc::new(Slow { engine: plugin.0, calls: AtomicUsize::new(0), value: 0 });
    let limits = Limits { init_deadline: STEP * 4, ..limits() };
    let mut guest = Guest::new(plugin.1, context("C"), limits, None, slow);
    let mut call = guest.call(batch(&[("k", "o")]), Duration::ZERO);
    let outcome = (0..).find_map(|polls| call.poll(STEP * polls)).unwrap();
    assert_eq!(outcome.result.unwrap_err().code(), "init-failed");
}

#[test]
fn what_state_answers_is_bounded_before_it_is_all_there() {
    let limits = Limits { output_bytes: 8 << 20, ..limits() };
    let (result, calls) = run(puppet(), limits, "M", 1 << 20);
    let fault = result.unwrap_err();
    assert_eq!((fault.code(), fault.is_size(), calls), ("limit-output", true, 1), "{fault}");
}

#[test]
fn a_look_up_within_its_bounds_is_answered_whole() {
    let limits = Limits { record_deadline: Duration::from_secs(1 << 20), ..limits() };
    let (result, calls) = run(puppet(), limits, "M", 4);
    assert!(result.is_ok(), "{result:?}");
    assert!(calls > 1_048_576 / 1024, "{calls}");
}
