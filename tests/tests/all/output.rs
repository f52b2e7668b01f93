//! What is said, and what becomes of who says it: standard error that takes nothing, standard output that nobody reads, dead letters and
//! outages in the log, a run that is stopped before its end.

use super::{BOTH, see};
use pelton_tests::host::{Exit, Host, Launch};
use pelton_tests::load::one_each;
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, Rec, broker, oracle};
use std::fs::{self, OpenOptions};
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::thread::sleep;
use std::time::Duration;

const OK: Exit = Exit::Code(0);
/// As much as a pipe holds.
const PIPE: usize = 64 << 10;

#[test]
fn a_log_that_cannot_be_written_ends_no_host() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let app = App::counting(Log::Embedded, "log-lost", 2).ready();
    for round in 1..=2 {
        app.produce("in", &one_each(20));
        let host = app.host(1).arg("--until-idle").env("PELTON_LOG", "debug");
        let mut host = if round == 1 { host.err(full()) } else { host.err(closed()) }.start();
        assert_eq!(host.wait(secs(60)), OK, "{}", host.log());
        assert!(host.log().contains("log lines lost: "), "the summary tells: {}", host.log());
    }
    oracle::counts(&[one_each(20), one_each(20)].concat(), &app.read("out"));
}

/// A pipe that is full and not read takes no line, and does not fail either.
#[test]
fn a_log_that_nobody_reads_holds_no_host_up() {
    let app = App::counting(Log::Embedded, "log-stalled", 2).set("shutdown_grace", "5s").ready();
    app.produce("in", &one_each(20));
    let (_reader, writer) = stalled();
    let mut host = app.host(1).arg("--until-idle").env("PELTON_LOG", "debug").err(writer).start();
    assert_eq!(host.wait(secs(60)), OK, "{}", host.log());
    let (_reader, writer) = stalled();
    let mut host = app.host(1).env("PELTON_LOG", "debug").err(writer).start();
    sleep(secs(3));
    host.assert_running();
    host.stop(secs(12));
    oracle::counts(&one_each(20), &app.read("out"));
}

/// Whatever hangs, and whether or not anybody can be told.
#[test]
fn the_grace_ends_a_host_whose_log_nobody_reads() {
    let app = App::counting(Log::Embedded, "grace", 2).set("shutdown_grace", "3s").ready();
    app.produce("in", &one_each(20));
    let (_reader, writer) = stalled();
    let mut host = app.host(1).failpoints("commit-after-flush=sleep(60000)").err(writer).start();
    sleep(secs(3));
    host.signal("TERM");
    assert_eq!(host.wait(secs(12)), Exit::Code(4), "{}", host.log());
    app.finish(1);
    oracle::counts(&one_each(20), &app.read("out"));
}

#[test]
fn a_reader_that_goes_away_ends_a_verb_in_silence() {
    let app = rejecting(Log::Embedded, "readers");
    app.produce("in", &vec![Rec::new("k", "reject it").at(0); 500]);
    app.finish(1);
    let (input, plugin) = (app.topic("in"), pelton_tests::app::plugin("bad.wasm"));
    let (file, plugin) = (app.file(), plugin.to_str().unwrap().to_owned());
    let file = file.to_str().unwrap();
    let verbs: [&[&str]; 11] = [
        &["consume", file, &input],
        &["consume", file, &input, "--format", "table"],
        &["consume", file, &input, "--format", "raw"],
        &["consume", file, &input, "--fields", "key,value"],
        &["topics", file],
        &["topics", file, "--json"],
        &["dlq", "list", file, "bad"],
        &["dlq", "list", file, "bad", "--json"],
        &["inspect", &plugin],
        &["check", file],
        &["run", file, "--until-idle"],
    ];
    for verb in verbs {
        let start =
            |out: Launch| verb.iter().fold(out, |launch, arg| launch.arg(arg)).env("PELTON_LOG", "error").start();
        let mut host = start(launch(&app).out(closed()));
        assert_eq!((host.wait(secs(60)), host.log()), (OK, String::new()), "{verb:?}");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut host = start(launch(&app).out(full));
        assert_eq!(host.wait(secs(60)), Exit::Code(1), "{verb:?}: {}", host.log());
        assert_eq!(host.log().lines().count(), 1, "{}", host.log());
        assert!(host.log().starts_with("error: writing to standard output: No space left"), "{}", host.log());
    }
}

