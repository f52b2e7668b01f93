//! What a host says of itself over its admin surface while something is wrong: health, readiness, status and lag tell the truth.

use super::{BOTH, see};
use pelton_tests::admin::Admin;
use pelton_tests::app::Draft;
use pelton_tests::host::{Exit, Host};
use pelton_tests::load::{Feed, one_each, records};
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, Rng, broker, kafka};
use serde_json::Value;

const KEYS: u64 = 30;

/// Host `n`, started, and where it can be asked.
fn start(app: &App, n: u32) -> (Host, Admin) {
    let host = app.host(n).start();
    let admin = Admin::of(app, n, host.pid());
    (host, admin)
}

fn processor<'a>(status: &'a Value, name: &str) -> &'a Value {
    let all = status["processors"].as_array().expect("processors");
    all.iter().find(|processor| processor["name"] == name).expect("the processor")
}

/// The states of a processor's tasks, by partition.
fn states<'a>(status: &'a Value, name: &str) -> Vec<&'a str> {
    let tasks = processor(status, name)["tasks"].as_array().expect("tasks");
    tasks.iter().filter_map(|task| task["state"].as_str()).collect()
}

fn careless(log: Log, name: &str) -> Draft {
    let processor = Processor::new("careless")
        .input("in", "in")
        .output("out", "out")
        .dead_letters("dead")
        .section("retry", "max_attempts", 1000)
        .section("retry", "max_delay", "200ms");
    App::draft(log, name).topic("in", 2).topic("out", 2).topic("dead", 1).processor(processor)
}

#[test]
fn a_host_that_has_worked_everything_off() {
    for log in BOTH {
        let app = App::counting(log, "status", 4).ready();
        let input = records(&mut Rng::seeded("status"), KEYS, 0, 2000);
        app.produce("in", &input);
        let (mut host, admin) = start(&app, 1);
        let status = admin.until("everything is worked off", secs(60), |status| {
            status["ready"] == true && processor(status, "count")["lag"] == 0
        });
        assert_eq!(status["log"], if log == Log::Kafka { "kafka" } else { "local" });
        assert_eq!((&status["pid"], &status["reasons"]), (&host.pid().into(), &Value::Array(vec![])));
        assert_eq!(states(&status, "count"), ["running"; 4]);
        let count = processor(&status, "count");
        assert_eq!(count["lags"].as_array().map(Vec::len), Some(4));
        assert_eq!((&count["version"]["plugin"], &count["failures"]), (&"count".into(), &Value::Array(vec![])));
        assert_eq!(admin.health(), (true, true, vec![]));
        host.stop(secs(30));
    }
}

/// A host that was killed has left offsets at which there are no records: they are no lag, and what is behind them is.
#[test]
fn markers_and_aborted_records_of_a_host_that_is_down_are_no_lag() {
    let app = App::counting(Log::Kafka, "lag-down", 2).set("session_timeout", "90s").ready();
    app.produce("in", &one_each(KEYS));
    let (mut gone, _) = start(&app, 1);
    let (mut host, admin) = start(&app, 2);
    let (group, topic) = (app.group("count"), app.topic("in"));
    wait::until("both hosts have a partition", secs(60), || (kafka::holders(&group, &topic) == 2).then_some(()));
    admin.until("everything is worked off", secs(60), |status| processor(status, "count")["lag"] == 0);
    gone.kill();
    for partition in [0, 1] {
        let unseen: Vec<Rec> = (0..20).map(|i| Rec::new(format!("k{i}"), "never").at(partition)).collect();
        kafka::produce_aborted(&topic, &unseen);
    }
    let is_behind = |lag: &Value| lag["end"].as_i64() > lag["committed"].as_i64();
    let status = admin.until("it is seen that there is nothing", secs(60), |status| {
        let count = processor(status, "count");
        count["lag"] == 0 && count["lags"].as_array().is_some_and(|lags| lags.iter().any(is_behind))
    });
    let lags = processor(&status, "count")["lags"].as_array().unwrap();
    let left = lags.iter().find(|lag| is_behind(lag)).expect("that of the host that is gone");
    assert_eq!(left["lag"], 0);
    let partition = left["partition"].as_i64().and_then(|n| i32::try_from(n).ok()).expect("a number");
    app.produce("in", &[Rec::new("k", "v").at(partition), Rec::new("k", "v").at(partition)]);
    admin.until("what is there is counted, and no more", secs(60), |status| processor(status, "count")["lag"] == 2);
    host.stop(secs(30));
}

