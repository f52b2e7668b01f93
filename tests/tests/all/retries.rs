//! Backing off: beside the group, over crashes and over hosts. Attempts go on where they were, and so does the time that is waited.

use super::{BOTH, Topics, see};
use pelton_tests::app::Draft;
use pelton_tests::host::{ABORTED, Exit, Host};
use pelton_tests::load::Feed;
use pelton_tests::wait::{self, secs, wall_ms};
use pelton_tests::{App, Letter, Log, Processor, Rec, Rng, account, kafka};
use std::thread::sleep;

/// More than any test lasts, and the longest that a plugin may ask for.
const AN_HOUR: &str = "3600000";

/// The wait alone is as long as `max.poll.interval.ms`, and the work comes on top.
#[test]
fn b53_backoff_and_work_longer_than_the_poll_limit() {
    let app = application(Log::Kafka, "b53", 4, 3)
        .property("max.poll.interval.ms", "8000")
        .set("session_timeout", "4s")
        .ready();
    let feed = Feed::of(app.topic("in"), 100, on_the_other_three);
    let mut hosts = [app.host(1).start(), app.host(2).start()];
    let (group, topic) = (app.group("careless"), app.topic("in"));
    wait::until("both hosts have partitions", secs(60), || (kafka::holders(&group, &topic) == 2).then_some(()));
    let generations = kafka::generations(&group);
    assert!(generations > 0, "the broker's record of the group is read");
    app.produce("in", &[Rec::new("slow", "slow 1000 8000").at(0), Rec::new("slow", "ok behind").at(0)]);
    let mut rounds = 0;
    while kafka::total(&app.topic("dead")) == 0 {
        grows(&app, 200);
        rounds += 1;
    }
    assert!(rounds >= 3, "the other partitions flow meanwhile: {rounds}");
    let produced = feed.stop().len() + 2;
    see(&app, "out", produced - 1, secs(60));
    assert_eq!(kafka::generations(&group), generations, "no rebalance");
    hosts.iter_mut().for_each(|host| host.stop(secs(30)));
    let lost = hosts.iter().find(|host| host.log().contains("partitions lost"));
    assert!(lost.is_none(), "a partition was lost");
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    gave_up(&topics.dead, 3, 8000);
}

#[test]
fn b53_backoff_longer_than_the_poll_limit_by_key() {
    let app = application(Log::Kafka, "b53-key", 2, 3)
        .property("max.poll.interval.ms", "4000")
        .set("session_timeout", "3s")
        .ready();
    app.set_processor(&["ordering"], "key");
    let feed = Feed::of(app.topic("in"), 100, |from, n| (from..from + n).map(|i| ok(i, 1)).collect());
    let mut host = app.host(1).start();
    grows(&app, 1);
    let group = app.group("careless");
    let generations = kafka::generations(&group);
    let slow: Vec<Rec> = (0..5).map(|i| Rec::new(format!("slow{i}"), format!("retry 5000 {i}")).at(0)).collect();
    app.produce("in", &slow);
    see(&app, "dead", slow.len(), secs(90));
    assert_eq!(kafka::generations(&group), generations, "no rebalance");
    feed.stop();
    host.stop(secs(30));
    gave_up(&app.read("dead"), 3, 5000);
    app.finish(1);
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
}

/// What was before the record is committed while it waits; the stop does not wait for it; the next start does not try it early.
#[test]
fn a_waiting_record_holds_only_what_is_behind_it() {
    let app = application(Log::Kafka, "waiting", 2, 3).ready();
    let mut input: Vec<Rec> = (0..10).map(|i| ok(i, 0)).collect();
    input.push(Rec::new("k", format!("retry {AN_HOUR}")).at(0));
    input.extend((10..15).map(|i| ok(i, 0)));
    app.produce("in", &input);
    let mut host = app.host(1).start();
    see(&app, "out", 10, secs(60));
    host.says("attempt 1 of", secs(60));
    remembered(&app, "n=1");
    assert_eq!(app.committed("careless")[0], Some(10));
    host.stop(secs(12));
    let mut host = app.host(1).start();
    app.produce("in", &[ok(15, 1)]);
    see(&app, "out", 11, secs(60)); // the neighbour has had its turn, and so has this partition
    assert_eq!(attempts(&[&host]), [] as [u32; 0], "an hour has not passed");
    host.stop(secs(12));
    let topics = Topics::of(&app);
    topics_of(&topics, 11, 0);
    assert_eq!(app.committed("careless")[0], Some(10));
}

/// Nothing stays behind beside the offset once the record is done.
#[test]
fn what_is_remembered_goes_with_the_record() {
    let app = application(Log::Kafka, "forgotten", 1, 5).ready();
    app.produce("in", &[Rec::new("k", "flaky 3 500").at(0)]);
    let mut host = app.host(1).start();
    remembered(&app, "n=2");
    see(&app, "out", 1, secs(60));
    wait::until("the offset is committed with nothing of the record beside it", secs(30), || {
        let beside = kafka::metadata(&app.group("careless"), &app.topic("in"));
        (app.committed("careless") == [Some(1)] && beside.iter().all(|text| !text.contains(";n="))).then_some(())
    });
    host.stop(secs(30));
}

