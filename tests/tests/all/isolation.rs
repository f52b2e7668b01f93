//! Poison is found and set aside; a guest that never comes back holds nobody else; the host's memory does not grow with failures.

use super::{BOTH, Topics, repeats, see};
use pelton_tests::app::{Draft, cli};
use pelton_tests::host::Exit;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Letter, Log, Processor, Rec, account, hostile, kafka};
use std::collections::BTreeMap;
use std::time::Duration;

const DEADLINE_MS: i64 = 1000;
/// The grace of these hosts, and room for a loaded machine.
const GRACE: &str = "5s";
const LIMIT: Duration = Duration::from_secs(12);

#[test]
fn b58_a_trap_poisons_nothing() {
    for log in BOTH {
        let app = application(log, "b58", 1).ready();
        let verb = |i| match i {
            10 => "trap",
            20 => "reject",
            30 => "divide",
            40 => "panic",
            _ => "ok",
        };
        app.produce("in", &(1..=100).map(|i| Rec::new("k", format!("{} #{i}", verb(i))).at(0)).collect::<Vec<_>>());
        app.finish(1);
        let topics = Topics::of(&app);
        account::tallies(&topics.input, &topics.output, &topics.dead); // the counts show whose state writes are visible
        assert_eq!(topics.output.len(), 96, "{log:?}");
        let expected = [
            ("rejected", "asked-to-reject", "record asks to be rejected", ""),
            ("broke", "trap", "unreachable", "traps"),
            ("broke", "panic", "divide by zero", "divides"),
            ("broke", "panic", "record asks for a panic", "panics"),
        ];
        let mut letters = Letter::all(&topics.dead);
        letters.sort_by_key(|letter| (letter.verdict != "rejected", letter.offset));
        assert_eq!(letters.len(), expected.len(), "{log:?}");
        for (letter, (verdict, code, message, function)) in letters.iter().zip(expected) {
            assert_eq!(
                (&letter.verdict[..], &letter.code[..], letter.attempts),
                (verdict, code, 1),
                "{log:?}: {letter:?}"
            );
            assert!(letter.message.contains(message), "{log:?}: {message}: {letter:?}");
            assert!(letter.stack.contains(function), "{log:?}: the function is in the stack: {letter:?}");
        }
    }
}

#[test]
fn b59_a_loop_on_one_of_four_partitions() {
    looping(1, 1);
}

#[test]
fn b59_loops_on_more_partitions_than_workers() {
    looping(3, 2);
}

/// A plugin that does not get through its `init` never runs: it is refused before any topic is made, and no record is blamed.
#[test]
fn b59_init_that_loops_or_fails() {
    for (log, init) in BOTH.into_iter().flat_map(|log| ["loop", "panic", "refuse"].map(|init| (log, init))) {
        let app = application(log, "b59-init", 2).ready();
        app.set_processor(&["settings", "init"], init);
        app.set_processor(&["limits", "init_deadline"], "1s");
        app.produce("in", &[Rec::new("k", "ok 1").at(0)]);
        let mut host = app.host(1).start();
        let exit = host.wait(secs(60));
        assert_eq!(exit, Exit::Code(3), "{log:?}, {init}: {}", host.log());
        assert!(host.log().contains("plugin careless does not start"), "{log:?}, {init}: {}", host.log());
        match log {
            Log::Kafka => assert!(app.read("dead").is_empty() && app.read("out").is_empty(), "{init}"),
            Log::Embedded => {
                let (_, topics) = cli(&["topics", app.file().to_str().unwrap()], secs(30));
                assert!(!topics.contains(&app.topic("out")), "{init}: no topic is made: {topics}");
            }
        }
    }
}

#[test]
fn b59_a_loop_in_init_can_be_stopped() {
    let app = application(Log::Kafka, "b59-init-stop", 2).set("shutdown_grace", GRACE).ready();
    app.set_processor(&["settings", "init"], "loop");
    app.set_processor(&["limits", "init_deadline"], "50s");
    app.produce("in", &[Rec::new("k", "ok 1").at(0)]);
    let mut host = app.host(1).start();
    wait::throughout(secs(5), || host.assert_running());
    host.signal("TERM");
    let exit = host.wait(LIMIT);
    assert!(matches!(exit, Exit::Code(0 | 4)), "{exit:?}: {}", host.log());
}

