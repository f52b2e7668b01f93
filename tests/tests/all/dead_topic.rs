//! B48: the dead-letter topic refuses writes, or the broker is out of reach, for a while: records wait, nothing is committed past them, and
//! in the end each is accounted for.

use super::{Topics, see};
use pelton_tests::app::Draft;
use pelton_tests::load::Feed;
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::{secs, throughout};
use pelton_tests::{App, Log, Processor, Rec, broker, hostile};
use std::time::Duration;

const PARTITIONS: i32 = 4;
const RECORDS: usize = 1000;
/// One in so many is rejected.
const BAD: usize = 10;

#[test]
fn b48_exactly_once_with_too_few_replicas() {
    refused("exactly-once");
}

#[test]
fn b48_at_least_once_with_too_few_replicas() {
    refused("at-least-once");
}

#[test]
fn b48_exactly_once_behind_a_cut() {
    cut("exactly-once");
}

#[test]
fn b48_at_least_once_behind_a_cut() {
    cut("at-least-once");
}

/// Half of the outage; in between the host is killed.
fn half() -> Duration {
    secs(super::repeats(4, 30) as u64)
}

/// The broker answers every write to the topic as where too few replicas are in sync; all else works.
fn refused(delivery: &str) {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = application("b48-refused", delivery).brokers(&proxy.address()).ready();
    let dead = app.topic("dead");
    proxy.refuse(&dead);
    app.produce("in", &records(0, RECORDS));
    let mut host = app.host(1).start();
    host.says(&dead, secs(60)); // it says what it waits for
    waits(&app);
    host.assert_running();
    host.kill();
    let mut host = app.host(1).start();
    host.says(&dead, secs(60));
    waits(&app);
    host.assert_running();
    assert!(app.read("dead").is_empty(), "the topic has refused everything");
    proxy.heal();
    accounted(&app, RECORDS, delivery);
    host.stop(secs(30));
}

/// No byte passes between host and broker.
fn cut(delivery: &str) {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = application("b48-cut", delivery).brokers(&proxy.address()).ready();
    let feed = Feed::of(app.topic("in"), 200, records);
    let mut host = app.host(1).start();
    see(&app, "out", 200, secs(60));
    proxy.cut();
    waits(&app);
    host.assert_running();
    host.kill();
    let mut host = app.host(1).start();
    waits(&app);
    host.assert_running();
    proxy.heal();
    let produced = feed.stop().len();
    accounted(&app, produced, delivery);
    host.stop(secs(30));
}

/// As long as the outage lasts, what is committed has ended somewhere.
fn waits(app: &App) {
    throughout(half(), || {
        let committed = app.committed("bad");
        Topics::of(app).account().nothing_passed_over(&committed);
    });
}

/// Everything comes through by itself.
fn accounted(app: &App, produced: usize, delivery: &str) {
    let bad = (0..produced).filter(|i| is_bad(*i)).count();
    see(app, "dead", bad, secs(90));
    see(app, "out", produced - bad, secs(90));
    let topics = Topics::of(app);
    match delivery {
        "exactly-once" => topics.account().exactly_once(),
        _ => topics.account().at_least_once(),
    }
    hostile::judge(&topics.output, &topics.dead);
}

fn application(name: &str, delivery: &str) -> Draft {
    let processor = Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead");
    App::draft(Log::Kafka, name)
        .topic("in", PARTITIONS)
        .topic("out", PARTITIONS)
        .topic("dead", 1)
        .processor(processor)
        .set("delivery", delivery)
        .set("session_timeout", "3s")
        .kafka_log("transaction_timeout", "3s")
}

fn records(from: usize, n: usize) -> Vec<Rec> {
    let verb = |i| if is_bad(i) { "reject" } else { "ok" };
    (from..from + n).map(|i| Rec::new(format!("k{}", i % 37), format!("{} #{i:06}", verb(i)))).collect()
}

fn is_bad(number: usize) -> bool {
    number % BAD == BAD / 2
}
