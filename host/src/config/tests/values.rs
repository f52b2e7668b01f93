//! What a right file means.

use super::{MINIMAL, load};
use crate::config::schema::{Fallback, SETTINGS};
use crate::config::{Limits, LogKind, Start, value};
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
    assert_eq!(application.write_buffer_bytes, 128 << 20);
    assert_eq!((application.delivery, application.group_protocol), (Delivery::ExactlyOnce, GroupProtocol::Classic));
    assert_eq!(application.session_timeout, Duration::from_secs(10));
    assert_eq!(application.shutdown_grace, Duration::from_secs(30));
    assert_eq!(application.stuck_after, Duration::from_secs(60));
    assert!(application.workers >= 1 && !application.create_topics);
    assert_eq!(application.log, LogKind::Local { dir: "/apps/log".into() });
    assert_eq!(application.processors[0].limits, Limits::default());
    assert_eq!(application.processors[0].settings, serde_json::json!({}));
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