/// Nobody answers at the start, and later again: never ready, live all the while, and asked for its status it answers in time.
#[test]
fn the_broker_is_away_at_the_start_and_later() {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = App::counting(Log::Kafka, "away", 2).brokers(&proxy.address()).ready();
    app.produce("in", &one_each(KEYS));
    proxy.cut();
    let (mut host, admin) = start(&app, 1);
    let reasons = admin.becomes_ready(false, secs(30));
    let (live, ready, _) = admin.health();
    assert!(live && !ready, "{reasons:?}");
    let starting = wait::until("it says that it starts", secs(30), || {
        admin.health().2.into_iter().find(|reason| reason.starts_with("start: ") && reason.contains("kafka"))
    });
    assert!(starting.contains("kafka"), "{starting}");
    assert_eq!(admin.look("/v1/status").0, 503);
    proxy.heal();
    admin.becomes_ready(true, secs(60));
    admin.until("everything is worked off", secs(60), |status| processor(status, "count")["lag"] == 0);
    proxy.cut();
    admin.becomes_ready(false, secs(60));
    assert!(admin.health().0, "a host without a broker is no stuck one");
    let began = wait::wall_ms();
    let status = admin.status();
    let took = wait::wall_ms() - began;
    assert!(took < 10_000, "{took} ms");
    assert_eq!((&processor(&status, "count")["lag"], states(&status, "count").len()), (&Value::Null, 2), "{status}");
    proxy.heal();
    admin.becomes_ready(true, secs(60));
    admin.until("lag is known again", secs(60), |status| processor(status, "count")["lag"] == 0);
    host.stop(secs(30));
}

/// The cluster is away for long with a transaction open: each call that waits for it ends by itself, and no worker is called stuck.
#[test]
fn a_long_outage_in_the_middle_of_work_is_no_stuck_worker() {
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let app = App::counting(Log::Kafka, "outage", 2).brokers(&proxy.address()).ready();
    let feed = Feed::start(app.topic("in"), Rng::seeded("outage"), KEYS, 200);
    let (mut host, admin) = start(&app, 1);
    admin.becomes_ready(true, secs(60));
    see(&app, "out", 200, secs(60));
    proxy.cut();
    wait::throughout(secs(50), || assert!(admin.health().0, "it is live"));
    assert!(!admin.health().1, "and not ready");
    proxy.heal();
    let input = feed.stop();
    see(&app, "out", input.len(), secs(90));
    let is_told = |status: &Value| {
        let failures = processor(status, "count")["failures"].as_array();
        processor(status, "count")["lag"] == 0 && failures.is_some_and(|failures| !failures.is_empty())
    };
    admin.until("everything is worked off, and what failed is told", secs(60), is_told);
    admin.becomes_ready(true, secs(60));
    host.stop(secs(30));
}

/// Each batch of the restore takes its time: progress is shown, state is not answered, and the host is not ready.
#[test]
fn a_task_that_is_restoring() {
    for log in BOTH {
        let app = App::counting(log, "restoring", 1).ready();
        app.produce("in", &records(&mut Rng::seeded("restoring"), 2000, 0, 6000));
        app.finish(1);
        app.wipe(1);
        let mut host = app.host(1).failpoints("restore-batch=3*sleep(3000)").start();
        let admin = Admin::of(&app, 1, host.pid());
        let status = admin.until("it restores", secs(60), |status| states(status, "count") == ["restoring"]);
        let task = &processor(&status, "count")["tasks"][0];
        assert!(task["restore"]["target"].as_u64() > Some(0), "{task}");
        assert!(task["reason"].as_str().is_some_and(|reason| reason.starts_with("restoring: ")), "{task}");
        assert_eq!(status["ready"], false);
        assert!(admin.health().0);
        let (code, body) = admin.look("/v1/state/count/counts?key=k1");
        assert_eq!((code, body["code"].as_str()), (503, Some("state-not-here-yet")), "{body}");
        admin.becomes_ready(true, secs(60));
        assert_eq!(states(&admin.status(), "count"), ["running"]);
        host.stop(secs(30));
    }
}

/// A retry is shown at once, and makes the host not ready when it has lasted; the other partition works on.
#[test]
fn one_partition_is_backing_off_for_good() {
    let app = careless(Log::Kafka, "for-good").ready();
    let (mut host, admin) = start(&app, 1);
    admin.becomes_ready(true, secs(60));
    app.produce("in", &[Rec::new("a", "retry 100 x").at(0), Rec::new("b", "ok").at(1)]);
    let status = admin.until("it is told", secs(20), |status| states(status, "careless") == ["backing-off", "running"]);
    assert_eq!(status["ready"], true, "{status}");
    let failure = &processor(&status, "careless")["failures"][0];
    assert_eq!(failure["place"], format!("{}/0@0", app.topic("in")));
    let began = wait::wall_ms();
    let reasons = admin.becomes_ready(false, secs(60));
    let took = wait::wall_ms() - began;
    assert!(took > 20_000, "not before it has lasted: {took} ms");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].starts_with("task careless/0: backing off: offset 0"), "{reasons:?}");
    assert!(admin.health().0);
    app.produce("in", &[Rec::new("b", "ok").at(1)]);
    admin.until("the other partition works on", secs(30), |status| {
        let lags = processor(status, "careless")["lags"].as_array().unwrap();
        lags.iter().any(|lag| lag["partition"] == 1 && lag["committed"] == 2 && lag["lag"] == 0)
    });
    host.stop(secs(30));
}

