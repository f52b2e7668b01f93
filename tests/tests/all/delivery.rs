//! Accounting: a plugin that fails in every way it can, and still each input ends as one output or as one dead letter that says the truth
//! about it.

use super::kills::killed_run;
use super::{BOTH, Topics, repeats};
use pelton_tests::load::Feed;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Rng, account, hostile, kafka, oracle};

const KEYS: u64 = 50;
/// Records a second, under kills.
const RATE: u64 = 250;

#[test]
fn every_record_is_accounted_for_by_partition() {
    accounted("partition");
}

#[test]
fn every_record_is_accounted_for_by_key() {
    accounted("key");
}

#[test]
fn a_topic_in_which_every_record_fails_by_partition() {
    all_fail("partition");
}

#[test]
fn a_topic_in_which_every_record_fails_by_key() {
    all_fail("key");
}

#[test]
fn every_record_is_accounted_for_under_random_kills_by_partition() {
    judge(&killed("partition", "exactly-once", repeats(20, 200)));
}

#[test]
fn every_record_is_accounted_for_under_random_kills_by_key() {
    judge(&killed("key", "exactly-once", repeats(20, 200)));
}

#[test]
fn at_least_once_loses_nothing_under_random_kills() {
    let app = killed("partition", "at-least-once", repeats(5, 100));
    let topics = Topics::of(&app);
    topics.account().at_least_once();
    hostile::judge(&topics.output, &topics.dead);
}

fn accounted(ordering: &str) {
    for log in BOTH {
        let app = hostile::application(log, "account", ordering).ready();
        app.produce("in", &hostile::records(&mut Rng::seeded("account"), KEYS, 0..800, 10));
        app.finish(1);
        judge(&app);
    }
}

fn all_fail(ordering: &str) {
    for log in BOTH {
        let app = hostile::application(log, "all-fail", ordering).ready();
        let input = hostile::doomed(&mut Rng::seeded("all-fail"), KEYS, 0..300);
        app.produce("in", &input);
        app.finish(1);
        judge(&app);
        assert_eq!(app.read("dead").len(), input.len(), "{log:?}");
    }
}

/// A job that is fed and killed so often, and then finished.
fn killed(ordering: &str, delivery: &str, kills: usize) -> App {
    let name = format!("account-kills-{ordering}");
    let app = hostile::application(Log::Kafka, &name, ordering)
        .set("delivery", delivery)
        .set("session_timeout", "2s")
        .set("commit_interval", "50ms")
        .ready();
    let mut rng = Rng::seeded(&name);
    let mut of_feed = rng.clone();
    let make = move |from, n| hostile::records(&mut of_feed, KEYS, from..from + n, 10);
    let feed = Feed::of(app.topic("in"), RATE, make);
    for kill in 0..kills {
        match kill % 3 {
            2 => killed_after_catching_up(&app, &mut rng),
            _ => killed_run(&app, &mut rng),
        }
    }
    feed.stop();
    app.finish(1);
    app
}

/// A life that outlasts all that was there when it began. Without it a record that takes long could be alone in the plugin at three
/// kills running, and would be taken for what kills the host.
fn killed_after_catching_up(app: &App, rng: &mut Rng) {
    let goal: Vec<i64> = (0..hostile::PARTITIONS).map(|p| kafka::ends(&app.topic("in"), p).1).collect();
    let mut host = app.host(1).start();
    wait::until("what was there is committed", secs(90), || {
        let committed = app.committed("bad");
        committed.iter().zip(&goal).all(|(found, goal)| found.unwrap_or(0) >= *goal).then_some(())
    });
    std::thread::sleep(rng.millis(0, 400));
    host.assert_running();
    host.kill();
}

fn judge(app: &App) {
    let topics = Topics::of(app);
    topics.account().exactly_once();
    hostile::judge(&topics.output, &topics.dead);
    oracle::order(&topics.input, &topics.output);
    account::unchanged(&topics.input, &topics.output);
}
