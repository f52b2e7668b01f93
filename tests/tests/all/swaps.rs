//! Versions of a plugin that take over from one another while the stream runs.

use pelton_tests::admin::Admin;
use pelton_tests::app::{App, Log, Processor};
use pelton_tests::host::Host;
use pelton_tests::load::{Feed, one_each};
use pelton_tests::versions::{Version, maker, stretches};
use pelton_tests::wait::secs;
use pelton_tests::{Rec, Rng, kafka, oracle};
use serde_json::Value;
use std::path::Path;

const PARTITIONS: i32 = 8;
const WASM: &str = "Content-Type: application/wasm\r\n";

/// A processor of the first version, whose file is in the application's folder.
pub(super) fn app(log: Log, name: &str, partitions: i32) -> App {
    drawn(log, name, partitions, |processor| processor)
}

pub(super) fn drawn(log: Log, name: &str, partitions: i32, more: impl Fn(Processor) -> Processor) -> App {
    let topics = ["in", "out", "dead"];
    let draft = topics.iter().fold(App::draft(log, name), |draft, topic| draft.topic(topic, partitions));
    let processor = Processor::new("versioned").input("in", "in").output("out", "out").dead_letters("dead");
    let app = draft.set("session_timeout", "2s").set("commit_interval", "50ms").processor(more(processor)).ready();
    let file = Version::of(1).file(app.dir());
    app.set_processor(&["plugin"], file.to_str().unwrap());
    app
}

pub(super) fn start(app: &App, n: u32) -> (Host, Admin) {
    let host = app.host(n).start();
    let admin = Admin::of(app, n, host.pid());
    (host, admin)
}

pub(super) fn ready(app: &App, n: u32) -> (Host, Admin) {
    let (host, admin) = start(app, n);
    admin.ready();
    (host, admin)
}

/// Status and body of a deploy.
pub(super) fn deploy(admin: &Admin, version: &Version<'_>, query: &str) -> (u16, Value) {
    let reply = admin.ask("POST", &format!("/v1/processors/versioned/deploy{query}"), WASM, &version.bytes());
    (reply.status, reply.json())
}

/// `None` where the host has ended without an answer.
pub(super) fn try_deploy(admin: &Admin, version: &Version<'_>) -> Option<u16> {
    let reply = admin.try_ask("POST", "/v1/processors/versioned/deploy", WASM, &version.bytes());
    reply.map(|reply| reply.status)
}

pub(super) fn deployed(admin: &Admin, version: &Version<'_>) {
    let (status, body) = deploy(admin, version, "");
    assert_eq!(status, 200, "{body}");
}

#[track_caller]
fn refused(admin: &Admin, version: &Version<'_>, code: &str) {
    let (status, body) = deploy(admin, version, "");
    assert!(status != 200 && body["code"] == code, "{version:?}: {status} {body}");
}

pub(super) fn history(admin: &Admin) -> Vec<(i64, String, String)> {
    let reply = admin.get("/v1/processors/versioned/history").json();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let entries = reply["entries"].as_array().unwrap().iter();
    entries.map(|entry| (entry["sequence"].as_i64().unwrap(), text(entry, "how"), text(entry, "result"))).collect()
}

pub(super) fn sequence(admin: &Admin) -> i64 {
    admin.status()["processors"][0]["version"]["sequence"].as_i64().unwrap()
}

/// Waits until the host has committed `n` inputs.
pub(super) fn worked_off(admin: &Admin, n: i64) {
    admin.until("all is worked off", secs(60), |status| {
        let tasks = status["processors"][0]["tasks"].as_array().unwrap().iter();
        tasks.filter_map(|task| task["inputs"][0]["committed"].as_i64()).sum::<i64>() == n
    });
}

pub(super) fn outputs(app: &App, n: usize) -> Vec<Rec> {
    super::see(app, "out", n, secs(60))
}

#[test]
fn a_version_takes_over_goes_back_and_survives_a_restart() {
    for log in super::BOTH {
        let app = app(log, "over", 2);
        app.produce("in", &one_each(10));
        app.finish(1);
        let (mut host, admin) = ready(&app, 1);
        deployed(&admin, &Version::of(2));
        assert_eq!(sequence(&admin), 2);
        let reply = admin.post("/v1/processors/versioned/rollback");
        assert_eq!(reply.status, 200, "{reply:?}");
        deployed(&admin, &Version::of(3));
        let seen = history(&admin);
        let hows: Vec<&str> = seen.iter().map(|(_, how, _)| how.as_str()).collect();
        assert_eq!(hows, ["deploy", "rollback", "deploy", "start"]);
        assert_eq!((seen[0].0, seen[0].2.as_str(), seen[1].2.as_str()), (4, "active", "replaced"));
        host.stop(secs(30));
        app.produce("in", &one_each(10));
        // the file still holds the first version
        app.finish(1);
        let out = app.read("out");
        oracle::counts(&[one_each(10), one_each(10)].concat(), &out);
        let makers: Vec<u32> = out.iter().filter(|record| record.value_text() == "2").map(maker).collect();
        assert_eq!(makers, [3; 10], "the active version, not the file's");
    }
}

