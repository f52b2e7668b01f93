//! Which records wait while one waits for its retry: `ordering` by partition and by key.

use super::{BOTH, Topics, see};
use pelton_tests::app::{Draft, IDLE};
use pelton_tests::host::Exit;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Letter, Log, Processor, Rec, account, hostile};

/// The longest that a plugin may ask for, and longer than any test.
const AN_HOUR: &str = "3600000";

/// Dead letters go where the outputs go, so that one partition shows the order of everything.
#[test]
fn b54_order_within_a_key_by_partition() {
    for log in BOTH {
        let ends = b54(log, "partition");
        let offsets: Vec<usize> = (0..ends.len()).collect();
        assert_eq!(ends, offsets, "{log:?}: the partition waits, so all are in order");
    }
}

#[test]
fn b54_order_within_a_key_by_key() {
    for log in BOTH {
        let ends = b54(log, "key");
        for key in 0..3 {
            let of_key: Vec<usize> = ends.iter().copied().filter(|offset| offset % 3 == key).collect();
            assert!(of_key.is_sorted() && of_key.len() == 5, "{log:?}: {of_key:?} of {ends:?}");
        }
    }
}

/// `a` waits for an hour; `c` passes, and the offset moves on. The stop does not wait, and the next start has everything.
#[test]
fn b54_other_keys_are_not_delayed() {
    let app = application(Log::Kafka, "passes", 1).ready();
    let hour = format!("retry {AN_HOUR} #0");
    app.produce("in", &records(&[("a", &hour), ("c", "ok #1"), ("a", "ok #2"), ("c", "ok #3")]));
    let mut host = app.host(1).start();
    assert_eq!(values(&see(&app, "out", 2, secs(60))), ["1 ok #1", "2 ok #3"]);
    wait::until("everything is committed", secs(30), || (app.committed("careless") == [Some(4)]).then_some(()));
    host.stop(secs(12));
    app.produce("in", &records(&[("c", "ok #4"), ("a", "ok #5"), ("d", "ok #6")]));
    let mut host = app.host(1).start();
    assert_eq!(values(&see(&app, "out", 4, secs(60)))[2..], ["3 ok #4", "1 ok #6"]);
    assert!(!host.log().contains("attempt 2 of"), "an hour has not passed");
    host.kill();
    assert!(app.read("dead").is_empty());
}

/// One key on two inputs: what waits is the key, wherever its next record comes from.
#[test]
fn a_key_waits_on_every_input() {
    for log in BOTH {
        let merge = Processor::new("merge")
            .input("left", "in")
            .input("right", "also")
            .output("out", "out")
            .put("ordering", "key");
        let topics = ["in", "also", "out"];
        let draft = topics.iter().fold(App::draft(log, "inputs-key"), |draft, topic| draft.topic(topic, 1));
        let app = draft.processor(merge).ready();
        app.produce("in", &records(&[("a", "flaky 2 4000")]));
        // the first run sets the record of the left input aside
        set_aside(&app, 1);
        let later = |key: &str| Rec { timestamp: 2, ..Rec::new(key, "ok").at(0) };
        app.produce("also", &[later("a"), later("b")]);
        app.finish(1);
        let of_a: Vec<Rec> = app.read("out").into_iter().filter(|r| r.key_text() == "a").collect();
        let found: Vec<_> = of_a.iter().map(|r| (r.value_text(), r.timestamp)).collect();
        assert_eq!(found, [("1".to_owned(), 1), ("2".to_owned(), 2)], "{log:?}: the left one is the first");
    }
}

/// Without a key there is nothing to wait by but the partition.
#[test]
fn records_without_a_key_wait_by_partition() {
    for log in BOTH {
        let bad = hostile::processor("key").section("retry", "first_delay", "1s").section("retry", "max_delay", "1s");
        let app = with_topics(App::draft(log, "null-key"), 1).processor(bad).ready();
        let keyless = |value: &str| Rec::raw(None, Some(value.as_bytes())).at(0);
        app.produce(
            "in",
            &[keyless("flaky 3 #0"), Rec::new("c", "ok #1").at(0), keyless("retry #2"), Rec::new("c", "ok #3").at(0)],
        );
        app.finish(1);
        assert_eq!(values(&app.read("out")), ["flaky 3 #0", "ok #1", "ok #3"], "{log:?}");
        let topics = Topics::of(&app);
        topics.account().exactly_once();
        assert_eq!(Letter::of(&topics.dead[0]).attempts, hostile::ATTEMPTS, "{log:?}");
    }
}

/// Parked records are many, the bound is low: nothing more is read until there is room.
#[test]
fn no_more_is_taken_than_may_be_parked() {
    let app = application(Log::Kafka, "full", 1).ready();
    app.set_processor(&["parking", "records"], 10);
    bounded(&app, 10, "");
}

#[test]
fn no_more_bytes_are_taken_than_may_be_parked() {
    let app = application(Log::Kafka, "full-bytes", 1).ready();
    app.set_processor(&["parking", "bytes"], "64KiB");
    bounded(&app, 4, &"x".repeat(30 << 10));
}

