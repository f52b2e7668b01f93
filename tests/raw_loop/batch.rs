//! The loop over the queues of partitions: a batch at a time, records produced to topics resolved once.

use crate::logic::Logic;
use crate::native::{Batch, PartitionQueue, Topic};
use crate::options::Options;
use crate::transactions::Transactions;
use rdkafka::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::producer::Producer;
use std::sync::Mutex;
use std::time::Duration;

/// Cuts off the queue of each partition before it is assigned: later, its first records would already be elsewhere.
struct Splitter(Mutex<Vec<PartitionQueue>>);

impl ClientContext for Splitter {}

impl ConsumerContext for Splitter {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let Rebalance::Assign(partitions) = rebalance else { return };
        let split = |e: rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
            PartitionQueue::split(consumer.client(), e.topic(), e.partition())
        };
        self.0.lock().expect("one thread").extend(partitions.elements().into_iter().map(split));
    }
}

struct Loop {
    output: Topic,
    changelog: Option<Topic>,
    transactions: Transactions,
    logic: Logic,
    seen: u64,
}

pub(crate) fn run(options: &Options) {
    let mut job = Loop::new(options);
    let splitter = Splitter(Mutex::default());
    let consumer: BaseConsumer<Splitter> = options.consumer().create_with_context(splitter).expect("a consumer");
    consumer.subscribe(&[&options.input]).expect("the input can be subscribed to");
    // Taken out of the context, so that they go before their client does.
    let (mut queues, mut batch) = (Vec::new(), Batch::new());
    while job.seen < options.records || job.transactions.is_open() {
        let idle = job.round(&queues, &mut batch) == 0;
        let wait = Duration::from_millis(u64::from(idle));
        // Serves the group; records do not come here.
        if let Some(polled) = consumer.poll(wait) {
            polled.map(|_| panic!("a record on the main queue")).unwrap_or_else(|error| eprintln!("consume: {error}"));
        }
        queues.append(&mut consumer.context().0.lock().expect("one thread"));
        if job.transactions.due(idle) || job.seen >= options.records {
            job.write_changes();
            job.transactions.commit(&consumer);
        }
    }
}

impl Loop {
    fn new(options: &Options) -> Loop {
        let transactions = Transactions::new(options);
        let topic = |name: &String| Topic::resolve(transactions.producer.client(), name);
        let (output, changelog) = (topic(&options.output), options.changelog.as_ref().map(topic));
        Loop { output, changelog, transactions, logic: Logic::new(options.counts), seen: 0 }
    }

    /// One batch from each queue; gives how many records there were.
    fn round(&mut self, queues: &[PartitionQueue], batch: &mut Batch) -> u64 {
        let before = self.seen;
        for queue in queues {
            queue.read(batch);
            batch.drain(|record| {
                self.transactions.reads(record.partition(), record.offset());
                let value = self.logic.apply(record.key(), record.value());
                self.transactions.send_to(&self.output, record.key(), value, record.timestamp());
                self.seen += 1;
            });
        }
        self.seen - before
    }

    fn write_changes(&mut self) {
        let Some(changelog) = &self.changelog else { return };
        let transactions = &mut self.transactions;
        self.logic.drain_changes(|key, count| {
            transactions.send_to(changelog, Some(key), Some(&count.to_be_bytes()), 0);
        });
    }
}
