//! The dead letter itself: what it holds, what is done where it is too large, how many are too many, and which failures become one.

use super::{BOTH, Topics};
use pelton_tests::app::{Draft, IDLE, plugin};
use pelton_tests::host::Exit;
use pelton_tests::letter::{self, CONNECT};
use pelton_tests::wait::{secs, wall_ms};
use pelton_tests::{App, Letter, Log, Processor, Rec, account, hostile};
use std::process::Command;

/// Failed while running (docs/exit-codes.md).
const FAILED: Exit = Exit::Code(1);
/// What the dead-letter topic takes, in the tests of letters that are too large.
const TAKES: &str = "100000";

#[test]
fn the_record_is_kept_and_the_reason_is_complete() {
    for log in BOTH {
        let app = one_partition(log, "letter", hostile::processor("partition")).ready();
        let headers = |rec: Rec| rec.header("h", Some(&[0xc3, 0x28])).header("h", None).header("h", Some(b""));
        let record = Rec { timestamp: 77, ..headers(Rec::new([0xff, 0xfe], b"reject \x80").at(0)) };
        app.produce("in", &[Rec::new("k", "ok 0").at(0), record.clone()]);
        let before = wall_ms();
        app.finish(1);
        let dead = app.read("dead");
        assert_eq!(dead.len(), 1, "{log:?}");
        let there = Rec { partition: dead[0].partition, offset: dead[0].offset, ..record.clone() };
        assert_eq!(letter::original(&dead[0]), there, "{log:?}");
        assert_eq!(dead[0].headers[..3], record.headers, "{log:?}: the record's own headers come first");
        let expected = Letter {
            topic: app.topic("in"),
            partition: 0,
            offset: 1,
            timestamp: 77,
            processor: "bad".to_owned(),
            plugin: "bad".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(), // one version for all of the workspace
            digest: sha256("bad.wasm"),
            verdict: "rejected".to_owned(),
            code: "asked-to-reject".to_owned(),
            attempts: 1,
            truncated_from: None,
            ..Letter::of(&dead[0])
        };
        assert_eq!(Letter::of(&dead[0]), expected, "{log:?}");
        assert!(!expected.message.is_empty() && expected.stack.is_empty(), "{expected:?}");
        assert!(expected.first == expected.last && (before..=wall_ms()).contains(&expected.first), "{expected:?}");
        assert!(!dead[0].headers.iter().any(|(name, _)| name.starts_with(CONNECT)), "only where asked for");
    }
}

#[test]
fn nulls_stay_nulls_and_details_travel() {
    for log in BOTH {
        let app = one_partition(log, "letter-null", careless()).ready();
        let input = [Rec::raw(None, Some(b"ok 1")), Rec::raw(Some(b"k"), None), Rec::new("k", "reject 2")];
        app.produce("in", &input.clone().map(|record| record.at(0)));
        app.finish(1);
        let dead = app.read("dead");
        let codes: Vec<String> = Letter::all(&dead).into_iter().map(|letter| letter.code).collect();
        assert_eq!(codes, ["null-key", "null-value", "asked-to-reject"], "{log:?}");
        let kept = |record: &Rec| (record.key.clone(), record.value.clone());
        assert_eq!(dead.iter().map(kept).collect::<Vec<_>>(), input.iter().map(kept).collect::<Vec<_>>(), "{log:?}");
        assert_eq!(dead[2].text("pelton-detail-asked").as_deref(), Some("reject 2"), "{log:?}");
    }
}

#[test]
fn kafka_connects_names_are_there_where_asked_for() {
    for log in BOTH {
        let processor = hostile::processor("partition").section("dead_letter", "connect_headers", true);
        let app = one_partition(log, "letter-connect", processor).ready();
        app.produce("in", &[Rec::new("k", "ok 0").at(0), Rec::new("k", "trap 1").at(0)]);
        app.finish(1);
        let dead = app.read("dead");
        let get = |name: &str| dead[0].text(&format!("__connect.errors.{name}"));
        let letter = Letter::of(&dead[0]);
        assert_eq!(get("topic"), Some(app.topic("in")), "{log:?}");
        assert_eq!((get("partition"), get("offset")), (Some("0".to_owned()), Some("1".to_owned())), "{log:?}");
        assert_eq!(get("connector.name").as_deref(), Some("bad"), "{log:?}");
        assert!(get("exception.message").is_some_and(|text| text.contains(&letter.message)), "{log:?}: {dead:?}");
        for name in ["task.id", "stage", "class.name", "exception.class.name", "exception.stacktrace"] {
            assert!(get(name).is_some_and(|text| !text.is_empty()), "{log:?}: {name}: {dead:?}");
        }
    }
}