/// Back to waiting by partition: what is parked is worked off before anything new.
#[test]
fn the_park_is_worked_off_first_when_the_ordering_is_changed() {
    for log in BOTH {
        let app = application(log, "drain", 1).ready();
        let parked: Vec<Rec> = (0..10).map(|i| Rec::new(format!("p{i}"), format!("flaky 2 5000 #{i}")).at(0)).collect();
        app.produce("in", &parked);
        set_aside(&app, 10);
        app.set_processor(&["ordering"], "partition");
        let fresh: Vec<Rec> = (10..20).map(|i| Rec::new(format!("p{}", i - 5), format!("ok #{i}")).at(0)).collect();
        app.produce("in", &fresh);
        app.finish(1);
        let topics = Topics::of(&app);
        account::tallies(&topics.input, &topics.output, &topics.dead);
        let first_fresh = topics.output.iter().position(|r| r.value_text().contains("ok")).unwrap();
        assert_eq!(first_fresh, 10, "{log:?}: {:?}", values(&topics.output));
    }
}

/// The processor stops at the record, and what is parked stays.
#[test]
fn a_stop_waits_by_partition() {
    for log in BOTH {
        let app = application(log, "stop-key", 1).ready();
        let hour = format!("retry {AN_HOUR} #0");
        app.produce("in", &records(&[("a", &hour), ("b", "ok #1"), ("c", "stop #2"), ("d", "ok #3")]));
        let mut host = app.host(1).arg("--until-idle").start();
        assert_eq!(host.wait(IDLE), Exit::Code(1), "{log:?}: {}", host.log());
        assert!(host.log().contains("plugin-stop"), "{log:?}: {}", host.log());
        assert_eq!(values(&app.read("out")), ["1 ok #1"], "{log:?}: nothing behind it is done");
        assert!(app.read("dead").is_empty(), "{log:?}");
        if log == Log::Kafka {
            assert_eq!(app.committed("careless"), [Some(2)]);
        }
    }
}

/// Runs the scenario; gives the offsets of its fifteen records in the order in which they ended.
fn b54(log: Log, ordering: &str) -> Vec<usize> {
    let bad = hostile::processor(ordering).dead_letters("out").section("retry", "first_delay", "200ms").section(
        "retry",
        "max_delay",
        "400ms",
    );
    let topics = ["in", "out"];
    let draft = topics.iter().fold(App::draft(log, "b54"), |draft, topic| draft.topic(topic, 1));
    let app = draft.processor(bad).ready();
    let verb = |i| match i {
        0 => "flaky 3",
        1 => "retry",
        _ => "ok",
    };
    let input: Vec<Rec> =
        (0..15).map(|i| Rec::new(["a", "b", "c"][i % 3], format!("{} #{i:02}", verb(i))).at(0)).collect();
    app.produce("in", &input);
    app.finish(1);
    let (dead, output): (Vec<Rec>, Vec<Rec>) =
        app.read("out").into_iter().partition(|r| r.text("pelton-verdict").is_some());
    let letters = Letter::all(&dead);
    assert_eq!(letters.iter().map(|l| (l.offset, l.attempts)).collect::<Vec<_>>(), [(1, hostile::ATTEMPTS)], "{log:?}");
    assert_eq!(output.len(), 14, "{log:?}");
    let number = |record: &Rec| record.value_text().rsplit_once('#').unwrap().1.parse().unwrap();
    app.read("out").iter().map(number).collect()
}

/// Records that are parked for four seconds, as many as there is room for, and only then others.
fn bounded(app: &App, waiting: usize, text: &str) {
    let parked: Vec<Rec> =
        (0..waiting).map(|i| Rec::new(format!("p{i}"), format!("flaky 2 4000 #{i} {text}")).at(0)).collect();
    app.produce("in", &parked);
    let mut host = app.host(1).start();
    // by bytes the third is the last that may be parked
    let least = if text.is_empty() { waiting as i64 } else { 2 };
    wait::until("the park is full", secs(60), || app.committed("careless")[0].filter(|&offset| offset >= least));
    let fresh: Vec<Rec> = (0..20).map(|i| Rec::new(format!("c{i}"), format!("ok #{i}")).at(0)).collect();
    app.produce("in", &fresh);
    see(app, "out", waiting + fresh.len(), secs(90));
    host.stop(secs(30));
    let topics = Topics::of(app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    assert!(topics.output[0].value_text().contains("flaky"), "more was taken than there is room for");
}

/// A run in which so many records fail for the first time; its end commits that they wait.
fn set_aside(app: &App, records: usize) {
    let mut host = app.host(1).start();
    wait::until("the records have failed", secs(60), || {
        (host.log().matches("attempt 1 of").count() >= records).then_some(())
    });
    host.stop(secs(30));
}

fn application(log: Log, name: &str, partitions: i32) -> Draft {
    let processor =
        Processor::new("careless").input("in", "in").output("out", "out").dead_letters("dead").put("ordering", "key");
    with_topics(App::draft(log, name), partitions).processor(processor)
}

fn with_topics(draft: Draft, partitions: i32) -> Draft {
    ["in", "out", "dead"].iter().fold(draft, |draft, topic| draft.topic(topic, partitions))
}

fn records(records: &[(&str, &str)]) -> Vec<Rec> {
    records.iter().map(|(key, value)| Rec::new(key, value).at(0)).collect()
}

fn values(records: &[Rec]) -> Vec<String> {
    records.iter().map(Rec::value_text).collect()
}
