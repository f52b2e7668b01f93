//! What a right file means.

use super::{MINIMAL, load};
use crate::config::schema::{Fallback, SETTINGS};
use crate::config::{
    Action, DeadLetters, LetterLimit, Limits, LogKind, Ordering, Oversize, Parking, Retry, Start, value,
};
use crate::model::log::{Delivery, GroupProtocol};
use std::path::Path;
use std::time::Duration;

/// The file of the design, in which every name is fixed.
const DESIGN: &str = r#"
[application]
id = "orders"
state_dir = "state"
commit_interval = "100ms"
delivery = "at-least-once"
workers = 2

[log]
kind = "kafka"
brokers = "127.0.0.1:9092"
create_topics = false

[kafka.properties]
"security.protocol" = "sasl_ssl"
"sasl.password" = "${KAFKA_PASSWORD}"

[topics.orders]
partitions = 8

[[processor]]
name = "order-counts"
plugin = "order-counts.wasm"
dead_letter_topic = "orders-dead-letters"
inputs.orders = "orders"
inputs.returns = { topic = "returns", start = "latest" }
outputs.counts = "order-counts"

[processor.settings]
minimum_cds = 1

[processor.limits]
memory = "64MiB"
record_deadline = "1500ms"
"#;

#[test]
fn every_default_is_as_documented() {
    let application = load(MINIMAL).unwrap();
    assert_eq!(application.state_dir, Path::new("/apps/state"));
    assert_eq!(application.commit_interval, Duration::from_millis(100));
    assert_eq!((application.commit_bytes, application.cache_bytes), (64 << 20, 256 << 20));
    assert_eq!((application.write_buffer_bytes, application.plugin_stack_bytes), (128 << 20, 512 << 10));
    assert_eq!((application.delivery, application.group_protocol), (Delivery::ExactlyOnce, GroupProtocol::Classic));
    assert_eq!(application.session_timeout, Duration::from_secs(10));
    assert_eq!(application.shutdown_grace, Duration::from_secs(30));
    assert_eq!(application.stuck_after, Duration::from_secs(60));
    assert!(application.workers >= 1 && !application.create_topics);
    assert_eq!(application.log, LogKind::Local { dir: "/apps/log".into() });
    let processor = &application.processors[0];
    assert_eq!(processor.limits, Limits::default());
    assert_eq!(processor.settings, serde_json::json!({}));
    assert_eq!((processor.ordering, &processor.retry), (Ordering::Partition, &Retry::default()));
    assert_eq!((&processor.dead_letter, &processor.parking), (&DeadLetters::default(), &Parking::default()));
}

#[test]
fn the_designs_file_reads_as_it_says() {
    let application = load(DESIGN).unwrap();
    let LogKind::Kafka(kafka) = &application.log else { panic!("not kafka") };
    assert_eq!(kafka.properties["sasl.password"], "hush-hush");
    assert_eq!((application.workers, application.delivery), (2, Delivery::AtLeastOnce));
    assert_eq!(application.topics["orders"].partitions, 8);
    let processor = &application.processors[0];
    assert_eq!(processor.plugin, Path::new("/apps/order-counts.wasm"));
    assert_eq!((processor.inputs["orders"].start, processor.inputs["returns"].start), (Start::Earliest, Start::Latest));
    assert_eq!(
        (processor.inputs["returns"].topic.as_str(), processor.outputs["counts"].as_str()),
        ("returns", "order-counts")
    );
    assert_eq!(processor.settings, serde_json::json!({"minimum_cds": 1}));
    assert_eq!(processor.limits.record_deadline, Duration::from_millis(1500));
}

#[test]
fn delivery_reads_as_it_says() {
    let lines = r#"
        inputs.in = "a"
        ordering = "key"
        [processor.retry]
        first_delay = "1s"
        factor = 3
        max_delay = "1m"
        max_attempts = 4
        codes = { "made.up" = "stop", trap = "retry" }
        [processor.dead_letter]
        oversize = "stop"
        connect_headers = true
        limit = "2.5%"
        [processor.parking]
        records = 5
        bytes = "1MiB"
    "#;
    let processor = load(&MINIMAL.replace("inputs.in = \"a\"", lines)).unwrap().processors.remove(0);
    assert_eq!(processor.ordering, Ordering::Key);
    let codes = [("made.up".to_owned(), Action::Stop), ("trap".to_owned(), Action::Retry)].into();
    let (first_delay, max_delay) = (Duration::from_secs(1), Duration::from_secs(60));
    assert_eq!(processor.retry, Retry { first_delay, factor: 3.0, max_delay, max_attempts: 4, codes });
    let limit = Some(LetterLimit::Share(0.025));
    assert_eq!(processor.dead_letter, DeadLetters { oversize: Oversize::Stop, connect_headers: true, limit });
    assert_eq!(processor.parking, Parking { records: 5, bytes: 1 << 20 });
    let rate = lines.replace("2.5%", "100/m");
    let processor = load(&MINIMAL.replace("inputs.in = \"a\"", &rate)).unwrap().processors.remove(0);
    assert_eq!(processor.dead_letter.limit, Some(LetterLimit::Rate { count: 100, per: Duration::from_secs(60) }));
}

#[test]
fn a_code_may_be_written_in_every_way_of_toml() {
    for line in
        ["retry.codes.\"a.b\" = \"stop\"", "retry.codes.a.b = \"stop\"", "retry = { codes = { \"a.b\" = \"stop\" } }"]
    {
        let text = MINIMAL.replace("inputs.in = \"a\"", &format!("inputs.in = \"a\"\n{line}"));
        let processor = load(&text).unwrap().processors.remove(0);
        assert_eq!(processor.retry.codes, [("a.b".to_owned(), Action::Stop)].into(), "{line}");
    }
}

#[test]
fn secrets_are_not_shown() {
    assert!(!format!("{:?}", load(DESIGN)).contains("hush"));
    for (from, to) in [
        ("commit_interval = \"100ms\"", "commit_interval = \"${KAFKA_PASSWORD}\""),
        ("workers = 2", "workers = \"${KAFKA_PASSWORD}\""),
        ("kind = \"kafka\"", "kind = \"${KAFKA_PASSWORD}\""),
        ("partitions = 8", "partitions = \"${KAFKA_PASSWORD}\""),
    ] {
        let errors = load(&DESIGN.replace(from, to)).unwrap_err().to_string();
        assert!(!errors.contains("hush"), "{errors}");
    }
}

#[test]
fn properties_may_be_quoted_or_dotted_or_single_values() {
    let text = DESIGN.replace("\"security.protocol\" = \"sasl_ssl\"", "linger.ms = 5\nenable.random.seed = false");
    let properties = |text: &str| match load(text).map(|a| a.log) {
        Ok(LogKind::Kafka(kafka)) => kafka.properties.into_keys().collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    };
    assert_eq!(properties(&text.replace("\nenable.random.seed = false", "")), "linger.ms sasl.password");
    let twice = DESIGN.replace("\"sasl.password\"", "security.protocol = \"ssl\"\n\"sasl.password\"");
    let errors = load(&twice).unwrap_err();
    assert_eq!(
        (errors.mistakes[0].code, errors.mistakes[0].path.as_str()),
        ("duplicate-key", "kafka.properties.\"security.protocol\"")
    );
}

#[test]
fn every_default_in_the_table_fits_its_setting() {
    for setting in SETTINGS.iter().filter(|s| matches!(s.fallback, Fallback::Value(_))) {
        assert!(value::default(setting).is_some(), "{}", setting.path);
    }
}
