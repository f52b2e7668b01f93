//! Calls that go well, calls that go wrong in every way, and that the next one is unharmed.

use super::puppet::{Stage, batch, drive, file, puppet_bytes};
use crate::config::Limits;
use crate::model::Verdict;
use crate::plugin::{Call, CallFault, Component, Engine, Guest, Limit};
use std::time::Duration;

/// Runs `verb`, expects a fault of `code`, and that a good call follows on an instance of its own.
fn breaks(limits: Limits, verb: &str, code: &str) -> CallFault {
    let mut stage = Stage::new(limits);
    assert_eq!(calls_so_far(&mut stage), 1);
    let fault = stage.run(verb).unwrap_err();
    assert_eq!(fault.code(), code, "{fault:?}");
    assert!(fault.blames_a_record());
    assert_eq!(calls_so_far(&mut stage), 1, "the next call has a fresh instance");
    fault
}

/// How many calls the puppet's instance has had, this one included.
fn calls_so_far(stage: &mut Stage) -> u8 {
    stage.run("c").unwrap().effects.emits.values.bytes[0]
}

fn small() -> Limits {
    Limits {
        memory: 16 << 20,
        output_bytes: 1 << 20,
        record_deadline: Duration::from_secs(1 << 20),
        ..Limits::default()
    }
}

#[test]
fn an_instance_is_kept_between_calls() {
    let mut stage = Stage::new(Limits::default());
    assert_eq!((1..4).map(|_| calls_so_far(&mut stage)).collect::<Vec<_>>(), [1, 2, 3]);
    stage.guest.reset();
    assert_eq!(calls_so_far(&mut stage), 1);
}

#[test]
fn a_call_that_outlives_a_reset_leaves_no_instance() {
    let mut stage = Stage::new(Limits::default());
    let call = stage.guest.call(batch(&[("k", "c")]), Duration::ZERO);
    stage.guest.reset();
    assert!(drive(&stage.engine, call).result.is_ok());
    assert_eq!(calls_so_far(&mut stage), 1);
}

#[test]
fn progress_is_lifted() {
    let progress = Stage::new(Limits::default()).run("c").unwrap();
    let emits = progress.effects.emits.iter().collect::<Vec<_>>();
    assert_eq!((progress.done, emits.len()), (1, 1));
    assert_eq!((emits[0].entry, emits[0].output, emits[0].record.timestamp), (0, 0, -1));
    assert_eq!((emits[0].record.key, emits[0].record.value), (Some(&b"k"[..]), Some(&[1][..])));
}

#[test]
fn a_trap_names_the_function() {
    let fault = breaks(Limits::default(), "t", "trap");
    assert!(fault.stack()[0].ends_with("!boom"), "{fault:?}");
    assert!(fault.stack().iter().any(|frame| frame.ends_with("!apply")), "{fault:?}");
}

#[test]
fn a_panic_brings_its_words_and_place() {
    let CallFault::Panic { message, location, stack } = breaks(Limits::default(), "p", "panic") else { unreachable!() };
    assert_eq!((message.as_str(), location.as_str()), ("boom", "here:7"));
    assert!(!stack.is_empty());
}

#[test]
fn a_panic_does_not_stick_to_the_next_trap() {
    let mut stage = Stage::new(Limits::default());
    assert_eq!(stage.run("p").unwrap_err().code(), "panic");
    assert_eq!(stage.run("t").unwrap_err().code(), "trap");
}

#[test]
fn limits_are_named() {
    assert!(breaks(small(), "m", "limit-memory").is_size());
    assert!(!breaks(small(), "n", "limit-table").is_size());
    assert!(!breaks(small(), "r", "limit-stack").is_size());
}

#[test]
fn the_stack_is_as_large_as_it_was_asked_for() {
    let (_dir, path) = file(&puppet_bytes());
    for bytes in [64 << 10, 1 << 20] {
        let engine = Engine::with_stack(None, bytes).unwrap();
        let component = engine.load(&path).unwrap();
        // ticks come as fast as a thread can make them here, and a deep call sees many
        let limits = Limits { record_deadline: Duration::from_secs(3600), ..Limits::default() };
        let fault = Stage::of((engine, component), limits, "{}").run("r").unwrap_err();
        assert_eq!(fault.code(), "limit-stack");
        assert!(fault.to_string().contains(&format!("{bytes} bytes")), "{fault}");
        assert_eq!(fault.stack().len(), 32, "the innermost frames only");
    }
}

#[test]
fn huge_output_is_refused_before_it_is_copied() {
    assert!(matches!(breaks(small(), "h", "limit-output"), CallFault::Limit { limit: Limit::Output, .. }));
}

#[test]
fn a_batch_larger_than_the_guests_memory_is_a_memory_limit() {
    let mut stage = Stage::new(Limits { memory: 1 << 20, ..Limits::default() });
    let fault = stage.run(&"o".repeat(2 << 20)).unwrap_err();
    assert_eq!(fault.code(), "limit-memory");
}

#[test]
fn what_breaks_the_interface_is_malformed() {
    for verb in ["x", "u", "s", "a", "y"] {
        breaks(Limits::default(), verb, "malformed-result");
    }
}

#[test]
fn a_loop_misses_its_deadline() {
    breaks(Limits { record_deadline: Duration::from_millis(200), ..Limits::default() }, "l", "deadline");
}

