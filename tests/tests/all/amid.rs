//! Versions that take over amid other things: a retry, a restore, a rebalance, another deploy.

use super::swaps::{app, deploy, deployed, drawn, history, outputs, ready, sequence, start, try_deploy};
use pelton_tests::admin::Admin;
use pelton_tests::app::Log;
use pelton_tests::load::{Feed, one_each, records};
use pelton_tests::versions::{Version, maker, stretches};
use pelton_tests::wait::secs;
use pelton_tests::{Rec, Rng, oracle};

/// A record that waits for its retry is done by the version that can do it.
#[test]
fn a_version_takes_over_while_a_record_waits() {
    let app = drawn(Log::Kafka, "waiting", 1, |processor| {
        processor.section("retry", "first_delay", "2s").section("retry", "max_delay", "2s")
    });
    app.produce("in", &one_each(3));
    let (mut host, admin) = ready(&app, 1);
    outputs(&app, 3);
    deployed(&admin, &Version { deed: "later", ..Version::of(2) });
    app.produce("in", &[Rec::new("k0", "odd"), Rec::new("k0", "even")]);
    admin.until("the record waits", secs(30), |status| status["processors"][0]["tasks"][0]["state"] == "backing-off");
    deployed(&admin, &Version::of(3));
    let out = outputs(&app, 5);
    let last: Vec<_> = out[3..].iter().map(|output| (output.value_text(), maker(output))).collect();
    assert_eq!(last, [("2".into(), 3), ("3".into(), 3)]);
    assert!(app.read("dead").is_empty());
    host.stop(secs(30));
}

/// A host that dies in the middle of a deploy has deployed or has not, and either is whole.
#[test]
fn a_deploy_that_is_cut_short_is_done_or_not() {
    for log in super::BOTH {
        for (point, active) in [("deploy-before-commit", 1), ("deploy-after-commit", 2)] {
            let app = app(log, "cut", 1);
            app.produce("in", &one_each(3));
            // the first version is written down
            app.finish(1);
            let mut host = app.host(1).failpoints(&format!("{point}=return")).start();
            let admin = Admin::of(&app, 1, host.pid());
            admin.ready();
            assert!(try_deploy(&admin, &Version::of(2)).is_none(), "{point}: it dies before it answers");
            host.wait(secs(30));
            app.produce("in", &one_each(3));
            app.finish(1);
            let out = app.read("out");
            oracle::counts(&[one_each(3), one_each(3)].concat(), &out);
            let makers: Vec<u32> = out[3..].iter().map(maker).collect();
            assert_eq!(makers, [active; 3], "{point}");
        }
    }
}

#[test]
fn a_version_takes_over_while_stores_are_restored() {
    let app = app(Log::Kafka, "restoring", 2);
    let input = records(&mut Rng::seeded("restoring"), 50_000, 0, 100_000);
    app.produce("in", &input);
    app.finish(1);
    app.wipe(1);
    let (mut host, admin) = start(&app, 1);
    admin.until("a task restores", secs(60), |status| {
        status["processors"][0]["tasks"].as_array().unwrap().iter().any(|task| task["state"] == "restoring")
    });
    deployed(&admin, &Version::of(2));
    app.produce("in", &one_each(50));
    let out = outputs(&app, input.len() + 50);
    oracle::counts(&[input, one_each(50)].concat(), &out);
    assert!(out.iter().filter(|output| maker(output) == 2).count() == 50, "what came later, by the later version");
    host.stop(secs(30));
}

/// Partitions move from host to host while versions change.
#[test]
fn versions_take_over_while_partitions_are_revoked() {
    let app = app(Log::Kafka, "revoked", 8);
    let feed = Feed::start(app.topic("in"), Rng::seeded("revoked"), 200, 1000);
    let (mut first, admin) = ready(&app, 1);
    for n in 2..2 + super::repeats(6, 30) as u32 {
        let (mut second, _) = start(&app, 2);
        deployed(&admin, &Version::of(n));
        second.says("partitions assigned", secs(60));
        second.stop(secs(60));
    }
    let input = feed.stop();
    let out = outputs(&app, input.len());
    oracle::counts(&input, &out);
    first.stop(secs(30));
    for partition in 0..8 {
        let seen = stretches(&out, partition);
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "partition {partition}: {seen:?}");
    }
}

/// Of two deploys at once each is done or refused, and all hosts end on one version.
#[test]
fn two_deploys_at_once_end_on_one_version() {
    let app = app(Log::Kafka, "at-once", 4);
    app.produce("in", &one_each(20));
    let (mut first, admin) = ready(&app, 1);
    let (mut second, other) = ready(&app, 2);
    let mut done = 0;
    for round in 0..super::repeats(5, 25) as u32 {
        let (one, two) = (Version::of(2 + 2 * round), Version::of(3 + 2 * round));
        let results = std::thread::scope(|scope| {
            let one = scope.spawn(|| deploy(&admin, &one, ""));
            let two = scope.spawn(|| deploy(&other, &two, ""));
            [one.join().unwrap(), two.join().unwrap()]
        });
        for (status, body) in results {
            assert!(status == 200 || body["code"] == "deploy-overtaken", "{status} {body}");
            done += i64::from(status == 200);
        }
    }
    assert!(done > 0);
    for host in [&admin, &other] {
        host.until("it has the last version", secs(30), |status| {
            status["processors"][0]["version"]["sequence"] == 1 + done
        });
    }
    assert_eq!((sequence(&admin), history(&admin)), (sequence(&other), history(&other)));
    first.stop(secs(30));
    second.stop(secs(30));
    oracle::counts(&one_each(20), &app.read("out"));
}
