//! Several hosts of one application: started, stopped and frozen under load. Nothing is lost and nothing doubled.

use super::see;
use pelton_tests::host::Host;
use pelton_tests::load::{Feed, one_each};
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, Rng, kafka, oracle};

const PARTITIONS: i32 = 6;
const KEYS: u64 = 60;

#[test]
fn hosts_come_go_and_freeze_classic() {
    come_go_and_freeze("classic");
}

#[test]
fn hosts_come_go_and_freeze_consumer() {
    come_go_and_freeze("consumer");
}

/// A request from before a freeze of the broker, served after it, fences its own sender: here another client plays it.
#[test]
fn a_host_that_is_fenced_once_joins_again() {
    let app = App::counting(Log::Kafka, "fenced", 2).set("session_timeout", "6s").ready();
    app.produce("in", &one_each(KEYS));
    let mut host = app.host(1).start();
    see(&app, "out", KEYS as usize, secs(60));
    let instance = std::fs::read_to_string(app.state_dir(1).join("instance")).expect("the instance's id");
    let id = format!("{}-{}", app.group("count"), instance.trim());
    let intruder = kafka::join_as(&app.group("count"), &app.topic("in"), &id);
    wait::until("the host sees it", secs(60), || {
        kafka::serve(&intruder);
        host.log().contains("joining again").then_some(())
    });
    std::mem::forget(intruder); // gone without a word, as it never was
    app.produce("in", &one_each(KEYS));
    see(&app, "out", 2 * KEYS as usize, secs(60));
    host.stop(secs(60));
    oracle::counts(&[one_each(KEYS), one_each(KEYS)].concat(), &app.read("out"));
}

/// Equal partition numbers of both inputs meet in one task on one host, however many hosts there are.
#[test]
fn two_inputs_keep_equal_partitions_together_classic() {
    two_inputs("classic");
}

#[test]
fn two_inputs_keep_equal_partitions_together_consumer() {
    two_inputs("consumer");
}

/// A host that comes back within its session takes its own partitions, without waiting for the session to end.
#[test]
fn a_restarted_static_member_is_back_at_once() {
    let app = App::counting(Log::Kafka, "static", PARTITIONS).set("session_timeout", "30s").ready();
    let mut host = app.host(1).start();
    app.produce("in", &one_each(KEYS));
    see(&app, "out", KEYS as usize, secs(60));
    host.kill();
    app.produce("in", &one_each(KEYS));
    let mut host = app.host(1).start();
    see(&app, "out", 2 * KEYS as usize, secs(20)); // well below the session time-out
    host.stop(secs(30));
    oracle::counts(&[one_each(KEYS), one_each(KEYS)].concat(), &app.read("out"));
}

/// `--until-idle` looks at the whole group: with a dead member's partitions unread it does not end.
#[test]
fn until_idle_waits_for_the_partitions_of_a_dead_member() {
    let app = App::counting(Log::Kafka, "idle", PARTITIONS).set("session_timeout", "3s").ready();
    let mut first = app.host(1).start();
    app.produce("in", &one_each(KEYS));
    see(&app, "out", KEYS as usize, secs(60));
    first.kill();
    app.produce("in", &one_each(KEYS));
    app.finish(2);
    oracle::counts(&[one_each(KEYS), one_each(KEYS)].concat(), &app.read("out"));
}

fn come_go_and_freeze(protocol: &str) {
    let app = application(protocol, "group");
    let feed = Feed::start(app.topic("in"), Rng::seeded("groups"), KEYS, 600);
    let mut one = app.host(1).start();
    grows(&app, "the first host works");
    let mut two = app.host(2).start();
    let mut three = app.host(3).start();
    grows(&app, "three hosts work");
    two.signal("STOP");
    grows(&app, "others work while one is frozen");
    one.stop(secs(30));
    let mut one = app.host(1).start();
    let input = feed.stop();
    see(&app, "out", input.len(), secs(60)); // the frozen host's partitions have been taken over
    two.signal("CONT");
    let input = thawed(&app, input, &mut two);
    three.kill();
    let input = [input, more(&app)].concat();
    see(&app, "out", input.len(), secs(60));
    [&mut one, &mut two].into_iter().for_each(|host| host.stop(secs(30)));
    app.finish(3);
    oracle::counts(&input, &app.read("out"));
    oracle::no_host_crash(&app.read("dead"));
}

/// The host that was frozen past its session goes on (or ends by itself and is started again); what it held open is aborted.
fn thawed(app: &App, input: Vec<Rec>, host: &mut Host) -> Vec<Rec> {
    let input = [input, more(app)].concat();
    see(app, "out", input.len(), secs(60));
    host.assert_running();
    input
}

fn two_inputs(protocol: &str) {
    let app = App::draft(Log::Kafka, "inputs")
        .topic("left", PARTITIONS)
        .topic("right", PARTITIONS)
        .topic("out", PARTITIONS)
        .processor(Processor::new("merge").input("left", "left").input("right", "right").output("out", "out"))
        .set("group_protocol", protocol)
        .set("session_timeout", "3s")
        .ready();
    let mut input = Vec::new();
    let mut round = |app: &App| {
        ["left", "right"].iter().for_each(|topic| app.produce(topic, &one_each(KEYS)));
        input.extend([one_each(KEYS), one_each(KEYS)].concat());
        see(app, "out", input.len(), secs(60));
    };
    let mut one = app.host(1).start();
    round(&app);
    let mut two = app.host(2).start();
    round(&app);
    let mut three = app.host(3).start();
    round(&app);
    two.kill();
    round(&app);
    [&mut one, &mut three].into_iter().for_each(|host| host.stop(secs(30)));
    oracle::counts(&input, &app.read("out"));
}

fn application(protocol: &str, name: &str) -> App {
    App::counting(Log::Kafka, name, PARTITIONS)
        .set("group_protocol", protocol)
        .set("session_timeout", "3s")
        .kafka_log("transaction_timeout", "5s")
        .ready()
}

fn more(app: &App) -> Vec<Rec> {
    app.produce("in", &one_each(KEYS));
    one_each(KEYS)
}

/// Waits until the output has grown by enough that every host has had a part in it.
fn grows(app: &App, what: &str) {
    let goal = kafka::total(&app.topic("out")) + 1500;
    wait::until(what, secs(60), || (kafka::total(&app.topic("out")) > goal).then_some(()));
}
