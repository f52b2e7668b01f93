//! `pelton dlq`: dead letters listed, replayed exactly once, purged, on both logs.

use super::{BOTH, see};
use pelton_tests::app::IDLE;
use pelton_tests::host::{ABORTED, Exit, Launch};
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, Rec, oracle, wait};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Some letters stay as they are (docs/exit-codes.md).
const PARTLY: Exit = Exit::Code(6);
/// Another replay has taken over.
const SUPERSEDED: Exit = Exit::Code(5);
const REFUSED: Exit = Exit::Code(3);

/// More than one transaction of a replay holds.
const MANY: usize = 1200;

macro_rules! killed_at {
    ($($name:ident = $point:literal),* $(,)?) => { $(
        mod $name {
            use pelton_tests::Log;

            #[test]
            fn embedded() {
                super::killed_at(Log::Embedded, $point);
            }

            #[test]
            fn kafka() {
                super::killed_at(Log::Kafka, $point);
            }
        }
    )* };
}

killed_at! {
    before_commit = "dlq-replay-before-commit",
    after_commit = "dlq-replay-after-commit",
}

/// Ten records that never work, replayed twenty times: one counter, no growth, and an end to it.
#[test]
fn b51_replays_do_not_go_round_for_ever_embedded() {
    let app = bad(Log::Embedded, "b51");
    app.produce("in", &rejects(10));
    app.finish(1);
    for round in 1..=20 {
        replay(&app, &["--max-replays", "20"], Exit::Code(0));
        app.finish(1);
        assert_eq!(app.read("dead").len(), 10 * (round + 1));
    }
    judge_circle(&app);
}

/// The same while the job runs.
#[test]
fn b51_replays_do_not_go_round_for_ever_kafka() {
    let app = bad(Log::Kafka, "b51");
    app.produce("in", &rejects(10));
    let mut host = app.host(1).start();
    see(&app, "dead", 10, secs(60));
    for round in 1..=20 {
        replay(&app, &["--max-replays", "20"], Exit::Code(0));
        see(&app, "dead", 10 * (round + 1), secs(60));
    }
    host.stop(secs(30));
    judge_circle(&app);
}

#[test]
fn the_usual_limit_is_three_replays() {
    let app = bad(Log::Embedded, "limit");
    app.produce("in", &rejects(2));
    app.finish(1);
    for _ in 0..3 {
        replay(&app, &[], Exit::Code(0));
        app.finish(1);
    }
    let said = replay(&app, &[], PARTLY);
    assert!(said.contains("replayed 3 times, and the limit is 3 (replay-limit)"), "{said}");
    assert_eq!(app.read("in").len(), 8);
}

/// The first is held in the middle of its transaction while the second does the whole work.
#[test]
fn a_second_replay_takes_over_and_the_first_says_so() {
    let app = bad(Log::Kafka, "two-replays");
    app.produce("in", &rejects(MANY));
    app.finish(1);
    let mut first = dlq(&app, &["replay"])
        .env("PELTON_LOG", "warn,pelton::runtime::letters=debug")
        .failpoints("dlq-replay-before-commit=1*off->1*sleep(5000)")
        .start();
    wait::until("the second transaction is about to commit", secs(30), || {
        (first.log().matches("committing replayed letters").count() == 2).then_some(())
    });
    first.signal("STOP");
    let said = replay(&app, &[], Exit::Code(0));
    assert!(said.contains("replayed 700 dead letters"), "{said}");
    first.signal("CONT");
    assert_eq!(first.wait(secs(60)), SUPERSEDED, "{}", first.log());
    assert!(first.log().contains("another replay or purge of these letters has taken over"), "{}", first.log());
    replayed_once(&app, MANY);
}

#[test]
fn letters_go_through_the_plugin_once() {
    for log in BOTH {
        let app = bad(log, "through");
        app.produce("in", &rejects(MANY));
        app.finish(1);
        let said = replay(&app, &["--through-plugin", "--at", "0:0"], PARTLY);
        assert!(said.contains("0:0: stays: record asks to be rejected (asked-to-reject)"), "{log:?}: {said}");
        mend(&app);
        let out = || app.read("out").len();
        replay(&app, &["--through-plugin", "--dry-run"], Exit::Code(0));
        assert_eq!(out(), 0, "{log:?}");
        for point in ["dlq-replay-before-commit", "dlq-replay-after-commit"] {
            let mut killed = dlq(&app, &["replay", "--through-plugin"]).failpoints(&format!("{point}=return")).start();
            assert_eq!(killed.wait(secs(60)), ABORTED, "{}", killed.log());
        }
        replay(&app, &["--through-plugin"], Exit::Code(0));
        replay(&app, &["--through-plugin"], Exit::Code(0));
        let (found, inputs) = (app.read("out"), app.read("in"));
        oracle::accounting(&rejects(MANY), &found, &[]);
        assert!(found.iter().all(|r| r.text("pelton-code").is_none() && r.text("own").is_some()), "{log:?}");
        assert_eq!(inputs.len(), MANY, "{log:?}: the source topic sees nothing");
        app.finish(1);
        assert_eq!(out(), MANY, "{log:?}: what was replayed is not input");
    }
}

