//! The input of the throughput benchmarks: 12-byte keys, 100-byte values, not compressed, produced once and read by every run.

use crate::settings::{KEYS, PARTITIONS};
use pelton_tests::broker::broker;
use pelton_tests::{Rng, kafka};
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use std::time::{Duration, Instant};

/// Its reports are served by a thread of its own: `poll` in the thread that sends lasts all of its time, part of it spinning.
pub(crate) type Feeder = ThreadedProducer<DefaultProducerContext>;

const VALUE_BYTES: usize = 100;
const LIMIT: Duration = Duration::from_secs(60);

/// A topic with so many records over [`KEYS`] keys in no order.
pub(crate) fn load(records: u64) -> String {
    let topic = format!("bench-in-{}-{records}", std::process::id());
    kafka::create_topic(&topic, PARTITIONS, &[]);
    let (mut rng, producer, start) = (Rng::new(1), producer("20"), Instant::now());
    let mut value = [b'v'; VALUE_BYTES];
    for number in 0..records {
        value[..16].copy_from_slice(format!("{number:016}").as_bytes());
        send(&producer, &topic, key(rng.below(KEYS)).as_bytes(), &value);
    }
    flush(&producer);
    assert_eq!(kafka::total(&topic) as u64, records, "all of the input is there, once");
    eprintln!("{records} records produced to {topic} in {:.1} s", start.elapsed().as_secs_f64());
    topic
}

/// 12 bytes.
pub(crate) fn key(number: u64) -> String {
    format!("key-{number:08}")
}

/// The number in a key.
pub(crate) fn key_number(key: &[u8]) -> usize {
    std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix("key-")?.parse().ok()).expect("a key of ours")
}

/// Idempotent, so that nothing is lost, doubled or out of order.
pub(crate) fn producer(linger_ms: &str) -> Feeder {
    ClientConfig::new()
        .set("bootstrap.servers", &broker().address)
        .set("enable.idempotence", "true")
        .set("partitioner", "murmur2_random")
        .set("linger.ms", linger_ms)
        .set("queue.buffering.max.messages", "1000000")
        .create()
        .expect("a producer")
}

/// Waits where the client's queue is full.
pub(crate) fn send(producer: &Feeder, topic: &str, key: &[u8], value: &[u8]) {
    send_record(producer, BaseRecord::to(topic).key(key).payload(value));
}

/// The same, with whatever the record says of itself.
pub(crate) fn send_record(producer: &Feeder, mut record: BaseRecord<'_, [u8], [u8]>) {
    while let Err((error, back)) = producer.send(record) {
        let full = matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
        assert!(full, "produce to {}: {error}", back.topic);
        std::thread::sleep(Duration::from_millis(1));
        record = back;
    }
}

/// rdkafka's own flush sleeps in steps of 100 ms.
pub(crate) fn flush(producer: &Feeder) {
    let deadline = Instant::now() + LIMIT;
    while producer.in_flight_count() > 0 {
        assert!(Instant::now() < deadline, "records were not acknowledged within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
