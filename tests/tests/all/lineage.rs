//! Offsets, state and the topics that they belong to: what was deleted, made again or renamed is told, and nothing is begun anew in silence.

use pelton_tests::app::{cli, plugin};
use pelton_tests::host::{Exit, Host};
use pelton_tests::load::one_each;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, kafka};

const REFUSED: Exit = Exit::Code(3);
const FAILED: Exit = Exit::Code(1);

fn numbered(from: usize, n: usize) -> Vec<Rec> {
    (from..from + n).map(|i| Rec::new(format!("k{i}"), format!("v{i}"))).collect()
}

/// A job over two partitions that has had ten records, and has ended.
fn worked_off(log: Log, name: &str) -> App {
    let app = App::counting(log, name, 2).ready();
    app.produce("in", &one_each(10));
    app.finish(1);
    app
}

/// A host that has worked off the twenty records of its one partition, and waits.
fn at_work(name: &str) -> (App, Host) {
    let app = App::counting(Log::Kafka, name, 1).ready();
    app.produce("in", &numbered(0, 20));
    let host = app.host(1).start();
    wait::until("the first records are done", secs(60), || (app.committed("count") == [Some(20)]).then_some(()));
    (app, host)
}

/// The new topic has more records than the old one: an offset of the old one lies within it.
#[test]
fn an_input_made_again_under_a_running_host_is_not_read_on() {
    let (app, mut host) = at_work("again");
    kafka::delete_topic(&app.topic("in"));
    kafka::create_topic(&app.topic("in"), 1, &[]);
    app.produce("in", &numbered(20, 100));
    assert_eq!(host.wait(secs(60)), FAILED, "{}", host.log());
    assert!(host.log().contains("topic-recreated"), "{}", host.log());
    assert_eq!(app.read("out").len(), 20, "nothing of the new topic is committed");
    app.finish(1);
    let out = app.read("out");
    let all = (0..120).all(|i| out.iter().any(|r| r.key_text() == format!("k{i}")));
    assert!(all && out.len() == 120, "the new topic is read from its start: {} outputs", out.len());
}

#[test]
fn an_input_that_is_deleted_ends_an_idle_host() {
    let (app, mut host) = at_work("deleted");
    kafka::delete_topic(&app.topic("in"));
    assert_eq!(host.wait(secs(60)), FAILED, "{}", host.log());
    assert!(host.log().contains("topic-deleted") && host.log().contains(&app.topic("in")), "{}", host.log());
}

/// Local state is gone too, so that only the group knows that there was some.
#[test]
fn a_store_without_its_changelog_is_not_begun_anew_in_silence() {
    let app = worked_off(Log::Kafka, "missing");
    kafka::delete_topic(&app.changelog("count", "counts"));
    app.wipe(1);
    app.produce("in", &one_each(10));
    refused(&app, "is gone", &app.changelog("count", "counts"));
    allowed(&app, "count/counts", "1");
}

/// The changelog is there, but made anew by somebody else.
#[test]
fn a_store_with_another_changelog_is_not_begun_anew_in_silence() {
    let app = worked_off(Log::Kafka, "other");
    let changelog = app.changelog("count", "counts");
    kafka::delete_topic(&changelog);
    kafka::create_topic(&changelog, 2, &[("cleanup.policy", "compact")]);
    app.wipe(1);
    app.produce("in", &one_each(10));
    refused(&app, "deleted and created again", &changelog);
    allowed(&app, "count/counts", "1");
}

/// Another plugin under the name of a processor has other stores.
#[test]
fn a_store_that_was_not_there_before_is_not_begun_in_silence() {
    for log in super::BOTH {
        let app = worked_off(log, "renamed");
        app.set_processor(&["plugin"], plugin("order-counts.wasm").to_str().unwrap());
        app.set_processor(
            &["inputs"],
            [("orders".to_owned(), app.topic("in").into())].into_iter().collect::<toml::Table>(),
        );
        app.set_processor(
            &["outputs"],
            [("counts".to_owned(), app.topic("out").into())].into_iter().collect::<toml::Table>(),
        );
        refused(&app, "was not there before", "totals");
    }
}

/// A plugin without the store worked off what the store should have seen.
#[test]
fn a_store_that_comes_back_is_not_gone_on_with_in_silence() {
    for log in super::BOTH {
        let app = worked_off(log, "back");
        let counting = std::fs::read_to_string(app.file()).unwrap();
        app.set_processor(&["plugin"], plugin("echo.wasm").to_str().unwrap());
        app.produce("in", &one_each(10));
        app.finish(1);
        std::fs::write(app.file(), counting).unwrap();
        refused(&app, "is stale", "counts");
    }
}

#[test]
fn parked_records_are_not_forgotten_with_their_park() {
    let processor = Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead");
    let slow = processor.put("ordering", "key").section("retry", "first_delay", "60s");
    let slow = slow.section("retry", "max_delay", "60s");
    let draft =
        ["in", "out", "dead"].iter().fold(App::draft(Log::Kafka, "park-gone"), |draft, topic| draft.topic(topic, 1));
    let app = draft.processor(slow).ready();
    app.produce("in", &(0..3).map(|i| Rec::new(format!("k{i}"), format!("retry 60000 {i}"))).collect::<Vec<_>>());
    let mut host = app.host(1).start();
    wait::until("all are parked", secs(60), || (app.committed("bad") == [Some(3)]).then_some(()));
    host.stop(secs(30));
    kafka::delete_topic(&app.parked("bad"));
    app.set_processor(&["ordering"], "partition");
    refused(&app, "3 records are parked", "pelton-parked");
    app.set_processor(&["ordering"], "key");
    refused(&app, "is gone", &app.parked("bad"));
}

/// The store is in the state folder still, of the changelog that is gone: one word is enough to begin anew.
#[test]
fn a_new_store_is_begun_where_the_old_one_lies_too() {
    let app = worked_off(Log::Kafka, "anew");
    kafka::delete_topic(&app.changelog("count", "counts"));
    app.produce("in", &one_each(10));
    allowed(&app, "count/counts", "1");
}

/// `check` and `run` refuse, twice, and make nothing.
fn refused(app: &App, says: &str, names: &str) {
    let (file, state) = (app.file(), app.state_dir(1));
    let before = (app.log == Log::Kafka).then(kafka::topics);
    for verb in ["check", "run", "check", "run"] {
        let (exit, log) = cli(&[verb, file.to_str().unwrap(), "--state-dir", state.to_str().unwrap()], secs(60));
        assert_eq!(exit, REFUSED, "{verb}: {log}");
        assert!(log.contains(says) && log.contains(names) && log.contains("--new-store"), "{verb}: {log}");
    }
    let of_ours = |all: Vec<String>| {
        let mut all: Vec<_> = all.into_iter().filter(|name| name.starts_with(&app.id)).collect();
        all.sort();
        all
    };
    assert_eq!(before.map(of_ours), (app.log == Log::Kafka).then(kafka::topics).map(of_ours), "no topic is made");
}

/// With the name said once, it runs; and from then on without.
fn allowed(app: &App, store: &str, first: &str) {
    let before = app.read("out").len();
    let mut host = app.host(1).arg("--until-idle").arg("--new-store").arg(store).start();
    assert_eq!(host.wait(secs(60)), Exit::Code(0), "{}", host.log());
    let out = app.read("out");
    assert_eq!(out.len(), before + 10);
    let fresh = out.iter().filter(|r| r.value_text() == first).count();
    assert_eq!(fresh, 20, "the store began empty");
    app.finish(1);
}
