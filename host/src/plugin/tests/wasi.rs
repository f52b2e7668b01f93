//! A component that imports WASI gets the batch's time, repeatable randomness and a log, and nothing else.

use super::puppet::{PUPPET, Stage, WIT, batch, component, drive, file};
use crate::config::Limits;
use crate::model::{Batch, Progress};
use crate::plugin::Engine;
use std::time::Duration;

/// The few functions that the test calls, as WASI 0.2 declares them.
const WASI: &str = "
package wasi:io@0.2.6 {
    interface poll { resource pollable { block: func(); } }
    interface error { resource error {} }
    interface streams {
        use error.{error};
        variant stream-error { last-operation-failed(error), closed }
        resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
    }
}
package wasi:cli@0.2.6 {
    interface exit { exit: func(status: result); }
    interface stdout { use wasi:io/streams@0.2.6.{output-stream}; get-stdout: func() -> output-stream; }
}
package wasi:random@0.2.6 {
    interface random { get-random-u64: func() -> u64; }
}
package wasi:clocks@0.2.6 {
    interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
    interface monotonic-clock { use wasi:io/poll@0.2.6.{pollable}; subscribe-duration: func(when: u64) -> pollable; }
}
package wasi:filesystem@0.2.6 {
    interface types { resource descriptor { sync: func(); } }
    interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
}
package wasi:http@0.2.6 {
    interface client { get: func(); }
}
";

const WORLD: &str = "
world with-wasi {
    include aggregate-plugin;
    import wasi:cli/stdout@0.2.6;
    import wasi:cli/exit@0.2.6;
    import wasi:random/random@0.2.6;
    import wasi:clocks/wall-clock@0.2.6;
    import wasi:clocks/monotonic-clock@0.2.6;
    import wasi:filesystem/preopens@0.2.6;
    import wasi:http/client@0.2.6;
}
";

const IMPORTS: &str = r#"
  (import "wasi:cli/stdout@0.2.6" "get-stdout" (func $stdout (result i32)))
  (import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))
  (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush" (func $print (param i32 i32 i32 i32)))
  (import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))
  (import "wasi:clocks/wall-clock@0.2.6" "now" (func $now (param i32)))
  (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $wait (param i64) (result i32)))
  (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:filesystem/preopens@0.2.6" "get-directories" (func $directories (param i32)))
  (import "wasi:http/client@0.2.6" "get" (func $http))
  (data (i32.const 3500) "hello\nrest")
  (data (i32.const 3208) "\20\00\00\00")
"#;

/// j: waits without end and keeps every pollable; v: prints 64 KiB and a byte.
/// z: says hello, waits an hour, and emits a random number, the seconds before and after, and the number of directories. i: HTTP. q: exit.
const VERBS: &str = "
    (if (i32.eq (local.get $verb) (i32.const 0x69)) (then (call $http)))
    (if (i32.eq (local.get $verb) (i32.const 0x71)) (then (call $exit (i32.const 1))))
    (if (i32.eq (local.get $verb) (i32.const 0x6a)) (then (loop $more (drop (call $wait (i64.const 1))) (br $more))))
    (if (i32.eq (local.get $verb) (i32.const 0x76)) (then
      (drop (memory.grow (i32.const 1)))
      (call $print (call $stdout) (i32.const 0) (i32.const 65537) (i32.const 3300))))
    (if (i32.eq (local.get $verb) (i32.const 0x7a)) (then
      (call $print (call $stdout) (i32.const 3500) (i32.const 10) (i32.const 3300))
      (i64.store (i32.const 3400) (call $random))
      (call $now (i32.const 3320))
      (i64.store (i32.const 3408) (i64.load (i32.const 3320)))
      (call $block (call $wait (i64.const 3600000000000)))
      (call $now (i32.const 3320))
      (i64.store (i32.const 3416) (i64.load (i32.const 3320)))
      (call $directories (i32.const 3320))
      (i64.store (i32.const 3424) (i64.extend_i32_u (i32.load (i32.const 3324))))
      (i64.store (i32.const 3072) (i64.const 0x2000000d48))
      (i64.store (i32.const 3080) (i64.const 0x100000c88))
      (call $emit (local.get $batch))))
";

fn stage() -> Stage {
    stage_with(Limits::default())
}

fn stage_with(limits: Limits) -> Stage {
    let text = PUPPET.replace(";; IMPORTS", IMPORTS).replace(";; VERBS", VERBS);
    let (_dir, path) = file(&component(&text, &format!("{WIT}{WORLD}{WASI}"), "with-wasi"));
    let engine = Engine::new(None).unwrap();
    let component = engine.load(&path).unwrap();
    assert!(component.imports.contains(&"wasi:clocks/wall-clock@0.2.6".to_owned()));
    Stage::of((engine, component), limits, "{}")
}

/// Random number, seconds before and after the wait, directories.
fn seen(progress: &Progress) -> [u64; 4] {
    let bytes = &progress.effects.emits.values.bytes;
    [0, 8, 16, 24].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
}

fn at(offset: i64) -> Batch {
    Batch { now: 7_000, offsets: vec![offset], ..batch(&[("k", "z")]) }
}

#[test]
fn a_guest_sees_the_batch_and_nothing_else() {
    let mut stage = stage();
    let [random, before, after, directories] = seen(&stage.run_batch(at(5)).unwrap());
    assert_eq!((before, after, directories), (7, 7 + 3600, 0));
    assert_eq!(*stage.heard.0.lock().unwrap(), [("hello".to_owned(), false)]);
    let rerun = drive(&stage.engine, stage.guest.rerun(at(5), Duration::ZERO)).result.unwrap();
    assert_eq!(seen(&rerun), [random, 7, 3607, 0], "a replay sees the same");
    assert_ne!(seen(&stage.run_batch(at(6)).unwrap())[0], random);
}

#[test]
fn what_is_not_granted_ends_the_call() {
    let mut stage = stage();
    let fault = stage.run("i").unwrap_err();
    assert!(fault.to_string().contains("wasi:http/client"), "{fault}");
    assert_eq!(stage.run("q").unwrap_err().code(), "trap");
    assert!(stage.run("o").is_ok());
}

#[test]
fn what_the_host_keeps_for_a_guest_is_bounded() {
    // Each poll is a tick and 5 ms here, so ten thousand calls take their time.
    let mut stage = stage_with(Limits { record_deadline: Duration::from_secs(1 << 20), ..Limits::default() });
    for (verb, words) in [("j", "handle"), ("v", "65537 bytes")] {
        let fault = stage.run(verb).unwrap_err();
        assert_eq!(fault.code(), "malformed-result");
        assert!(fault.to_string().contains(words), "{fault}");
    }
    assert!(stage.run("o").is_ok());
}