#[test]
fn attempts_survive_kills_by_partition() {
    BOTH.into_iter().for_each(|log| attempts_survive_kills(log, "partition"));
}

#[test]
fn attempts_survive_kills_by_key() {
    BOTH.into_iter().for_each(|log| attempts_survive_kills(log, "key"));
}

#[test]
fn attempts_follow_the_partition_by_partition() {
    ["TERM", "KILL"].into_iter().for_each(|signal| attempts_follow_the_partition(signal, "partition"));
}

#[test]
fn attempts_follow_the_partition_by_key() {
    ["TERM", "KILL"].into_iter().for_each(|signal| attempts_follow_the_partition(signal, "key"));
}

/// Many records wait when the host dies: the next one tries them when they are due, not all at once, and goes on meanwhile.
#[test]
fn a_restart_is_no_storm_of_retries() {
    let app = application(Log::Kafka, "storm", 4, 3).ready();
    app.set_processor(&["ordering"], "key");
    let waiting: Vec<Rec> = (0..200).map(|i| Rec::new(format!("w{i}"), format!("retry 4000 {i}"))).collect();
    app.produce("in", &waiting);
    let mut host = app.host(1).start();
    wait::until("all are parked", secs(60), || {
        (app.committed("careless").into_iter().flatten().sum::<i64>() == waiting.len() as i64).then_some(())
    });
    host.kill();
    let fresh: Vec<Rec> = (0..50).map(|i| Rec::new(format!("k{i}"), format!("ok {i}"))).collect();
    app.produce("in", &fresh);
    app.finish(1);
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    assert_eq!(topics.dead.len(), waiting.len());
    gave_up(&topics.dead, 3, 4000);
}

/// Every call of the plugin kills the process. No record is met for ever, and none is given up before it has done so three times
/// alone.
#[test]
fn records_that_kill_the_host_are_given_up() {
    for log in BOTH {
        let app = application(log, "host-crash", 1, 3).set("session_timeout", "2s").ready();
        let input: Vec<Rec> = (0..3).map(|i| Rec::new("k", format!("ok {i}")).at(0)).collect();
        app.produce("in", &input);
        let mut crashes = 0;
        while !crashed_run(&app) {
            crashes += 1;
            assert!(crashes <= 15, "{log:?}: a crash loop");
        }
        // three times alone each; before that each may have been in a batch that crashed, which proves nothing
        assert!((9..=12).contains(&crashes), "{log:?}: {crashes} crashes");
        let dead = app.read("dead");
        assert_eq!(dead.len(), 3, "{log:?}");
        let offsets: Vec<i64> = dead.iter().map(|record| Letter::of(record).offset).collect();
        assert_eq!(offsets, [0, 1, 2], "{log:?}");
        for letter in Letter::all(&dead) {
            assert_eq!((&letter.verdict[..], &letter.code[..]), ("host-crash", "host-crash"), "{log:?}");
        }
        assert!(app.read("out").is_empty(), "{log:?}");
    }
}

/// Two crashes alone, and then it works: the record is innocent, and the count is forgotten.
#[test]
fn a_record_that_was_there_at_two_crashes_is_not_blamed() {
    for log in BOTH {
        let app = application(log, "innocent", 1, 3).set("session_timeout", "2s").ready();
        let mut produced = 0;
        for _ in 0..2 {
            app.produce("in", &[ok(produced, 0), ok(produced + 1, 0)]);
            produced += 2;
            for _ in 0..3 {
                assert!(!crashed_run(&app), "{log:?}: it dies in every call");
            }
            app.finish(1);
            topics_of(&Topics::of(&app), produced, 0);
        }
    }
}

fn attempts_survive_kills(log: Log, ordering: &str) {
    let app = application(log, "survive", 1, 4).set("session_timeout", "2s").ready();
    app.set_processor(&["ordering"], ordering);
    app.produce("in", &[Rec::new("k", "retry 3000 #0").at(0), Rec::new("k", "ok #1").at(0)]);
    let (mut rng, mut runs, start) = (Rng::seeded("survive"), Vec::new(), wall_ms());
    for attempt in 1..4 {
        let mut host = app.host(1).start();
        host.says(&format!("attempt {attempt} of"), secs(60));
        sleep(rng.millis(0, 400));
        host.kill();
        runs.push((host, wall_ms()));
    }
    let mut last = app.host(1).arg("--until-idle").start();
    assert_eq!(last.wait(secs(60)), Exit::Code(0), "{log:?}: {}", last.log());
    let second_kill = runs[1].1;
    let mut hosts: Vec<&Host> = runs.iter().map(|(host, _)| host).collect();
    hosts.push(&last);
    go_on(&attempts(&hosts), 4);
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    gave_up(&topics.dead, 4, 3000);
    let first = Letter::of(&topics.dead[0]).first;
    // the first kill may have undone the first attempt; the second run has seen that it is remembered
    assert!((start..=second_kill).contains(&first), "{log:?}, {ordering}: the first failure is remembered");
}