#[test]
fn a_run_that_is_stopped_before_it_is_idle_says_so() {
    for log in BOTH {
        let app = rejecting(log, "stopped");
        let input: Vec<Rec> = (0..8).map(|i| Rec::new("k", format!("busy 700 {i}")).at(0)).collect();
        app.produce("in", &input);
        let mut host = app.host(1).arg("--until-idle").start();
        sleep(secs(2));
        host.signal("TERM");
        assert_eq!(host.wait(secs(30)), Exit::Code(4), "{log:?}: {}", host.log());
        assert!(host.log().contains("\nstopped before every input was worked off\n"), "{}", host.log());
        assert_eq!(idle(&app, Some("TERM")), (Exit::Code(4), serde_json::Value::Bool(false)), "{log:?}");
        assert_eq!(idle(&app, None), (OK, serde_json::Value::Bool(true)), "{log:?}");
        oracle::accounting(&input, &app.read("out"), &app.read("dead"));
    }
}

#[test]
fn dead_letters_are_told_while_the_host_runs_in_few_lines() {
    let app = rejecting(Log::Kafka, "told");
    let mut input = vec![Rec::new("k", "reject it").at(0); 1000];
    input.push(Rec::new("k", "trap").at(0));
    app.produce("in", &input);
    let mut host = app.host(1).start();
    see(&app, "dead", input.len(), secs(60));
    host.says("code=\"trap\"", secs(10));
    host.assert_running();
    let first = format!("first=\"{}/0@0\" why=", app.topic("in"));
    assert!(host.log().contains(&first) && host.log().contains("(asked-to-reject)"), "{}", host.log());
    host.stop(secs(30));
    let lines: Vec<String> = told(&host, "code=\"plugin\"");
    assert!(lines.len() <= 2, "at once, and at the end: {lines:#?}");
    let counts = lines.iter().filter_map(|line| line.split("count=").nth(1)?.split(' ').next()?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 1000, "{lines:#?}");
    assert!(host.log().contains("\ndead letters (plugin): 1000\ndead letters (trap): 1\n"), "{}", host.log());
}

/// Each client of a host notices, some of them long after: a person needs one line now and then, and none once it is over.
#[test]
fn an_outage_is_told_once_and_not_after_its_end() {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = App::counting(Log::Kafka, "outage", 2).brokers(&proxy.address()).ready();
    app.produce("in", &one_each(20));
    let mut host = app.host(1).start();
    see(&app, "out", 20, secs(60));
    proxy.cut();
    host.says("ready=false reason=\"group", secs(30));
    sleep(secs(12));
    proxy.heal();
    app.produce("in", &one_each(20));
    see(&app, "out", 40, secs(60));
    sleep(secs(1));
    let during = host.log();
    sleep(secs(12)); // so that an idle client's word is old
    host.stop(secs(30));
    let failed = told(&host, "facility=\"FAIL\"");
    assert!((1..=3).contains(&failed.len()), "one in ten seconds: {failed:#?}");
    assert!(!host.log()[during.len()..].contains("WARN"), "{}", &host.log()[during.len()..]);
}

/// A bad plugin over one partition.
fn rejecting(log: Log, name: &str) -> App {
    let topics = ["in", "out", "dead"];
    let processor = Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead");
    let draft = topics.iter().fold(App::draft(log, name), |draft, topic| draft.topic(topic, 1));
    draft.processor(processor.limit("batch_records", 2)).set("shutdown_grace", "10s").ready()
}

fn launch(app: &App) -> Launch {
    Launch::new("verb", app.dir().join("verb.txt"))
}

fn told(host: &Host, what: &str) -> Vec<String> {
    host.log().lines().filter(|line| line.contains("WARN") && line.contains(what)).map(str::to_owned).collect()
}

/// How a run until idle ends, signalled after a while where that is asked for, and what its summary says of it.
fn idle(app: &App, signal: Option<&str>) -> (Exit, serde_json::Value) {
    let summary = app.dir().join("summary.json");
    let out = fs::File::create(&summary).unwrap();
    let mut host = app.host(1).arg("--until-idle").arg("--json").out(out).start();
    if let Some(signal) = signal {
        sleep(Duration::from_millis(1500));
        host.signal(signal);
    }
    let exit = host.wait(secs(60));
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(summary).unwrap()).unwrap();
    (exit, summary["idle"].clone())
}

/// A pipe whose reader is gone.
fn closed() -> PipeWriter {
    pipe().unwrap().1
}

/// A pipe that is full.
fn stalled() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    writer.write_all(&vec![b'x'; PIPE]).unwrap();
    (reader, writer)
}