#[test]
fn a_busy_guest_lets_another_call_of_its_thread_through() {
    let (mut busy, mut quick) = (Stage::new(Limits::default()), Stage::new(Limits::default()));
    let mut long = busy.guest.call(batch(&[("k", "l")]), Duration::ZERO);
    for now in (0..5).map(Duration::from_millis) {
        // The tick before makes sure of the yield: this thread cannot tick while the guest runs.
        let ticks = ticking(&busy);
        assert_eq!(long.poll(now), None);
        ticks();
        assert!(quick.run("o").is_ok());
    }
    assert_eq!(long.cancel(), batch(&[("k", "l")]));
    assert_eq!(calls_so_far(&mut busy), 1);
}

/// Ticks on another thread until called.
fn ticking(stage: &Stage) -> impl FnOnce() + use<> {
    let ticker = stage.engine.ticker();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = stop.clone();
    let thread = std::thread::spawn(move || {
        while !seen.load(std::sync::atomic::Ordering::Relaxed) && ticker() {
            std::thread::yield_now();
        }
    });
    move || {
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        thread.join().unwrap();
    }
}

#[test]
fn long_work_that_ends_in_time_is_progress() {
    let limits = Limits { record_deadline: Duration::from_secs(1 << 20), ..Limits::default() };
    assert!(Stage::new(limits).run("b").is_ok());
}

#[test]
fn a_frozen_process_does_not_blame_its_record() {
    let mut stage = Stage::new(Limits::default());
    let mut call = stage.guest.call(batch(&[("k", "c")]), Duration::ZERO);
    assert!(call.poll(Duration::from_secs(3600)).unwrap().result.is_ok());
    assert_eq!(call.poll(Duration::from_secs(3600)), None, "after the outcome nothing comes");
}

#[test]
fn state_is_seen_and_its_troubles_are_the_hosts() {
    let mut stage = Stage::new(Limits::default());
    stage.state.lock().unwrap().0.insert(b"k".to_vec(), b"seven".to_vec());
    let value = |progress: crate::model::Progress| {
        progress.effects.emits.iter().next().unwrap().record.value.map(<[u8]>::to_vec)
    };
    assert_eq!(value(stage.run("g").unwrap()), Some(b"seven".to_vec()));
    assert_eq!(value(stage.run_batch(batch(&[("absent", "g")])).unwrap()), None);
    let fault = stage.run_batch(batch(&[("broken", "g")])).unwrap_err();
    let CallFault::Host(inner) = &fault else { panic!("{fault:?}") };
    assert_eq!((inner.verdict, fault.code(), fault.blames_a_record()), (Verdict::Corrupt, "store-broken", false));
    assert!(stage.run("g").is_ok());
}

#[test]
fn memory_above_what_is_kept_costs_the_instance() {
    let mut stage = Stage::new(Limits::default());
    assert!(stage.run("k").is_ok());
    assert_eq!(calls_so_far(&mut stage), 1);
    assert_eq!(calls_so_far(&mut stage), 2);
}

#[test]
fn a_guest_that_starts_large_is_kept() {
    let mut stage = Stage::with_settings(Limits::default(), "k");
    assert_eq!((1..4).map(|_| calls_so_far(&mut stage)).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(stage.run("k").is_ok());
    assert_eq!(calls_so_far(&mut stage), 1, "what it takes beyond that costs it its place");
}

#[test]
fn a_refused_start_blames_no_record() {
    for (settings, words) in [("f", "no thanks"), ("t", "unreachable"), ("l", "init took longer")] {
        let limits = Limits { init_deadline: Duration::from_millis(200), ..Limits::default() };
        let fault = Stage::with_settings(limits, settings).run("o").unwrap_err();
        assert_eq!((fault.code(), fault.blames_a_record()), ("init-failed", false));
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[test]
fn reruns_mark_their_lines() {
    let mut stage = Stage::new(Limits::default());
    assert!(stage.run("w").is_ok());
    let call = stage.guest.rerun(batch(&[("k", "w")]), Duration::ZERO);
    assert!(drive(&stage.engine, call).result.is_ok());
    assert_eq!(*stage.heard.0.lock().unwrap(), [("boom".to_owned(), false), ("boom".to_owned(), true)]);
}

#[test]
fn a_fault_is_said_once_for_each_time() {
    let mut stage = Stage::new(Limits::default());
    assert!(stage.run("p").is_err());
    let again = stage.guest.rerun(batch(&[("k", "p")]), Duration::ZERO);
    assert!(drive(&stage.engine, again).result.is_err());
    let line = "plugin panicked at here:7: boom";
    assert_eq!(*stage.heard.0.lock().unwrap(), [(line.to_owned(), false), (line.to_owned(), true)]);
}

#[test]
fn a_fault_becomes_a_failure_with_its_place() {
    let failure = Stage::new(Limits::default()).run("p").unwrap_err().failure();
    assert_eq!(failure.code, "panic");
    assert_eq!(failure.message, "plugin panicked at here:7: boom");
    assert_eq!(failure.details[0], ("location".to_owned(), "here:7".to_owned()));
    assert!(failure.details[1].1.contains("boom"));
}

#[test]
fn what_threads_hand_on_can_be_handed_on() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<Component>();
    sent::<Guest>();
    sent::<Call>();
}
