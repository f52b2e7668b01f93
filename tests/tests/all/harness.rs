//! The harness itself against the broker: what it says of the host later must be true of a client that is known to work.

use pelton_tests::kafka::{self, Isolation};
use pelton_tests::proxy::Proxy;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Rec, broker};

#[test]
fn records_of_every_shape_survive_the_broker() {
    let app = App::draft(Log::Kafka, "harness-shapes").topic("in", 1).ready();
    let shapes = vec![
        Rec { timestamp: -1, ..Rec::raw(None, None).at(0) },
        Rec::raw(Some(b""), Some(b"")).at(0),
        Rec::raw(Some(&[0x80]), Some(&[0xff, 0]))
            .at(0)
            .header("h", None)
            .header("h", Some(b""))
            .header("h", Some(b"2")),
        Rec::new("big", vec![b'x'; 900_000]).at(0),
    ];
    app.produce("in", &shapes);
    let found = app.read("in");
    assert_eq!(found.len(), shapes.len());
    for (i, (found, sent)) in found.iter().zip(&shapes).enumerate() {
        assert_eq!(found, &Rec { offset: i as i64, ..sent.clone() });
    }
}

#[test]
fn committed_readers_do_not_see_what_was_aborted() {
    let app = App::draft(Log::Kafka, "harness-aborted").topic("in", 2).ready();
    let topic = app.topic("in");
    app.produce("in", &[Rec::new("a", "1").at(1)]);
    kafka::produce_aborted(&topic, &[Rec::new("a", "never").at(1)]);
    assert_eq!(kafka::read(&topic, Isolation::Committed).len(), 1);
    assert_eq!(kafka::read(&topic, Isolation::Uncommitted).len(), 2);
    assert_eq!(kafka::ends(&topic, 1), (0, 3), "the marker takes an offset");
}

#[test]
fn topics_come_lose_records_and_go() {
    let app = App::draft(Log::Kafka, "harness-topics").topic("in", 1).ready();
    let topic = app.topic("in");
    app.produce("in", &[Rec::new("a", "1"), Rec::new("a", "2")]);
    kafka::delete_records(&topic, 0, 1);
    assert_eq!(kafka::ends(&topic, 0), (1, 2));
    kafka::delete_topic(&topic);
    assert!(!kafka::topics().contains(&topic));
}

#[test]
fn compacted_topics_can_be_truncated() {
    let app = App::draft(Log::Kafka, "harness-truncate")
        .topic("in", 1)
        .topic_setting("in", "cleanup.policy", "compact")
        .ready();
    app.produce("in", &[Rec::new("a", "1"), Rec::new("a", "2"), Rec::new("a", "3")]);
    kafka::truncate_compacted(&app.topic("in"), &[2]);
    assert_eq!(kafka::ends(&app.topic("in"), 0), (2, 3));
}

#[test]
fn clients_of_the_proxied_listener_stay_behind_the_proxy() {
    let app = App::draft(Log::Kafka, "harness-proxy").topic("in", 1).ready();
    app.produce("in", &[Rec::new("a", "1")]);
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    let read = || kafka::read_at(&proxy.address(), &app.topic("in"), Isolation::Committed).len();
    assert_eq!(read(), 1);
    proxy.cut();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err(), "nothing passes a cut");
    proxy.heal();
    wait::until("the healed proxy passes records", secs(30), || (read() == 1).then_some(()));
}

#[test]
fn a_proxy_refuses_writes_to_one_topic_only() {
    let app = App::draft(Log::Kafka, "harness-refusal").topic("in", 1).topic("out", 1).ready();
    let (_turn, listen, advertised) = broker::proxied();
    let proxy = Proxy::start(advertised, listen);
    proxy.refuse(&app.topic("in"));
    let refused = kafka::try_produce(&proxy.address(), &app.topic("in"), &Rec::new("a", "1"), secs(2));
    assert!(refused.is_err_and(|error| error.contains("timed out")), "the client tries again until it gives up");
    assert_eq!(kafka::try_produce(&proxy.address(), &app.topic("out"), &Rec::new("a", "1"), secs(10)), Ok(()));
    proxy.heal();
    assert_eq!(kafka::try_produce(&proxy.address(), &app.topic("in"), &Rec::new("a", "2"), secs(10)), Ok(()));
    let found: Vec<String> = app.read("in").iter().map(Rec::value_text).collect();
    assert_eq!(found, ["2"]);
}
