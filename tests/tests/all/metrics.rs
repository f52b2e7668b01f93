//! What a running host shows of itself, and what its plugin's lines look like, whatever a plugin does.

use super::BOTH;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

/// A page's samples by name and labels as they are written.
type Page = BTreeMap<String, f64>;

/// The page of host 1; none before it listens.
fn page(app: &App) -> Option<Page> {
    let note = std::fs::read_to_string(app.state_dir(1).join("admin.json")).ok()?;
    let note: serde_json::Value = serde_json::from_str(&note).ok()?;
    let address = note["address"].as_str()?.strip_prefix("http://")?.to_owned();
    let mut stream = TcpStream::connect(&address).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    Some(samples.filter_map(|(series, value)| Some((series.to_owned(), value.parse().ok()?))).collect())
}

/// Waits until the page shows this value.
#[track_caller]
fn shows(app: &App, series: &str, value: f64) -> Page {
    let mut last = None;
    wait::until(&format!("{series} is {value}"), secs(60), || {
        last = page(app);
        last.as_ref()?.get(series).filter(|shown| **shown == value)?;
        last.take()
    })
}

fn of<'a>(page: &'a Page, prefix: &'a str) -> impl Iterator<Item = (&'a String, f64)> {
    page.iter().filter(move |(series, _)| series.starts_with(prefix)).map(|(series, value)| (series, *value))
}

fn application(log: Log, name: &str, plugin: &str) -> App {
    let processor = Processor::new(plugin).input("in", "in").output("out", "out").dead_letters("dead");
    let processor = processor.section("retry", "first_delay", "10ms").section("retry", "max_attempts", 3);
    let draft = ["in", "out", "dead"].iter().fold(App::draft(log, name), |draft, topic| draft.topic(topic, 2));
    draft.processor(processor).ready()
}

fn record(partition: i32, value: &str) -> Rec {
    Rec::new(format!("k{partition}"), value).at(partition)
}

#[test]
fn a_host_shows_what_it_has_done_and_what_its_plugin_counts_once() {
    for log in BOTH {
        let app = application(log, "shown", "careless");
        let verbs = ["ok 1", "reject", "ok 2", "trap", "flaky 3", "ok 3", "panic", "retry", "divide", "ok 4"];
        app.produce("in", &verbs.map(|verb| record(0, verb)));
        let mut host = app.host(1).start();
        let own = |name: &str| format!("pelton_{name}{{processor=\"careless\"}}");
        let page = shows(&app, &own("task_records_in_total"), 10.0);
        // all but the three that never came back, and the one that was given up asking for a retry
        let handled = page["pelton_plugin_custom_total{processor=\"careless\",name=\"handled\"}"];
        assert_eq!(handled, 6.0, "{log:?}");
        assert_eq!(page["pelton_plugin_custom_count{processor=\"careless\",name=\"value_bytes\"}"], 6.0, "{log:?}");
        assert_eq!(page[&own("task_records_out_total")], 5.0, "{log:?}");
        let letters =
            |code: &str| page[&format!("pelton_delivery_dead_letters_total{{processor=\"careless\",code=\"{code}\"}}")];
        assert_eq!((letters("plugin"), letters("trap"), letters("panic")), (2.0, 1.0, 2.0), "{log:?}");
        assert_eq!(page[&own("delivery_retries_total")], 4.0, "{log:?}");
        assert_eq!(page[&own("task_assigned")], 2.0, "{log:?}");
        assert_eq!(page[&own("group_member")], 1.0, "{log:?}");
        assert!(page[&own("plugin_memory_bytes")] > 0.0 && page[&own("plugin_instances_total")] >= 4.0, "{log:?}");
        assert!(page["process_resident_memory_bytes"] > 1e6 && page["pelton_state_cache_limit_bytes"] > 0.0);
        assert_eq!(page["pelton_host_live"], 1.0);
        let settled = shows(&app, &own("task_overlay_bytes"), 0.0);
        assert_eq!(of(&settled, "pelton_commit_open_since").count(), 0, "{log:?}: {settled:?}");
        for partition in [0, 1] {
            shows(&app, &format!("pelton_group_lag_records{{processor=\"careless\",partition=\"{partition}\"}}"), 0.0);
        }
        host.stop(secs(60));
    }
}

