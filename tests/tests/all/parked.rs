//! `ordering = "key"` under kills and rebalances: what is parked is state like any other, exactly once and in order.

use super::{Topics, repeats};
use pelton_tests::app::{Draft, IDLE};
use pelton_tests::host::{ABORTED, Host};
use pelton_tests::load::Feed;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, Rng, account, hostile, kafka, oracle, store};
use std::thread::sleep;

const PARTITIONS: i32 = 4;
const KEYS: u64 = 100;

macro_rules! killed_at {
    ($($name:ident = $point:literal),* $(,)?) => { $(
        mod $name {
            use pelton_tests::Log;

            #[test]
            fn embedded() {
                super::killed_at(Log::Embedded, $point);
            }

            #[test]
            fn kafka() {
                super::killed_at(Log::Kafka, $point);
            }
        }
    )* };
}

killed_at! {
    before_produce = "commit-before-produce",
    after_changelog = "commit-after-changelog",
    after_flush = "commit-after-flush",
    after_offsets = "commit-after-offsets",
    after_transaction = "commit-after-transaction",
    after_store = "commit-after-store",
    in_a_call = "plugin-call",
}

/// Two hosts, killed, stopped and started at random.
#[test]
fn random_kills_and_rebalances() {
    let app = application(Log::Kafka, "parked-kills", PARTITIONS)
        .set("session_timeout", "2s")
        .set("commit_interval", "50ms")
        .ready();
    let mut rng = Rng::seeded("parked-kills");
    let mut of_feed = rng.clone();
    let feed = Feed::of(app.topic("in"), 300, move |from, n| {
        (from..from + n).map(|i| record(i, KEYS, &mut of_feed)).collect()
    });
    let mut hosts: [Option<Host>; 2] = [None, None];
    for _ in 0..repeats(24, 240) {
        let at = rng.below(2) as usize;
        hosts[at] = turn(&app, at as u32 + 1, hosts[at].take(), &mut rng);
        if hosts.iter().any(Option::is_some) && rng.below(4) > 0 {
            let goal = kafka::total(&app.topic("out")) + 20;
            wait::until("a host works", secs(60), || (kafka::total(&app.topic("out")) > goal).then_some(()));
        }
        sleep(rng.millis(0, 300));
    }
    feed.stop();
    hosts.iter_mut().flatten().for_each(Host::kill);
    app.finish(1);
    judge(&app);
}

/// A host that does not run is started; one that runs is killed, or in one case of three stopped.
fn turn(app: &App, number: u32, host: Option<Host>, rng: &mut Rng) -> Option<Host> {
    match host {
        None => return Some(app.host(number).start()),
        Some(mut host) => {
            host.assert_running();
            match rng.below(3) {
                0 => host.stop(secs(40)),
                _ => host.kill(),
            }
        }
    }
    None
}

/// The parked records of one host are on the other, whose state folder has never seen them.
#[test]
fn parked_records_are_restored_from_their_changelog() {
    for log in super::BOTH {
        let app = application(log, "parked-restore", 2).ready();
        let waiting = |i: usize| Rec::new(format!("k{i}"), format!("flaky 2 4000 #{i}"));
        app.produce("in", &(0..50).map(waiting).collect::<Vec<_>>());
        let mut host = app.host(1).start();
        match log {
            Log::Kafka => wait::until("all are parked", secs(60), || {
                (app.committed("careless").into_iter().flatten().sum::<i64>() == 50).then_some(())
            }),
            Log::Embedded => host.says("attempt 1 of", secs(60)),
        }
        host.kill();
        app.wipe(1);
        app.produce("in", &(0..50).map(|i| Rec::new(format!("k{i}"), format!("ok #{}", 50 + i))).collect::<Vec<_>>());
        app.finish(1);
        judge(&app);
    }
}

/// Dies in a commit that has something to park, release or retry; then ends as if nothing had happened.
fn killed_at(log: Log, point: &str) {
    let app = application(log, &format!("parked-{point}"), 2).set("commit_interval", "1ms").set("workers", 1).ready();
    app.set_processor(&["limits", "batch_records"], 10);
    app.produce("in", &(0..600).map(|i| record(i, 30, &mut Rng::new(i as u64))).collect::<Vec<_>>());
    for passes in [3, 20] {
        let mut host = app.host(1).arg("--until-idle").failpoints(&format!("{point}={passes}*off->return")).start();
        assert_eq!(host.wait(IDLE), ABORTED, "pass {passes} of {point} kills: {}", host.log());
    }
    app.finish(1);
    judge(&app);
}

/// In one of ten: retries that work in the end, that do not, and failures of other kinds.
fn record(number: usize, keys: u64, rng: &mut Rng) -> Rec {
    let verb = match rng.below(100) {
        0..5 => "flaky 3 100",
        5..7 => "flaky 2 400",
        7 => "retry 60",
        8 => "reject",
        9 => "trap",
        _ => "ok",
    };
    Rec::new(format!("k{}", rng.below(keys)), format!("{verb} #{number:06}"))
}

fn judge(app: &App) {
    let topics = Topics::of(app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    let verb = |record: &Rec| record.value_text().split(' ').next().unwrap_or_default().to_owned();
    let wrong = topics.dead.iter().find(|dead| !["retry", "reject", "trap"].contains(&&*verb(dead)));
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(
        oracle::view(&app.read_named(&app.parked("careless"))).is_empty(),
        "the park's changelog says that it is empty"
    );
    let dump = store::dump(&app.state_dir(1));
    let park: Vec<usize> =
        dump.iter().filter(|((_, name), _)| name == "store-pelton-parked").map(|(_, all)| all.len()).collect();
    assert!(!park.is_empty() && park.iter().all(|&n| n == 0), "the park is there and empty: {park:?}");
}

fn application(log: Log, name: &str, partitions: i32) -> Draft {
    let processor =
        Processor::new("careless").input("in", "in").output("out", "out").dead_letters("dead").put("ordering", "key");
    let topics = [("in", partitions), ("out", partitions), ("dead", 1)];
    let draft = topics.iter().fold(App::draft(log, name), |draft, (topic, partitions)| draft.topic(topic, *partitions));
    draft.processor(hostile::quick_retries(processor))
}