fn attempts_follow_the_partition(signal: &str, ordering: &str) {
    let app = application(Log::Kafka, "follow", 1, 3).set("session_timeout", "2s").ready();
    app.set_processor(&["ordering"], ordering);
    app.produce("in", &[Rec::new("k", "retry 4000 #0").at(0), Rec::new("k", "ok #1").at(0)]);
    let mut old = app.host(1).start();
    old.says("attempt 1 of", secs(60));
    match ordering {
        "key" => wait::until("both are parked", secs(30), || (app.committed("careless") == [Some(2)]).then_some(())),
        _ => remembered(&app, "n=1"),
    }
    let mut new = app.host(2).start();
    old.signal(signal);
    old.wait(secs(30));
    let handed_over = wall_ms();
    see(&app, "dead", 1, secs(90));
    see(&app, "out", 1, secs(60));
    new.stop(secs(30));
    go_on(&attempts(&[&old, &new]), 3);
    let topics = Topics::of(&app);
    account::tallies(&topics.input, &topics.output, &topics.dead);
    gave_up(&topics.dead, 3, 4000);
    assert!(Letter::of(&topics.dead[0]).first <= handed_over, "{signal}, {ordering}: the first failure is remembered");
}

/// One run in which every call of the plugin kills. Whether it got to the end.
fn crashed_run(app: &App) -> bool {
    let mut host = app.host(1).arg("--until-idle").failpoints("plugin-call=return").start();
    let exit = host.wait(secs(60));
    assert!(exit == ABORTED || exit == Exit::Code(0), "{exit:?}: {}", host.log());
    exit != ABORTED
}

/// Attempts are those of one record, over hosts: none is left out, none but the one that a kill may undo is repeated.
fn go_on(attempts: &[u32], calls: u32) {
    assert_eq!((attempts.first(), attempts.last()), (Some(&1), Some(&calls)), "{attempts:?}");
    let steps = attempts.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1);
    assert!(steps, "attempts start over or jump: {attempts:?}");
}

/// Which attempts the plugin has seen, in order.
fn attempts(hosts: &[&Host]) -> Vec<u32> {
    let number = |line: &str| line.split_once("attempt ")?.1.split_once(" of ")?.0.parse().ok();
    hosts.iter().flat_map(|host| host.log().lines().filter_map(number).collect::<Vec<_>>()).collect()
}

/// Each letter is of a record that was tried so often, with so many milliseconds between two attempts.
fn gave_up(dead: &[Rec], attempts: u32, wait_ms: i64) {
    assert!(!dead.is_empty(), "no record was given up");
    for letter in Letter::all(dead) {
        assert_eq!((&letter.verdict[..], letter.attempts), ("exhausted", attempts), "{letter:?}");
        let least = wait_ms * i64::from(attempts - 1);
        assert!(letter.last - letter.first >= least - 50, "tried too early: {letter:?}");
    }
}

/// Waits until the group has this beside an offset of partition 0.
fn remembered(app: &App, what: &str) {
    wait::until(&format!("{what} is remembered"), secs(60), || {
        kafka::metadata(&app.group("careless"), &app.topic("in"))[0].contains(what).then_some(())
    });
}

fn topics_of(topics: &Topics, outputs: usize, letters: usize) {
    assert_eq!((topics.output.len(), topics.dead.len()), (outputs, letters), "outputs and dead letters");
}

fn application(log: Log, name: &str, partitions: i32, attempts: i64) -> Draft {
    let processor = Processor::new("careless")
        .input("in", "in")
        .output("out", "out")
        .dead_letters("dead")
        .section("retry", "max_attempts", attempts)
        .limit("record_deadline", if name == "b53" { "3900ms" } else { "1s" });
    App::draft(log, name).topic("in", partitions).topic("out", partitions).topic("dead", 1).processor(processor)
}

fn ok(number: usize, partition: i32) -> Rec {
    Rec::new(format!("k{}", number % 5), format!("ok {number}")).at(partition)
}

/// Records that work, on partitions 1 to 3.
fn on_the_other_three(from: usize, n: usize) -> Vec<Rec> {
    (from..from + n)
        .map(|i| ok(i, 1 + (i % 3) as i32))
        .map(|r| Rec { key: Some(format!("p{}", r.partition).into()), ..r })
        .collect()
}

fn grows(app: &App, by: i64) {
    let goal = kafka::total(&app.topic("out")) + by;
    wait::until("the output grows", secs(60), || (kafka::total(&app.topic("out")) >= goal).then_some(()));
}