#[test]
fn a_task_that_waits_is_shown_until_it_does_not() {
    let app = application(Log::Kafka, "waits", "careless");
    app.produce("in", &[record(1, "retry 3000")]);
    let mut host = app.host(1).start();
    let page = shows(&app, "pelton_task_backing_off{processor=\"careless\"}", 1.0);
    let since = page["pelton_task_backing_off_since_timestamp_seconds{processor=\"careless\"}"];
    let age = wait::wall_ms() as f64 / 1e3 - since;
    assert!((0.0..60.0).contains(&age), "{age}");
    let page = shows(&app, "pelton_task_backing_off{processor=\"careless\"}", 0.0);
    assert_eq!(of(&page, "pelton_task_backing_off_since").count(), 0, "{page:?}");
    host.stop(secs(60));
}

/// Names, values, codes and lines as a plugin likes them: what is shown stays as small as it is.
#[test]
fn a_hostile_plugin_makes_no_more_series() {
    let app = application(Log::Embedded, "series", "bad");
    let verbs = ["names 60", "measure", "log 500", "reject", "trap", "alloc 200", "lie counts", "records 200000"];
    let round: Vec<Rec> = verbs.iter().map(|verb| record(0, verb)).collect();
    app.produce("in", &round);
    let mut host = app.host(1).start();
    let total = "pelton_task_records_in_total{processor=\"bad\"}";
    let first = shows(&app, total, 8.0);
    assert_eq!(of(&first, "pelton_plugin_custom_total").count(), 30, "{first:?}");
    assert_eq!(first["pelton_plugin_custom_sum{processor=\"bad\",name=\"measure\"}"], 1.5);
    assert_eq!(first["pelton_plugin_custom_dropped_total{processor=\"bad\"}"], 34.0, "30 names and 4 values");
    assert!(first["pelton_plugin_log_lines_dropped_total{processor=\"bad\"}"] >= 300.0);
    host.stop(secs(60));
    let told = host.log().matches("counts what is left out").count();
    assert_eq!(told, 1, "{}", host.log());
    app.produce("in", &[round.clone(), round].concat());
    let mut host = app.host(1).start();
    let second = shows(&app, total, 16.0);
    let names = |page: &Page| page.keys().cloned().collect::<BTreeSet<_>>();
    let new: Vec<String> = names(&second).difference(&names(&first)).cloned().collect();
    assert!(new.len() < 10, "{new:?}");
    assert!(second.len() < 500, "{}", second.len());
    host.stop(secs(60));
}

const NASTY: &str = "say a\n2026-01-01T00:00:00.000000Z ERROR forged\r\u{1b}[31m \", \"level\":\"ERROR\", \"x\":\"";

#[test]
fn a_plugins_lines_say_where_they_come_from_and_cannot_be_forged() {
    for json in [false, true] {
        let app = application(Log::Embedded, "lines", "bad");
        app.produce("in", &[record(1, "ok"), record(1, "say hello"), record(1, NASTY)]);
        let launch = app.host(1).arg("--until-idle").env("PELTON_LOG", "info,plugin=debug");
        let launch = if json { launch.env("PELTON_LOG_FORMAT", "json") } else { launch };
        let mut host = launch.start();
        assert_eq!(host.wait(secs(60)), pelton_tests::host::Exit::Code(0), "{}", host.log());
        let log = host.log();
        let about: Vec<&str> = log.lines().filter(|line| line.contains("say ")).collect();
        assert_eq!(about.len(), 2, "{log}");
        assert!(!log.lines().any(|line| line.starts_with("2026-01-01T")), "{log}");
        if json {
            let lines = log.lines().filter(|line| line.starts_with('{'));
            let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
            let nasty = lines.iter().find(|line| line["message"] == NASTY).expect("byte for byte");
            assert_eq!((&nasty["level"], &nasty["processor"]), (&"INFO".into(), &"bad".into()));
            assert_eq!((&nasty["partition"], &nasty["offset"]), (&1.into(), &2.into()));
        } else {
            assert!(about[0].ends_with("say hello processor=bad partition=1 offset=1"), "{}", about[0]);
            assert!(about[1].ends_with("processor=bad partition=1 offset=2"), "{}", about[1]);
        }
    }
}

/// A host that is refused says so in the format that was asked for, and a format that is none is refused.
#[test]
fn errors_are_lines_of_the_format_too() {
    let app = application(Log::Embedded, "format", "bad");
    app.set_processor(&["plugin"], "missing.wasm");
    let mut host = app.host(1).env("PELTON_LOG_FORMAT", "json").start();
    assert_eq!(host.wait(secs(60)), pelton_tests::host::Exit::Code(3), "{}", host.log());
    for line in host.log().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    let mut host = app.host(1).env("PELTON_LOG_FORMAT", "yaml").start();
    assert_eq!(host.wait(secs(60)), pelton_tests::host::Exit::Code(2), "{}", host.log());
    assert!(host.log().contains("PELTON_LOG_FORMAT=`yaml`"), "{}", host.log());
}