#[test]
fn a_letter_that_loops_is_ended_at_the_plugins_deadline() {
    let app = ["in", "out", "dead"]
        .iter()
        .fold(App::draft(Log::Embedded, "loop"), |draft, topic| draft.topic(topic, 1))
        .processor(
            Processor::new("bad")
                .input("in", "in")
                .output("out", "out")
                .dead_letters("dead")
                .limit("record_deadline", "300ms"),
        )
        .ready();
    app.produce("in", &[Rec::new("a", "loop"), Rec::new("b", "panic"), Rec::new("c", "trap")]);
    app.finish(1);
    let said = replay(&app, &["--through-plugin"], PARTLY);
    for code in ["(deadline)", "(panic)", "(trap)"] {
        assert!(said.contains(code), "{code}: {said}");
    }
}

#[test]
fn a_plugin_with_state_is_not_run_outside_its_hosts() {
    let app = App::counting(Log::Embedded, "aggregate", 1).ready();
    app.produce("in", &[Rec::raw(None, Some(b"x")).at(0)]);
    app.finish(1);
    let mut run = dlq_of(&app, "count", &["replay", "--through-plugin"]).start();
    assert_eq!(run.wait(secs(30)), REFUSED, "{}", run.log());
    assert!(run.log().contains("its plugin has state"), "{}", run.log());
}

#[test]
fn a_purge_deletes_and_the_job_goes_on() {
    for log in BOTH {
        let app = bad(log, "purge");
        app.produce("in", &rejects(30));
        app.finish(1);
        replay(&app, &["--limit", "10"], Exit::Code(0));
        let said = run(&app, &["purge", "--all"], Exit::Code(0));
        assert!(
            said.contains("purged 30 dead letters") && said.contains("20 of them never replayed"),
            "{log:?}: {said}"
        );
        assert!(app.read("dead").is_empty(), "{log:?}");
        app.finish(1);
        assert_eq!(
            app.read("dead").len(),
            10,
            "{log:?}: those that were replayed are there again, with new marks to come"
        );
        replay(&app, &[], Exit::Code(0));
        app.finish(1);
        assert_eq!(app.read("dead").len(), 20, "{log:?}");
    }
}

