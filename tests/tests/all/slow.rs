//! Slow work, lost connections and time-outs: the host loses what it must, redoes it, and goes on by itself.

use super::see;
use pelton_tests::app::Draft;
use pelton_tests::load::{Feed, one_each, records};
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, Rng, broker, kafka, oracle};
use std::thread::sleep;

const KEYS: u64 = 40;

/// Work that outlasts the session many times over: polling goes on beside it, and no partition is lost.
#[test]
fn b19_work_slower_than_the_session() {
    for hosts in [1, 2] {
        let app = slow_application("b19");
        let input = busy(20, 1500);
        app.produce("in", &input);
        let mut all: Vec<_> = (1..=hosts).map(|n| app.host(n).start()).collect();
        see(&app, "out", input.len(), secs(180));
        let lost = all.iter().find(|host| host.log().contains("partitions lost"));
        assert!(lost.is_none(), "a partition was lost to slow work");
        all.iter_mut().for_each(|host| host.stop(secs(30)));
        oracle::accounting(&input, &app.read("out"), &app.read("dead"));
        oracle::order(&input, &app.read("out"));
    }
}

/// The work takes longer than `max.poll.interval.ms` allows, and one record six times as long.
#[test]
fn b19_work_slower_than_the_poll_interval() {
    for hosts in [1, 2] {
        let app = slow("b19-poll", "6s", 20).property("max.poll.interval.ms", "14000").ready();
        let mut input = busy(16, 1000);
        input.insert(6, Rec::new("k1", "busy 60000 x"));
        app.produce("in", &input);
        let mut all: Vec<_> = (1..=hosts).map(|n| app.host(n).start()).collect();
        see(&app, "out", input.len() - 1, secs(180));
        let lost = all.iter().find(|host| host.log().contains("partitions lost"));
        assert!(lost.is_none(), "a partition was lost to slow work");
        all.iter_mut().for_each(|host| host.stop(secs(30)));
        let (out, dead) = (app.read("out"), app.read("dead"));
        assert_eq!(dead.len(), 1);
        oracle::accounting(&input, &out, &dead);
        oracle::order(&input, &out);
    }
}

/// One record that takes longer than anything allows ends as a dead letter, and its neighbours pass.
#[test]
fn b19_one_record_without_end() {
    let app = slow_application("b19-loop");
    let mut input = busy(4, 10);
    input.insert(2, Rec::new("k1", "busy 600000 x"));
    app.produce("in", &input);
    app.finish(1);
    let dead = app.read("dead");
    assert_eq!(dead.len(), 1);
    assert!(dead[0].value_text().starts_with("busy 600000"), "{dead:?}");
    oracle::accounting(&input, &app.read("out"), &dead);
}

/// The connection is gone for longer than the transaction may be open.
#[test]
fn b28_cut_off_in_the_middle_of_a_transaction() {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = timing_out("b28-cut").brokers(&proxy.address()).ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("b28-cut"), KEYS, 500);
    let mut host = app.host(1).start();
    for _ in 0..super::repeats(1, 20) {
        grows(&app, 300);
        proxy.cut();
        sleep(secs(8));
        host.assert_running();
        proxy.heal();
    }
    grows(&app, 300);
    let input = feed.stop();
    see(&app, "out", input.len(), secs(60));
    host.stop(secs(30));
    oracle::counts(&input, &app.read("out"));
}

/// The process itself is frozen for longer than its transaction may be open, and than its session lasts.
#[test]
fn b28_frozen_in_the_middle_of_a_transaction() {
    let app = timing_out("b28-stop").ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("b28-stop"), KEYS, 500);
    let mut host = app.host(1).start();
    for _ in 0..super::repeats(1, 20) {
        grows(&app, 300);
        host.signal("STOP");
        sleep(secs(8));
        host.signal("CONT");
    }
    grows(&app, 300);
    let input = feed.stop();
    see(&app, "out", input.len(), secs(60));
    host.stop(secs(30));
    oracle::counts(&input, &app.read("out"));
}

/// A worker that sleeps in its commit past the transaction's time-out finds its producer fenced, by nobody but itself.
#[test]
fn a_producer_fenced_by_its_own_timeout_is_replaced() {
    for point in ["commit-before-produce", "commit-after-changelog", "commit-after-offsets"] {
        let app = timing_out("fenced").set("workers", 1).ready();
        app.produce("in", &one_each(KEYS));
        let mut host = app.host(1).arg("--until-idle").failpoints(&format!("{point}=1*sleep(9000)")).start();
        assert_eq!(host.wait(secs(90)), pelton_tests::host::Exit::Code(0), "{point}: {}", host.log());
        oracle::counts(&one_each(KEYS), &app.read("out"));
    }
}

/// The worker stands between plugin call and commit while the group wants to give its partitions to another host.
#[test]
fn parked_before_the_commit_while_partitions_move() {
    for point in ["commit-before-produce", "commit-after-offsets"] {
        let app = timing_out("parked").ready();
        let input = records(&mut Rng::seeded("parked"), KEYS, 0, 2000);
        app.produce("in", &input);
        let mut parked = app.host(1).failpoints(&format!("{point}=2*off->1*sleep(12000)->off")).start();
        parked.says("health", secs(60));
        let mut other = app.host(2).start();
        see(&app, "out", input.len(), secs(90));
        for host in [&mut parked, &mut other] {
            host.signal("TERM");
            host.wait(secs(60));
        }
        app.finish(2);
        oracle::counts(&input, &app.read("out"));
    }
}

/// The same with the whole process frozen past its session: the other host takes over, and the first must not commit when it wakes.
#[test]
fn frozen_while_partitions_move() {
    let app = timing_out("zombie").ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("zombie"), KEYS, 500);
    let mut frozen = app.host(1).start();
    grows(&app, 200);
    frozen.signal("STOP");
    let mut other = app.host(2).start();
    grows(&app, 500);
    frozen.signal("CONT");
    grows(&app, 500);
    let input = feed.stop();
    see(&app, "out", input.len(), secs(60));
    frozen.assert_running();
    [&mut frozen, &mut other].into_iter().for_each(|host| host.stop(secs(30)));
    oracle::counts(&input, &app.read("out"));
}

fn slow_application(name: &str) -> App {
    slow(name, "15s", 5).ready()
}

fn slow(name: &str, record_deadline: &str, batch_records: i64) -> Draft {
    App::draft(Log::Kafka, name)
        .topic("in", 2)
        .topic("out", 2)
        .topic("dead", 1)
        .processor(
            Processor::new("bad")
                .input("in", "in")
                .output("out", "out")
                .dead_letters("dead")
                .limit("record_deadline", record_deadline)
                .limit("batch_records", batch_records),
        )
        .set("session_timeout", "6s")
}

/// `n` records over two keys, each busy for about so long; the last word makes them unique.
fn busy(n: usize, ms: u32) -> Vec<Rec> {
    (0..n).map(|i| Rec::new(format!("k{}", i % 2), format!("busy {ms} {i}"))).collect()
}

fn timing_out(name: &str) -> Draft {
    App::counting(Log::Kafka, name, 4).kafka_log("transaction_timeout", "5s").set("session_timeout", "4s")
}

fn grows(app: &App, by: i64) {
    let goal = kafka::total(&app.topic("out")) + by;
    wait::until("the output grows", secs(90), || (kafka::total(&app.topic("out")) > goal).then_some(()));
}