/// Rejections and traps by the thousand, each with an instance or a letter of its own.
#[test]
fn memory_stays_flat_over_failures() {
    let app = hostile::application(Log::Kafka, "flat", "partition").ready();
    let failures = repeats(60_000, 1_000_000);
    let verb = |i| if i % 2 == 0 { "reject" } else { "trap" };
    app.produce(
        "in",
        &(0..failures).map(|i| Rec::new(format!("k{i}"), format!("{} #{i}", verb(i)))).collect::<Vec<_>>(),
    );
    let mut host = app.host(1).start();
    // so that the ends are worth asking for: they count markers too
    see_total(&app, failures / 3);
    let early = host.memory();
    see_total(&app, failures);
    let late = host.memory();
    host.stop(secs(60));
    app.finish(1);
    assert_eq!(app.read("dead").len(), failures, "each is a dead letter");
    assert!(late < early + (32 << 10), "from {early} KiB to {late} KiB over {failures} failures");
}

/// So many of four partitions loop for ever, record after record; the rest have work.
fn looping(partitions: i32, workers: i64) {
    const LOOPS: i32 = 6;
    let app = application(Log::Kafka, "b59", 4).set("workers", workers).set("shutdown_grace", GRACE).ready();
    let of = |p: i32, i: i32| {
        Rec::new(format!("p{p}"), format!("{} #{p}-{i}", if p < partitions { "loop" } else { "ok" })).at(p)
    };
    let loops = (0..partitions).flat_map(|p| (0..LOOPS).map(move |i| (p, i)));
    let work = (partitions..4).flat_map(|p| (0..500).map(move |i| (p, i)));
    app.produce("in", &loops.chain(work).map(|(p, i)| of(p, i)).collect::<Vec<_>>());
    let mut host = app.host(1).start();
    let done = see(&app, "out", 500 * (4 - partitions) as usize, secs(60)).len();
    let dead = app.read("dead").len() as i32;
    assert!(dead < partitions * LOOPS, "{done} records were done before the loops were over");
    host.assert_running();
    host.signal("TERM");
    let exit = host.wait(LIMIT);
    assert!(matches!(exit, Exit::Code(0 | 4)), "{exit:?}: {}", host.log());
    app.finish(1);
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    assert_eq!(topics.dead.len() as i32, partitions * LOOPS);
    interrupted_in_time(&topics.dead);
}

/// Between two records of a partition that are given up lies one deadline. The stop in between and the first two, which are met in a
/// batch first, take longer; none takes less.
fn interrupted_in_time(dead: &[Rec]) {
    let mut times: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for letter in Letter::all(dead) {
        assert_eq!((&letter.verdict[..], &letter.code[..], letter.attempts), ("broke", "deadline", 1), "{letter:?}");
        times.entry(letter.partition).or_default().push(letter.last);
    }
    for (partition, mut times) in times {
        times.sort();
        let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let least = DEADLINE_MS * 8 / 10;
        assert!(gaps.iter().all(|&gap| gap >= least), "partition {partition}: interrupted too early: {gaps:?} ms");
        // loosely: guests of one worker share it, and the machine has other work
        assert!(
            gaps.iter().min().is_some_and(|&gap| gap < 4 * DEADLINE_MS),
            "partition {partition}: too late: {gaps:?} ms"
        );
    }
}

fn see_total(app: &App, n: usize) {
    wait::until(&format!("{n} dead letters"), secs(repeats(120, 3600) as u64), || {
        (kafka::total(&app.topic("dead")) >= n as i64).then_some(())
    });
}

fn application(log: Log, name: &str, partitions: i32) -> Draft {
    let processor = Processor::new("careless").input("in", "in").output("out", "out").dead_letters("dead");
    let topics = [("in", partitions), ("out", partitions), ("dead", 1)];
    let draft = topics.iter().fold(App::draft(log, name), |draft, (topic, partitions)| draft.topic(topic, *partitions));
    draft.processor(processor.limit("record_deadline", format!("{DEADLINE_MS}ms")))
}