#[test]
fn b06_letters_of_any_bytes_are_told_apart_and_come_back_as_they_were() {
    for log in BOTH {
        let app = bad(log, "b06-dlq");
        let keys: [&[u8]; 5] = [&[0, 0, 0, 0, 7, 0xff], &[0x80], &[0x81], b"0x80", b""];
        let input: Vec<Rec> =
            keys.iter().map(|k| Rec::new(k, b"reject \xff").header("h", Some(&[0xc3, 0x28]))).collect();
        app.produce("in", &input);
        app.finish(1);
        let listed = run(&app, &["list"], Exit::Code(0));
        for shown in ["0x0000000007ff", "0x80", "0x81", "\"0x80\"", "\"\""] {
            assert_eq!(
                listed.split_whitespace().filter(|word| *word == shown).count(),
                1,
                "{log:?}: {shown}: {listed}"
            );
        }
        let one = run(&app, &["list", "--json", "--key", "0x80"], Exit::Code(0));
        assert!(one.lines().count() == 1 && one.contains(r#""key":{"hex":"80"}"#), "{log:?}: {one}");
        replay(&app, &["--key", "0x80"], Exit::Code(0));
        let back: Vec<Rec> = app.read("in").into_iter().filter(|r| r.text("pelton-replays").is_some()).collect();
        assert_eq!(back.len(), 1, "{log:?}");
        let Rec { key, value, headers, timestamp, .. } = &back[0];
        assert_eq!((key.as_deref(), value.as_deref()), (Some(&[0x80][..]), Some(&b"reject \xff"[..])), "{log:?}");
        assert_eq!((&headers[0], *timestamp), (&input[1].headers[0], 1), "{log:?}");
    }
}

#[test]
fn one_letter_is_shown_with_its_stack() {
    let app = bad(Log::Embedded, "show");
    app.produce("in", &[Rec::new("k", "panic at once").at(0)]);
    app.finish(1);
    let said = run(&app, &["show", "0:0"], Exit::Code(0));
    for part in
        ["code          panic", "verdict       broke", "stack         ", "value         \"panic at once\"", "offset 0"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn an_embedded_log_that_is_in_use_is_said_in_one_line() {
    let app = bad(Log::Embedded, "in-use");
    let mut host = app.host(1).start();
    host.says("ready=true", IDLE);
    for verb in [&["list"][..], &["show", "0:0"], &["replay"], &["purge", "--all"]] {
        let said = run(&app, verb, REFUSED);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("is in use by process") && said.contains("stop that process"), "{said}");
    }
    host.stop(secs(30));
}

/// Dies at its second pass of `point`, which is in the second transaction.
fn killed_at(log: Log, point: &str) {
    let app = bad(log, &point["dlq-".len()..]);
    app.produce("in", &rejects(MANY));
    app.finish(1);
    let mut killed = dlq(&app, &["replay"]).failpoints(&format!("{point}=1*off->return")).start();
    assert_eq!(killed.wait(secs(60)), ABORTED, "{}", killed.log());
    replay(&app, &[], Exit::Code(0));
    let said = replay(&app, &[], Exit::Code(0));
    assert!(said.contains("replayed 0 dead letters"), "{said}");
    replayed_once(&app, MANY);
}

/// Each of the first `count` records is in the input twice: as it was, and replayed.
fn replayed_once(app: &App, count: usize) {
    let input = app.read("in");
    let (back, before): (Vec<Rec>, Vec<Rec>) = input.into_iter().partition(|r| r.text("pelton-replays").is_some());
    oracle::accounting(&rejects(count), &before, &[]);
    oracle::accounting(&rejects(count), &back, &[]);
    oracle::order(&before, &back);
    let places = |records: &[Rec]| records.iter().map(|r| (r.value.clone(), r.partition)).collect::<BTreeMap<_, _>>();
    assert_eq!(places(&before), places(&back), "each is back in its partition");
}

/// After twenty rounds of ten letters.
fn judge_circle(app: &App) {
    let said = replay(app, &["--max-replays", "20"], PARTLY);
    assert!(said.contains("replayed 20 times, and the limit is 20 (replay-limit)"), "{said}");
    assert_eq!(said.matches(": stays: ").count(), 10, "{said}");
    assert_eq!(app.read("in").len(), 210, "nothing more went back");
    let dead = app.read("dead");
    let headers = |r: &Rec| r.headers.iter().map(|(n, v)| n.len() + v.as_ref().map_or(0, Vec::len)).sum::<usize>();
    let of_round =
        |round: &str| dead.iter().filter(|r| r.text("pelton-replays").as_deref() == Some(round)).collect::<Vec<_>>();
    let (first, last) = (of_round("1"), of_round("20"));
    assert_eq!((first.len(), last.len()), (10, 10));
    let grown = last.iter().map(|r| headers(r)).max().unwrap() - first.iter().map(|r| headers(r)).min().unwrap();
    assert!(grown <= 8, "only numbers grew by a digit or two, not {grown} bytes");
    let counters = |r: &Rec| r.headers.iter().filter(|(name, _)| name == "pelton-replays").count();
    assert!(last.iter().all(|r| counters(r) == 1), "one counter");
}

/// A processor `bad` from `in` to `out`, dead letters to `dead`.
fn bad(log: Log, name: &str) -> App {
    ["in", "out", "dead"]
        .iter()
        .fold(App::draft(log, name), |draft, topic| draft.topic(topic, 2))
        .processor(Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead"))
        .ready()
}

/// Replaces the plugin by one that takes everything.
fn mend(app: &App) {
    let text = std::fs::read_to_string(app.file()).unwrap();
    std::fs::write(app.file(), text.replace("bad.wasm", "echo.wasm")).unwrap();
}

fn rejects(count: usize) -> Vec<Rec> {
    let one = |i| Rec::new(format!("k{}", i % 7), format!("reject {i}")).header("own", Some(b"1"));
    (0..count).map(one).collect()
}

fn dlq(app: &App, arguments: &[&str]) -> Launch {
    dlq_of(app, "bad", arguments)
}

/// `pelton dlq VERB FILE PROCESSOR …`, not yet started.
fn dlq_of(app: &App, processor: &str, arguments: &[&str]) -> Launch {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let log = app.dir().join(format!("dlq-{}.log", RUNS.fetch_add(1, Ordering::Relaxed)));
    let launch = Launch::new(format!("{} dlq {}", app.id, arguments.join(" ")), log);
    let launch = launch.arg("dlq").arg(arguments[0]).arg(app.file()).arg(processor);
    arguments[1..].iter().fold(launch, |launch, argument| launch.arg(argument))
}

/// Runs it to its end; gives all it said.
fn run(app: &App, arguments: &[&str], expected: Exit) -> String {
    let mut run = dlq(app, arguments).start();
    assert_eq!(run.wait(secs(60)), expected, "{}", run.log());
    run.log()
}

fn replay(app: &App, arguments: &[&str], expected: Exit) -> String {
    let arguments: Vec<&str> = ["replay"].into_iter().chain(arguments.iter().copied()).collect();
    run(app, &arguments, expected)
}
