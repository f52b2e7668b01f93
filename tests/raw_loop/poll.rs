//! The plain loop: one `poll` and one `send` for each record.

use crate::logic::Logic;
use crate::options::Options;
use crate::transactions::Transactions;
use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, Consumer};
use std::time::Duration;

pub(crate) fn run(options: &Options) {
    let mut transactions = Transactions::new(options);
    let mut logic = Logic::new(options.counts);
    let consumer: BaseConsumer = options.consumer().create().expect("a consumer");
    consumer.subscribe(&[&options.input]).expect("the input can be subscribed to");
    let mut seen = 0;
    while seen < options.records || transactions.is_open() {
        let wait = Duration::from_millis(if transactions.is_open() { 1 } else { 100 });
        let polled = consumer.poll(wait);
        let idle = polled.is_none();
        match polled {
            Some(Ok(message)) => {
                seen += 1;
                transactions.reads(message.partition(), message.offset());
                let value = logic.apply(message.key(), message.payload());
                transactions.send(&options.output, message.key(), value, message.timestamp().to_millis());
            }
            Some(Err(error)) => eprintln!("consume: {error}"),
            None => {}
        }
        if transactions.due(idle) || seen >= options.records {
            write_changes(options, &mut logic, &mut transactions);
            transactions.commit(&consumer);
        }
    }
}

/// One record for each key that changed since the last commit, which costs less than one for each write.
fn write_changes(options: &Options, logic: &mut Logic, transactions: &mut Transactions) {
    let Some(changelog) = &options.changelog else { return };
    logic.drain_changes(|key, count| transactions.send(changelog, Some(key), Some(&count.to_be_bytes()), None));
}