#[test]
fn b66_what_is_no_version_leaves_everything_as_it_was() {
    for log in super::BOTH {
        let app = app(log, "refused", 2);
        app.produce("in", &one_each(10));
        let (mut host, admin) = ready(&app, 1);
        worked_off(&admin, 10);
        let bad = |deed| Version { deed, ..Version::of(2) };
        refused(&admin, &bad("init"), "plugin-init-refused");
        refused(&admin, &bad("hungry"), "plugin-init-refused");
        refused(&admin, &bad("trap"), "plugin-probe-failed");
        refused(&admin, &bad("loop"), "plugin-probe-failed");
        refused(&admin, &Version { store: "others", ..Version::of(2) }, "store-incompatible");
        refused(&admin, &Version { schema: 3, reads_from: 2, ..Version::of(2) }, "store-incompatible");
        refused(&admin, &Version { schema: 2, ..Version::of(2) }, "rollback-impossible");
        let post = |body: &[u8]| admin.ask("POST", "/v1/processors/versioned/deploy", WASM, body);
        let whole = Version::of(2).bytes();
        for (body, code) in [
            (&whole[..whole.len() / 2], "plugin-not-wasm"),
            (&whole[..8], "plugin-other-world"),
            (b"\0asm\x01\0\0\0", "plugin-core-module"),
            (b"", "plugin-not-wasm"),
        ] {
            let reply = post(body);
            assert!(reply.status != 200 && reply.code() == code, "{code}: {reply:?}");
        }
        let other = std::fs::read(pelton_tests::app::plugin("echo.wasm")).unwrap();
        let reply = post(&other);
        assert!(reply.status != 200 && reply.code() == "store-incompatible", "{reply:?}");
        assert_eq!((sequence(&admin), history(&admin).len()), (1, 1));
        host.stop(secs(30));
        app.produce("in", &one_each(10));
        app.finish(1);
        let out = app.read("out");
        oracle::counts(&[one_each(10), one_each(10)].concat(), &out);
        assert!(out.iter().all(|output| maker(output) == 1));
    }
}

/// A version that breaks on what comes after its probe is taken back by itself, and nothing is lost or done twice.
#[test]
fn a_version_that_fails_on_probation_is_taken_back() {
    let app = app(Log::Kafka, "probation", 4);
    app.produce("in", &one_each(40));
    let (mut host, admin) = ready(&app, 1);
    outputs(&app, 40);
    deployed(&admin, &Version { deed: "odd", ..Version::of(2) });
    app.produce("in", &one_each(40));
    outputs(&app, 80);
    let odd: Vec<Rec> = (0..40).map(|k| Rec::new(format!("k{k}"), "odd")).collect();
    app.produce("in", &odd);
    let out = outputs(&app, 120);
    let input = [one_each(40), one_each(40), odd].concat();
    oracle::counts(&input, &out);
    assert!(app.read("dead").is_empty());
    let seen = history(&admin);
    assert_eq!((seen.len(), seen[0].1.as_str(), seen[0].2.as_str()), (3, "probation", "active"));
    assert!(seen[1].2.starts_with("rolled back: ") && seen[1].2.contains("panic"), "{seen:?}");
    for partition in 0..4 {
        assert_eq!(stretches(&out, partition), [1, 2, 1], "partition {partition}");
    }
    host.says("going back for all hosts", secs(5));
    host.stop(secs(30));
}

/// Without a way back a failing version stays, and its records are dead letters.
#[test]
fn a_version_without_a_way_back_stays() {
    let app = app(Log::Kafka, "one-way", 1);
    app.produce("in", &one_each(5));
    let (mut host, admin) = ready(&app, 1);
    outputs(&app, 5);
    let version = Version { deed: "odd", schema: 2, ..Version::of(2) };
    let (status, body) = deploy(&admin, &version, "?no_rollback=true");
    assert_eq!((status, &body["probation_until_ms"]), (200, &Value::Null), "{body}");
    app.produce("in", &[Rec::new("k0", "odd"), Rec::new("k0", "even")]);
    let out = outputs(&app, 6);
    assert_eq!(maker(out.last().unwrap()), 2);
    assert_eq!(app.read("dead").len(), 1);
    let reply = admin.post("/v1/processors/versioned/rollback");
    assert!(reply.status != 200 && reply.code() == "store-incompatible", "the old one cannot read the new schema");
    host.stop(secs(30));
}

#[test]
fn a_pause_holds_on_all_hosts_and_over_restarts() {
    for log in super::BOTH {
        let app = app(log, "pause", 2);
        app.produce("in", &one_each(10));
        let (mut host, admin) = ready(&app, 1);
        worked_off(&admin, 10);
        assert_eq!(admin.post("/v1/processors/versioned/pause").status, 200);
        assert_eq!(admin.status()["processors"][0]["state"], "paused");
        host.stop(secs(30));
        app.produce("in", &one_each(10));
        let (mut host, admin) = ready(&app, 1);
        admin.until("it is paused", secs(30), |status| status["processors"][0]["state"] == "paused");
        admin.until("the lag is seen", secs(30), |status| status["processors"][0]["lag"] == 10);
        assert_eq!(admin.post("/v1/processors/versioned/resume").status, 200);
        worked_off(&admin, 20);
        host.stop(secs(30));
        oracle::counts(&[one_each(10), one_each(10)].concat(), &app.read("out"));
    }
}

