//! B75: SIGTERM ends the host within its grace, whatever it is doing, and nothing is lost or doubled by it.

use super::{BOTH, see};
use pelton_tests::app::IDLE;
use pelton_tests::host::Exit;
use pelton_tests::load::{Feed, one_each};
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, Rec, Rng, broker, oracle};
use std::thread::sleep;
use std::time::Duration;

/// The grace, and room for a loaded machine.
const GRACE: &str = "5s";
const LIMIT: Duration = Duration::from_secs(12);

#[test]
fn b75_under_load() {
    let app = App::counting(Log::Kafka, "b75-load", 4).set("shutdown_grace", GRACE).ready();
    let mut rng = Rng::seeded("b75-load");
    let feed = Feed::start(app.topic("in"), rng.clone(), 40, 1000);
    for round in 1..=5 {
        let mut host = app.host(1).start();
        see(&app, "out", round * 200, secs(60));
        sleep(rng.millis(0, 300));
        host.stop(LIMIT);
    }
    let input = feed.stop();
    app.finish(1);
    oracle::counts(&input, &app.read("out"));
}

#[test]
fn b75_the_successor_starts_at_once() {
    let app = App::counting(Log::Kafka, "b75-next", 4).set("session_timeout", "60s").ready();
    app.produce("in", &one_each(20));
    let mut first = app.host(1).start();
    see(&app, "out", 20, secs(60));
    first.stop(LIMIT);
    app.produce("in", &one_each(20));
    let mut next = app.host(1).start();
    see(&app, "out", 40, secs(30)); // well below the session time-out
    next.stop(LIMIT);
}

#[test]
fn b75_with_a_slow_plugin() {
    for log in BOTH {
        let app = slow(log, "b75-slow");
        let input: Vec<Rec> = (0..12).map(|i| Rec::new("k", format!("busy 1500 {i}")).at(0)).collect();
        app.produce("in", &input);
        ended_by(&app, "TERM", Duration::from_millis(2500));
        app.finish(1);
        oracle::accounting(&input, &app.read("out"), &app.read("dead"));
    }
}

#[test]
fn b75_with_a_looping_plugin() {
    for log in BOTH {
        let app = slow(log, "b75-loop");
        let input = [Rec::new("k", "ok 1").at(0), Rec::new("k", "loop 2").at(0), Rec::new("k", "ok 3").at(0)];
        app.produce("in", &input);
        ended_by(&app, "TERM", Duration::from_millis(1500));
        app.finish(1);
        oracle::accounting(&input, &app.read("out"), &app.read("dead"));
    }
}

#[test]
fn b75_in_the_first_moment() {
    for log in BOTH {
        let app = App::counting(log, "b75-early", 4).set("shutdown_grace", GRACE).ready();
        app.produce("in", &one_each(20));
        for ms in [0, 5, 20, 50, 100, 200] {
            let mut host = app.host(1).start();
            sleep(Duration::from_millis(ms));
            host.signal("TERM");
            let exit = host.wait(LIMIT);
            // Before the handler is in place the signal kills, as it does every process.
            assert!(
                exit == Exit::Code(0) || exit == Exit::Signal(15),
                "{log:?} after {ms} ms: {exit:?}: {}",
                host.log()
            );
        }
        app.finish(1);
        oracle::counts(&one_each(20), &app.read("out"));
    }
}

#[test]
fn b75_during_a_restore() {
    for log in BOTH {
        let app = App::counting(log, "b75-restore", 4).set("shutdown_grace", GRACE).ready();
        app.produce("in", &one_each(200));
        app.finish(1);
        app.wipe(1);
        let mut host = app.host(1).failpoints("restore-batch=sleep(300)").start();
        host.says("restor", secs(60));
        host.signal("TERM");
        assert_eq!(host.wait(LIMIT), Exit::Code(0), "{log:?}: {}", host.log());
        app.produce("in", &one_each(200));
        app.finish(1);
        oracle::counts(&[one_each(200), one_each(200)].concat(), &app.read("out"));
    }
}

#[test]
fn b75_with_the_broker_out_of_reach() {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = App::counting(Log::Kafka, "b75-cut", 4).brokers(&proxy.address()).set("shutdown_grace", GRACE).ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("b75-cut"), 40, 200);
    let mut host = app.host(1).start();
    see(&app, "out", 100, secs(60));
    proxy.cut();
    host.signal("TERM");
    host.wait(LIMIT);
    proxy.heal();
    let input = feed.stop();
    app.finish(1);
    oracle::counts(&input, &app.read("out"));
}

/// Who signals twice does not want to wait.
#[test]
fn b75_a_second_signal_ends_it_at_once() {
    let app = slow(Log::Embedded, "b75-twice");
    let input: Vec<Rec> = (0..12).map(|i| Rec::new("k", format!("busy 1500 {i}")).at(0)).collect();
    app.produce("in", &input);
    let mut host = app.host(1).start();
    sleep(Duration::from_millis(1500));
    host.signal("TERM");
    sleep(Duration::from_millis(200));
    if host.exited().is_none() {
        host.signal("TERM");
    }
    host.wait(secs(6));
    app.finish(1);
    oracle::accounting(&input, &app.read("out"), &app.read("dead"));
}

fn slow(log: Log, name: &str) -> App {
    App::draft(log, name)
        .topic("in", 1)
        .topic("out", 1)
        .topic("dead", 1)
        .processor(
            Processor::new("bad")
                .input("in", "in")
                .output("out", "out")
                .dead_letters("dead")
                .limit("record_deadline", "4s")
                .limit("batch_records", 3),
        )
        .set("shutdown_grace", GRACE)
        .ready()
}

/// Starts a host, lets it get into its work, and signals it: it ends within the grace, well or by leaving work undone.
fn ended_by(app: &App, signal: &str, after: Duration) {
    let mut host = app.host(1).start();
    sleep(after);
    host.assert_running();
    host.signal(signal);
    let exit = host.wait(LIMIT.min(IDLE));
    assert!(matches!(exit, Exit::Code(_)), "{exit:?}: {}", host.log());
}