#[test]
fn a_letter_that_is_too_large_is_cut_and_says_so() {
    for log in BOTH {
        let (app, input) = oversize(log, "truncate");
        app.finish(1);
        let (topics, large) = (Topics::of(&app), &input[1]);
        topics.account().exactly_once();
        let (dead, letter) = (&topics.dead[0], Letter::of(&topics.dead[0]));
        let size = |record: &Rec| record.value.as_ref().unwrap().len() as u64;
        assert_eq!(letter.truncated_from, Some(size(large) + 1), "{log:?}: value and key");
        let kept = dead.value.as_deref().unwrap();
        assert!(kept.len() > 50_000 && kept.len() < 100_000, "{log:?}: no more is cut than must be: {}", kept.len());
        assert!(large.value.as_ref().unwrap().starts_with(kept), "{log:?}: what is kept is the record's");
        assert_eq!((&dead.key, &letter.code[..]), (&large.key, "asked-to-reject"), "{log:?}");
    }
}

#[test]
fn a_letter_that_is_too_large_stops_the_processor_where_asked_for() {
    for log in BOTH {
        let (app, _) = oversize(log, "stop");
        let mut host = app.host(1).arg("--until-idle").start();
        assert_eq!(host.wait(IDLE), FAILED, "{log:?}: {}", host.log());
        assert!(host.log().contains(&app.topic("dead")), "{log:?}: the topic is named: {}", host.log());
        assert!(app.read("dead").is_empty(), "{log:?}: no part of it is there");
        app.set_processor(&["dead_letter", "oversize"], "truncate");
        app.finish(1);
        Topics::of(&app).account().exactly_once(); // also: nothing was committed past it
    }
}

/// A wrong deploy: at first few fail, then nearly all.
#[test]
fn too_large_a_share_of_dead_letters_stops_the_processor() {
    for log in BOTH {
        let processor = hostile::processor("partition").section("dead_letter", "limit", "20%");
        let app = one_partition(log, "limit-share", processor).ready();
        app.produce("in", &rejects(0..1000, 10));
        app.finish(1); // a tenth is below the limit
        assert_eq!(app.read("dead").len(), 100, "{log:?}");
        app.produce("in", &rejects(1000..3000, 1));
        stopped_by_limit(&app, log);
        assert!(app.read("dead").len() < 1100, "{log:?}: the topic was drained");
        app.set_processor(&["dead_letter", "limit"], "1000000/s");
        app.finish(1);
        let topics = Topics::of(&app);
        topics.account().exactly_once();
        hostile::judge(&topics.output, &topics.dead);
    }
}

#[test]
fn too_high_a_rate_of_dead_letters_stops_the_processor() {
    for log in BOTH {
        let processor =
            hostile::processor("partition").section("dead_letter", "limit", "5/h").limit("batch_records", 10);
        let app = one_partition(log, "limit-rate", processor).ready();
        app.produce("in", &rejects(0..200, 10));
        stopped_by_limit(&app, log);
        let topics = Topics::of(&app);
        assert!((1..=5).contains(&topics.dead.len()), "{log:?}: five are allowed: {}", topics.dead.len());
        if log == Log::Kafka {
            topics.account().nothing_passed_over(&app.committed("bad"));
        }
        app.set_processor(&["dead_letter", "limit"], "1000000/s");
        app.finish(1);
        Topics::of(&app).account().exactly_once();
    }
}

/// A rejection that is retried instead, a retry that is none: what was done with the others of the batch is done once.
#[test]
fn codes_override_what_a_failure_says_of_itself() {
    for (log, ordering) in BOTH.into_iter().flat_map(|log| [(log, "partition"), (log, "key")]) {
        let processor = hostile::quick_retries(careless()).put("ordering", ordering).section(
            "retry",
            "codes",
            overrides(&[("asked-to-reject", "retry"), ("asked-to-retry", "dead-letter")]),
        );
        let app = one_partition(log, "codes", processor).ready();
        app.produce("in", &verbs(40, &[(5, "reject"), (6, "retry"), (20, "reject"), (39, "reject")]));
        app.finish(1);
        let topics = Topics::of(&app);
        account::tallies(&topics.input, &topics.output, &topics.dead);
        let mut fates: Vec<_> = Letter::all(&topics.dead).into_iter().map(|l| (l.offset, l.code, l.attempts)).collect();
        fates.sort();
        let retried = |offset| (offset, "asked-to-reject".to_owned(), hostile::ATTEMPTS);
        let at_once = (6, "asked-to-retry".to_owned(), 1);
        assert_eq!(fates, [retried(5), at_once, retried(20), retried(39)], "{log:?}, {ordering}");
    }
}

