//! SIGKILL at random moments under load. Whatever the moment, every input is counted exactly once.

use pelton_tests::load::Feed;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Rec, Rng, kafka, oracle, store};
use std::thread::sleep;

const PARTITIONS: i32 = 4;
const KEYS: u64 = 100;

#[test]
fn random_kills_under_load() {
    let (app, mut rng) = loaded("kills", "exactly-once");
    let feed = Feed::start(app.topic("in"), rng.clone(), KEYS, 2000);
    for _ in 0..super::repeats(20, 50) {
        killed_run(&app, &mut rng);
    }
    judge(&app, &feed.stop());
}

/// Small write buffers, so that RocksDB flushes between commits; after each kill the output must be a prefix of the right one.
#[test]
fn b27_nothing_of_an_aborted_transaction_stays() {
    let (app, mut rng) = loaded("b27", "exactly-once");
    let feed = Feed::start(app.topic("in"), rng.clone(), KEYS, 2000);
    for i in 0..super::repeats(20, 200) {
        killed_run(&app, &mut rng);
        if i % 5 == 4 {
            oracle::prefix_counts(&app.read("out"));
        }
    }
    judge(&app, &feed.stop());
}

/// A copy of the state folder taken while the host runs is what a power cut leaves: older or torn, never trusted too far.
#[test]
fn b36_a_copied_state_folder_is_never_ahead() {
    let (app, mut rng) = loaded("b36", "exactly-once");
    let feed = Feed::start(app.topic("in"), rng.clone(), KEYS, 2000);
    for i in 0..super::repeats(12, 300) {
        match i % 3 {
            2 => power_cut(&app, &mut rng),
            _ => killed_run(&app, &mut rng),
        }
    }
    judge(&app, &feed.stop());
}

#[test]
fn b36_at_least_once_loses_no_increment() {
    let (app, mut rng) = loaded("b36-alo", "at-least-once");
    let feed = Feed::start(app.topic("in"), rng.clone(), KEYS, 1000);
    for _ in 0..super::repeats(6, 300) {
        killed_run(&app, &mut rng);
    }
    let input = feed.stop();
    app.finish(1);
    oracle::counts_at_least(&input, &app.read("out"));
    oracle::no_host_crash(&app.read("dead"));
}

fn loaded(name: &str, delivery: &str) -> (App, Rng) {
    let app = App::counting(Log::Kafka, name, PARTITIONS)
        .set("delivery", delivery)
        .set("session_timeout", "2s")
        .set("commit_interval", "50ms")
        .set("write_buffers", "1MiB")
        .ready();
    (app, Rng::seeded(name))
}

/// One life: in every fourth it dies at any moment, also of its start; else after it has shown that it works.
pub(super) fn killed_run(app: &App, rng: &mut Rng) {
    let before = kafka::total(&app.topic("out"));
    let mut host = app.host(1).start();
    if rng.below(4) > 0 {
        wait::until("the host works", secs(60), || (kafka::total(&app.topic("out")) > before).then_some(()));
    }
    sleep(rng.millis(0, 400));
    host.assert_running();
    host.kill();
}

fn power_cut(app: &App, rng: &mut Rng) {
    let before = kafka::total(&app.topic("out"));
    let mut host = app.host(1).start();
    wait::until("the host works", secs(60), || (kafka::total(&app.topic("out")) > before).then_some(()));
    sleep(rng.millis(0, 400));
    let copy = app.dir().join("copy");
    store::copy(&app.state_dir(1), &copy);
    sleep(rng.millis(0, 200));
    host.kill();
    app.wipe(1);
    std::fs::rename(&copy, app.state_dir(1)).unwrap();
}

fn judge(app: &App, input: &[Rec]) {
    app.finish(1);
    oracle::counts(input, &app.read("out"));
    let dead = app.read("dead");
    oracle::no_host_crash(&dead);
    assert!(dead.is_empty(), "{:?}", dead.first());
}
