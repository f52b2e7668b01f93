//! Stores and their changelogs: wiped, torn, compacted, truncated and recreated.

use super::BOTH;
use pelton_tests::host::{ABORTED, Exit};
use pelton_tests::kafka::{self, Isolation};
use pelton_tests::load::{one_each, records};
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Rec, Rng, oracle, store};

const KEYS: u64 = 30;

#[test]
fn a_wiped_store_comes_back_byte_for_byte() {
    for log in BOTH {
        let app = App::counting(log, "wipe", 4).ready();
        let input = records(&mut Rng::seeded("wipe"), 500, 0, 5000);
        app.produce("in", &input);
        app.finish(1);
        let before = store::dump(&app.state_dir(1));
        assert!(store::entries(&before) > 400, "{log:?}: there is something to lose");
        app.wipe(1);
        app.settle(1);
        assert!(before == store::dump(&app.state_dir(1)), "{log:?}: the restored store differs");
        oracle::counts(&input, &app.read("out"));
    }
}

/// A changelog whose end is a marker, an aborted record, or a hole that compaction left.
#[test]
fn b25_restore_ends_by_position_not_by_a_record() {
    let app = compacting("b25");
    let mut input = one_each(KEYS);
    app.produce("in", &input);
    app.finish(1); // one commit: the last offset is a marker
    continue_after_wipe(&app, &mut input);
    for _ in 0..super::repeats(10, 100) {
        app.produce("in", &one_each(KEYS));
        input.extend(one_each(KEYS));
        app.finish(1);
    }
    continue_after_wipe(&app, &mut input);
    end_with_aborted_records(&app, &mut input);
    continue_after_wipe(&app, &mut input);
    wait_for_compaction(&app, &input);
    continue_after_wipe(&app, &mut input);
    oracle::counts(&input, &app.read("out"));
}

#[test]
fn b25_an_empty_changelog_is_restored_at_once() {
    for log in BOTH {
        let app = App::counting(log, "b25-empty", 4).ready();
        app.finish(1);
        app.wipe(1);
        app.produce("in", &one_each(1)); // the other three partitions stay empty
        app.finish(1);
        oracle::counts(&one_each(1), &app.read("out"));
    }
}

#[test]
fn b27_aborted_values_in_the_changelog_are_never_seen() {
    let app = App::counting(Log::Kafka, "b27-foreign", 2).ready();
    app.produce("in", &one_each(KEYS));
    app.finish(1);
    let changelog = app.changelog("count", "counts");
    let foreign: Vec<Rec> = kafka::read(&changelog, Isolation::Committed)
        .into_iter()
        .map(|r| Rec { value: r.value.map(|v| v.iter().map(|b| b ^ 0x55).collect()), headers: Vec::new(), ..r })
        .collect();
    assert_eq!(foreign.len() as u64, KEYS);
    kafka::produce_aborted(&changelog, &foreign);
    app.wipe(1);
    app.produce("in", &one_each(KEYS));
    app.finish(1);
    oracle::counts(&[one_each(KEYS), one_each(KEYS)].concat(), &app.read("out"));
}

/// (a) the log begins after our offset: rebuilt once, from what is left, which holds every key.
#[test]
fn b41_a_changelog_truncated_past_our_offset_is_restored() {
    let app = App::counting(Log::Kafka, "b41a", 2).ready();
    app.produce("in", &one_each(KEYS));
    app.finish(1);
    let changelog = app.changelog("count", "counts");
    let end = |p| kafka::ends(&changelog, p).1;
    // Another host goes on, so that what this one knows ends before the log begins.
    app.produce("in", &one_each(KEYS));
    app.finish(2);
    let kept: Vec<i64> = (0..2).map(end).collect();
    app.produce("in", &one_each(KEYS));
    app.finish(2);
    kafka::truncate_compacted(&changelog, &kept);
    app.produce("in", &one_each(KEYS));
    app.finish(1);
    oracle::counts(&[one_each(KEYS), one_each(KEYS), one_each(KEYS), one_each(KEYS)].concat(), &app.read("out"));
}

/// (b) recreated empty, (c) recreated with more records than before: another topic of the same name. Either the host refuses to
/// go on, or it rebuilds from the new one; it never mixes the old store with the new log.
#[test]
fn b41_a_recreated_changelog_is_another_topic() {
    for refilled in [false, true] {
        let app = App::counting(Log::Kafka, "b41bc", 2).ready();
        app.produce("in", &one_each(KEYS));
        app.finish(1);
        let changelog = app.changelog("count", "counts");
        let once = kafka::read(&changelog, Isolation::Committed);
        app.produce("in", &[one_each(KEYS), one_each(KEYS)].concat());
        app.finish(1);
        kafka::delete_topic(&changelog);
        kafka::create_topic(&changelog, 2, &[("cleanup.policy", "compact")]);
        if refilled {
            let plain: Vec<Rec> = once.into_iter().map(|r| Rec { headers: Vec::new(), ..r }).collect();
            (0..8).for_each(|_| kafka::produce(&changelog, &plain));
        }
        app.produce("in", &one_each(KEYS));
        let before = app.read("out").len();
        let mut host = app.host(1).arg("--until-idle").start();
        match host.wait(secs(60)) {
            Exit::Code(0) => {
                let right = if refilled { "2" } else { "1" };
                let out = app.read("out");
                let fresh = out.iter().filter(|r| r.value_text() == right).count();
                let old = out.iter().filter(|r| r.value_text() == "4").count();
                assert!(
                    old == 0 && fresh > KEYS as usize,
                    "refilled {refilled}: the old store was mixed with the new log"
                );
            }
            exit => {
                assert_ne!(exit, ABORTED);
                assert!(host.log().contains(&changelog), "the topic is named: {}", host.log());
                assert_eq!(app.read("out").len(), before, "nothing is processed on a doubtful store");
            }
        }
    }
}

fn continue_after_wipe(app: &App, input: &mut Vec<Rec>) {
    app.wipe(1);
    app.produce("in", &one_each(KEYS));
    input.extend(one_each(KEYS));
    app.finish(1);
    oracle::counts(input, &app.read("out"));
}

/// Dies with changelog records produced and offsets sent, so that the next start aborts them.
fn end_with_aborted_records(app: &App, input: &mut Vec<Rec>) {
    app.produce("in", &one_each(KEYS));
    input.extend(one_each(KEYS));
    let mut host = app.host(1).arg("--until-idle").failpoints("commit-after-offsets=return").start();
    assert_eq!(host.wait(secs(60)), ABORTED, "{}", host.log());
}

/// A counter whose changelog is compacted while the test waits.
fn compacting(name: &str) -> App {
    let app = App::counting(Log::Kafka, name, 2).set("workers", 1).ready();
    let quick = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("delete.retention.ms", "86400000"),
    ];
    kafka::create_topic(&app.changelog("count", "counts"), 2, &quick);
    app
}

/// The active segment is never cleaned, so the changelog shrinks to its last values and what was written last. One record of each
/// input was written to it.
fn wait_for_compaction(app: &App, input: &[Rec]) {
    let changelog = app.changelog("count", "counts");
    wait::until("the changelog is compacted", secs(60), || {
        (kafka::read(&changelog, Isolation::Committed).len() < input.len() / 2).then_some(())
    });
}