#[test]
fn a_code_may_stop_the_processor() {
    for (log, ordering) in BOTH.into_iter().flat_map(|log| [(log, "partition"), (log, "key")]) {
        let processor = careless().put("ordering", ordering).section("retry", "codes", overrides(&[("trap", "stop")]));
        let app = one_partition(log, "codes-stop", processor).ready();
        app.produce("in", &verbs(40, &[(3, "reject"), (17, "trap")]));
        let mut host = app.host(1).arg("--until-idle").start();
        assert_eq!(host.wait(IDLE), FAILED, "{log:?}, {ordering}: {}", host.log());
        assert!(host.log().contains("offset 17"), "{log:?}, {ordering}: the record is named: {}", host.log());
        let topics = Topics::of(&app);
        assert!(topics.output.len() <= 16, "{log:?}, {ordering}: nothing behind it is done");
        assert!(topics.dead.iter().all(|dead| Letter::of(dead).offset == 3), "{log:?}, {ordering}");
        app.set_processor(&["retry", "codes"], overrides(&[("trap", "dead-letter")]));
        app.finish(1);
        let topics = Topics::of(&app);
        account::tallies(&topics.input, &topics.output, &topics.dead);
        assert_eq!(topics.dead.len(), 2, "{log:?}, {ordering}");
    }
}

#[test]
fn a_dead_letter_topic_that_is_missing_is_named_at_the_start() {
    for log in BOTH {
        let app = one_partition(log, "no-dead", hostile::processor("partition").dead_letters("elsewhere"))
            .at(&["log", "create_topics"], false)
            .ready();
        let mut host = app.host(1).start();
        assert_eq!(host.wait(secs(30)), Exit::Code(3), "{log:?}: {}", host.log());
        // the embedded log has made no topic at all
        let missing = if log == Log::Kafka { app.topic("elsewhere") } else { app.id.clone() };
        assert!(host.log().contains(&missing), "{log:?}: {}", host.log());
    }
}

fn one_partition(log: Log, name: &str, processor: Processor) -> Draft {
    ["in", "out", "dead"].iter().fold(App::draft(log, name), |draft, topic| draft.topic(topic, 1)).processor(processor)
}

fn careless() -> Processor {
    Processor::new("careless").input("in", "in").output("out", "out").dead_letters("dead")
}

/// A record in the middle that the dead-letter topic does not take.
fn oversize(log: Log, setting: &str) -> (App, Vec<Rec>) {
    let app =
        one_partition(log, "oversize", hostile::processor("partition").section("dead_letter", "oversize", setting))
            .topic_setting("in", "max.message.bytes", "2000000")
            .topic_setting("dead", "max.message.bytes", TAKES)
            .ready();
    let large = format!("reject {}", "x".repeat(500_000));
    let input = ["ok 0", &large, "ok 2"].map(|value| Rec::new("k", value).at(0)).to_vec();
    app.produce("in", &input);
    (app, input)
}

fn stopped_by_limit(app: &App, log: Log) {
    let mut host = app.host(1).arg("--until-idle").start();
    assert_eq!(host.wait(IDLE), FAILED, "{log:?}: {}", host.log());
    assert!(host.log().contains("dead-letter-limit"), "{log:?}: {}", host.log());
}

/// One reject in so many.
fn rejects(numbers: std::ops::Range<usize>, one_in: usize) -> Vec<Rec> {
    let verb = |i: usize| if i % one_in == one_in / 2 { "reject" } else { "ok" };
    numbers.map(|i| Rec::new(format!("k{}", i % 7), format!("{} #{i:06}", verb(i))).at(0)).collect()
}

/// So many records, of which some, by offset, misbehave.
fn verbs(n: usize, odd: &[(usize, &str)]) -> Vec<Rec> {
    let verb = |i| odd.iter().find(|(at, _)| *at == i).map_or("ok", |(_, verb)| verb);
    (0..n).map(|i| Rec::new(format!("k{}", i % 3), format!("{} #{i}", verb(i))).at(0)).collect()
}

fn overrides(codes: &[(&str, &str)]) -> toml::Table {
    codes.iter().map(|(code, action)| ((*code).to_owned(), (*action).into())).collect()
}

fn sha256(file: &str) -> String {
    let output = Command::new("sha256sum").arg(plugin(file)).output().expect("sha256sum runs");
    String::from_utf8_lossy(&output.stdout).split_whitespace().next().expect("a digest").to_owned()
}