#[test]
fn one_processor_is_halted() {
    for log in BOTH {
        let other = Processor::new("count").input("in", "in").output("out", "counts").dead_letters("dead");
        let app = careless(log, "halted").topic("counts", 2).processor(other).ready();
        app.produce("in", &[Rec::new("a", "ok"), Rec::new("a", "stop")]);
        let (mut host, admin) = start(&app, 1);
        let status = admin.until("one has stopped and the other goes on", secs(60), |status| {
            processor(status, "careless")["state"] == "stopped" && processor(status, "count")["lag"] == 0
        });
        assert_eq!(states(&status, "careless"), ["halted"; 2]);
        assert_eq!(states(&status, "count"), ["running"; 2]);
        assert_eq!(processor(&status, "careless")["failures"][0]["code"], "plugin-stop");
        let (live, ready, reasons) = admin.health();
        assert_eq!((live, ready, reasons.len()), (true, false, 1), "{reasons:?}");
        assert!(reasons[0].starts_with("processor careless is stopped: "), "{reasons:?}");
        host.signal("TERM");
        assert_ne!(host.wait(secs(30)), Exit::Code(0), "the reason is its result");
    }
}

/// A guest in a loop yields: its worker answers, and the call is seen until its deadline ends it.
#[test]
fn a_plugin_is_in_a_loop() {
    let app = careless(Log::Embedded, "looping").ready();
    app.set_processor(&["limits", "record_deadline"], "8s");
    app.produce("in", &[Rec::new("a", "loop"), Rec::new("a", "ok")]);
    let (mut host, admin) = start(&app, 1);
    let in_call = |status: &Value| {
        let tasks = processor(status, "careless")["tasks"].as_array().unwrap();
        tasks.iter().any(|task| task["call_ms"].as_u64() > Some(1000) && task["age_ms"].is_null())
    };
    let status = admin.until("the call is seen", secs(60), in_call);
    assert_eq!((&status["live"], &processor(&status, "careless")["lag"]), (&true.into(), &2.into()));
    let status = admin.until("its deadline ends it", secs(60), |status| processor(status, "careless")["lag"] == 0);
    let failures = processor(&status, "careless")["failures"].as_array().unwrap();
    assert!(failures.iter().any(|failure| failure["code"] == "deadline"), "{failures:?}");
    host.stop(secs(30));
}

/// A worker that does not turn is told of at half of `stuck_after`, while the process still answers; a short silence passes.
#[test]
fn a_worker_is_stuck() {
    for (sleep, ends) in [(5000, false), (60_000, true)] {
        let app = App::counting(Log::Embedded, "stuck", 1).set("stuck_after", "8s").ready();
        app.set_processor(&["limits", "record_deadline"], "1s");
        app.produce("in", &one_each(KEYS));
        let mut host = app.host(1).failpoints(&format!("commit-before-produce=1*sleep({sleep})")).start();
        let admin = Admin::of(&app, 1, host.pid());
        let reasons = wait::until("it is not live", secs(30), || {
            let (code, body) = admin.try_look("/healthz")?;
            (code == 503).then(|| body["reasons"].to_string())
        });
        assert!(reasons.contains("has been silent for"), "{reasons}");
        if ends {
            assert_eq!(host.wait(secs(30)), Exit::Code(1), "{}", host.log());
            assert!(host.log().contains("worker-stuck"));
        } else {
            wait::until("it is live again", secs(30), || admin.health().0.then_some(()));
            admin.becomes_ready(true, secs(30));
            host.stop(secs(30));
        }
    }
}

/// Each host answers for what it has, and sends on for the rest.
#[test]
fn keys_of_two_hosts() {
    let app = App::counting(Log::Kafka, "two-hosts", 4).ready();
    app.produce("in", &one_each(KEYS));
    let (mut one, first) = start(&app, 1);
    let (mut other, second) = start(&app, 2);
    let (group, topic) = (app.group("count"), app.topic("in"));
    wait::until("both hosts have partitions", secs(60), || (kafka::holders(&group, &topic) == 2).then_some(()));
    [&first, &second].into_iter().for_each(|admin| drop(admin.becomes_ready(true, secs(60))));
    let whole = |admin: &Admin| admin.until("all is done", secs(60), |status| processor(status, "count")["lag"] == 0);
    [&first, &second].into_iter().for_each(|admin| drop(whole(admin)));
    let mut sent_on = 0;
    for rec in one_each(KEYS) {
        let path = format!("/v1/state/count/counts?key={}", String::from_utf8(rec.key.unwrap()).unwrap());
        let (code, body) = wait::until("the key is known", secs(30), || {
            let (code, body) = first.look(&path);
            (code == 200 || code == 421 && !body["address"].is_null()).then_some((code, body))
        });
        if code == 421 {
            assert_eq!(body["address"], format!("http://{}", second.address), "{body}");
            assert_eq!(second.look(&path).0, 200);
            sent_on += 1;
        }
    }
    assert!(sent_on > 0 && sent_on < KEYS, "{sent_on} of {KEYS} keys are the other's");
    [&mut one, &mut other].into_iter().for_each(|host| host.stop(secs(30)));
}