/// A watched file is deployed once it is whole, however it is replaced; what is not whole never is.
#[test]
fn b66_a_watched_file_is_deployed_once_it_is_whole() {
    let app = drawn(Log::Embedded, "watch", 1, |processor| processor.put("watch", true));
    let file = app.dir().join("v1-none.wasm");
    let (mut host, admin) = ready(&app, 1);
    let active = |number: i64| {
        admin.until("the version is active", secs(30), |status| {
            status["processors"][0]["version"]["sequence"] == number
        });
    };
    // renamed in
    let next = app.dir().join("next");
    std::fs::write(&next, Version::of(2).bytes()).unwrap();
    std::fs::rename(&next, &file).unwrap();
    active(2);
    // in place, slowly: the pieces are none of them a version
    let bytes = Version::of(3).bytes();
    write_slowly(&file, &bytes);
    active(3);
    // touched, with the same bytes
    std::fs::write(&file, &bytes).unwrap();
    // broken, then mended
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    host.says("a version was refused", secs(30));
    assert_eq!(sequence(&admin), 3);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&next, Version::of(4).bytes()).unwrap();
    std::os::unix::fs::symlink(&next, &file).unwrap();
    active(4);
    let seen = history(&admin);
    assert!(seen[..3].iter().all(|(_, how, _)| how == "watch"), "{seen:?}");
    host.stop(secs(30));
}

fn write_slowly(file: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut open = std::fs::File::create(file).unwrap();
    for piece in bytes.chunks(bytes.len() / 10) {
        open.write_all(piece).unwrap();
        open.flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn two_hosts_and_a_third_end_on_one_version() {
    let app = app(Log::Kafka, "three", PARTITIONS);
    let rng = Rng::seeded("three");
    let feed = Feed::start(app.topic("in"), rng, 200, 1000);
    let (mut first, admin) = ready(&app, 1);
    let (mut second, other) = ready(&app, 2);
    deployed(&admin, &Version::of(2));
    let (mut third, late) = start(&app, 3);
    deployed(&other, &Version::of(3));
    late.ready();
    for host in [&admin, &other, &late] {
        host.until("it has the version", secs(60), |status| {
            let processor = &status["processors"][0];
            let tasks = processor["tasks"].as_array().unwrap();
            processor["version"]["sequence"] == 3 && tasks.iter().all(|task| task["sequence"] == 3)
        });
    }
    second.kill();
    deployed(&admin, &Version::of(4));
    let (mut again, back) = start(&app, 2);
    back.ready();
    assert_eq!(sequence(&back), 4, "it was down during the deploy");
    let input = feed.stop();
    let out = outputs(&app, input.len());
    oracle::counts(&input, &out);
    for host in [&mut first, &mut again, &mut third] {
        host.stop(secs(30));
    }
    for partition in 0..PARTITIONS {
        let seen = stretches(&out, partition);
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "partition {partition}: {seen:?}");
    }
}

/// A hundred swaps under load, with a kill after one in ten.
#[test]
fn swaps_under_load_lose_and_repeat_nothing() {
    let app = app(Log::Kafka, "swaps", PARTITIONS);
    let feed = Feed::start(app.topic("in"), Rng::seeded("swaps"), 500, 2000);
    let (mut host, mut admin) = ready(&app, 1);
    for n in 2..2 + super::repeats(20, 100) as u32 {
        deployed(&admin, &Version::of(n));
        if n % 10 == 0 {
            host.kill();
            (host, admin) = ready(&app, 1);
        }
    }
    assert!(!host.log().contains("partitions revoked"), "a swap is no rebalance");
    let input = feed.stop();
    let out = outputs(&app, input.len());
    host.stop(secs(30));
    oracle::counts(&input, &out);
    oracle::no_host_crash(&app.read("dead"));
    for partition in 0..PARTITIONS {
        let seen = stretches(&out, partition);
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "partition {partition}: {seen:?}");
    }
}

/// Of each processor the last record is all that compaction leaves.
#[test]
fn the_versions_survive_the_compaction_of_their_topic() {
    let app = app(Log::Kafka, "compacted", 1);
    app.produce("in", &one_each(3));
    let (mut host, admin) = ready(&app, 1);
    for n in 2..6 {
        deployed(&admin, &Version::of(n));
    }
    host.stop(secs(30));
    let versions = format!("{}-versions", app.id);
    let (_, end) = kafka::ends(&versions, 0);
    // the last record, and its transaction's marker
    kafka::truncate_compacted(&versions, &[end - 2]);
    app.produce("in", &one_each(3));
    app.finish(1);
    assert_eq!(maker(app.read("out").last().unwrap()), 5);
    let (mut host, admin) = ready(&app, 1);
    assert_eq!(history(&admin).len(), 5);
    host.stop(secs(30));
}
