//! The crash table: the process is killed at each named point, started again undisturbed, and must end as if nothing had happened.
//! Output, dead letters, changelog and stores are compared with those of a run that was left alone.

use pelton_tests::app::IDLE;
use pelton_tests::host::ABORTED;
use pelton_tests::load::{Feed, records};
use pelton_tests::store::{self, Dump};
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Rec, Rng, oracle};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const PARTITIONS: i32 = 4;
const KEYS: u64 = 40;

/// All that a job leaves behind.
struct Outcome {
    out: Vec<Rec>,
    dead: Vec<Rec>,
    changelog: BTreeMap<(i32, Option<Vec<u8>>), Vec<u8>>,
    stores: Dump,
}

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
}

#[test]
fn in_the_middle_of_a_restore_embedded() {
    killed_while_restoring(Log::Embedded);
}

#[test]
fn in_the_middle_of_a_restore_kafka() {
    killed_while_restoring(Log::Kafka);
}

/// The old owner dies inside the revocation that the new one caused, with work in flight.
#[test]
fn revoked_in_the_middle_of_a_batch() {
    let app = App::counting(Log::Kafka, "crash-revoked", PARTITIONS).set("session_timeout", "2s").ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("crash-revoked"), KEYS, 1000);
    let mut old = app.host(1).failpoints("revoked-in-batch=return").start();
    super::see(&app, "out", 100, secs(60));
    let mut new = app.host(2).start();
    assert_eq!(old.wait(secs(60)), ABORTED, "{}", old.log());
    let input = feed.stop();
    super::see(&app, "out", input.len(), secs(60));
    new.stop(secs(30));
    oracle::counts(&input, &app.read("out"));
    oracle::no_host_crash(&app.read("dead"));
}

#[test]
fn leaving_in_the_middle_of_a_batch_embedded() {
    let (app, input) = job(Log::Embedded, "crash-leave");
    let mut host = app.host(1).arg("--until-idle").failpoints("revoked-in-batch=return").start();
    assert_eq!(host.wait(IDLE), ABORTED, "{}", host.log());
    app.finish(1);
    judge(&app, &input);
}

fn killed_at(log: Log, point: &str) {
    let (app, input) = job(log, &format!("crash-{}", &point["commit-".len()..]));
    let mut host = app.host(1).arg("--until-idle").failpoints(&format!("{point}=3*off->return")).start();
    assert_eq!(host.wait(IDLE), ABORTED, "the fourth pass of {point} kills: {}", host.log());
    app.finish(1);
    judge(&app, &input);
}

fn killed_while_restoring(log: Log) {
    let (app, input) = job(log, "crash-restore");
    app.finish(1);
    app.wipe(1);
    let mut host = app.host(1).failpoints("restore-batch=1*off->return").start();
    assert_eq!(host.wait(IDLE), ABORTED, "{}", host.log());
    app.settle(1);
    judge(&app, &input);
}

/// Small batches and short intervals, so that there are many commits to be killed in.
fn job(log: Log, name: &str) -> (App, Vec<Rec>) {
    let input = input();
    let app = App::draft(log, name)
        .topic("in", PARTITIONS)
        .topic("out", PARTITIONS)
        .topic("dead", 1)
        .processor(
            pelton_tests::Processor::new("count")
                .input("in", "in")
                .output("out", "out")
                .dead_letters("dead")
                .limit("batch_records", 25),
        )
        .set("commit_interval", "1ms")
        .set("workers", 1)
        .ready();
    app.produce("in", &input);
    (app, input)
}

/// The same for every job: counted records, and some with a null key, which end as dead letters.
fn input() -> Vec<Rec> {
    let mut input = records(&mut Rng::new(7), KEYS, 0, 6000);
    for (i, record) in input.iter_mut().enumerate().filter(|(i, _)| i % 500 == 250) {
        *record = Rec { key: None, ..record.clone() }.at(i as i32 % PARTITIONS);
    }
    input
}

fn judge(app: &App, input: &[Rec]) {
    let found = outcome(app);
    let expected = undisturbed(app.log);
    let counted: Vec<Rec> = input.iter().filter(|r| r.key.is_some()).cloned().collect();
    oracle::counts(&counted, &found.out);
    oracle::no_host_crash(&found.dead);
    oracle::same("output", &expected.out, &found.out);
    oracle::same("dead letters", &sorted(&expected.dead), &sorted(&found.dead));
    assert!(expected.changelog == found.changelog, "the changelogs differ");
    assert!(expected.stores == found.stores, "the stores differ");
}

/// What a run leaves that nobody disturbs; once for each log.
fn undisturbed(log: Log) -> &'static Outcome {
    static RUNS: [OnceLock<Outcome>; 2] = [OnceLock::new(), OnceLock::new()];
    RUNS[log as usize].get_or_init(|| {
        let (app, _) = job(log, "crash-undisturbed");
        app.finish(1);
        let outcome = outcome(&app);
        assert!(
            !outcome.dead.is_empty() && store::entries(&outcome.stores) as u64 == KEYS,
            "a run that proves something"
        );
        outcome
    })
}

fn outcome(app: &App) -> Outcome {
    let dead = app.read_settled("dead");
    let changelog = oracle::view(&app.read_named(&app.changelog("count", "counts")));
    Outcome { out: app.read("out"), dead, changelog, stores: store::dump(&app.state_dir(1)) }
}

/// Dead letters of several partitions meet in one; their order among each other is free.
fn sorted(records: &[Rec]) -> Vec<Rec> {
    let mut sorted = records.to_vec();
    sorted.sort_by(|a, b| a.value.cmp(&b.value));
    sorted
}
