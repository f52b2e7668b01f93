//! Whether an output is right: a fast wrong answer is no benchmark.

use crate::contender::{Job, Run};
use crate::input::key_number;
use crate::settings::{KEYS, PARTITIONS};
use pelton_tests::broker::broker;
use pelton_tests::kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::collections::HashSet;
use std::time::Duration;

/// Each input has one output; counts of a key go up by one, and end at the number of its inputs, since they sum up to all of them.
pub(crate) fn output(run: &Run, job: Job, records: u64) {
    let (mut last, mut seen) = (vec![0u64; KEYS as usize], 0);
    read(&run.output, |key, value| {
        seen += 1;
        if job == Job::Count {
            let count = &mut last[key_number(key)];
            *count += 1;
            assert_eq!(number(value), *count, "the counts of a key go up by one");
        }
    });
    assert_eq!(seen, records, "each record has one output");
    assert!(job != Job::Count || last.iter().sum::<u64>() == records, "the last counts sum up to the inputs");
    let refused = run.dead_letters.as_deref().map_or(0, kafka::total);
    assert_eq!(refused, 0, "nothing was refused");
}

/// A number as decimal text.
pub(crate) fn number(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// A committed reader of all of a topic, that tells the ends of partitions.
pub(crate) fn reader(topic: &str) -> BaseConsumer {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &broker().address)
        .set("group.id", "pelton-bench")
        .set("isolation.level", "read_committed")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("fetch.queue.backoff.ms", "10")
        .create()
        .expect("a consumer");
    let mut list = TopicPartitionList::new();
    (0..PARTITIONS).for_each(|p| list.add_partition_offset(topic, p, Offset::Beginning).unwrap());
    consumer.assign(&list).unwrap();
    consumer
}

fn read(topic: &str, mut each: impl FnMut(&[u8], &[u8])) {
    // a partition may say more than once that its end is reached
    let (consumer, mut ended) = (reader(topic), HashSet::new());
    while ended.len() < PARTITIONS as usize {
        match consumer.poll(Duration::from_secs(30)).expect("the ends are reached") {
            Ok(message) => each(message.key().unwrap_or_default(), message.payload().unwrap_or_default()),
            Err(KafkaError::PartitionEOF(partition)) => drop(ended.insert(partition)),
            Err(error) => panic!("consume {topic}: {error}"),
        }
    }
}
