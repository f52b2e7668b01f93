//! What the loop is told, and what it tells its clients: as the product does, where the product has an opinion.

use rdkafka::ClientConfig;
use std::collections::HashMap;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `poll` and `send` for each record, topics by name.
    Poll,
    /// Batches from the queues of partitions, topics resolved once.
    Batch,
}

pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) counts: bool,
    pub(crate) brokers: String,
    pub(crate) group: String,
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) changelog: Option<String>,
    /// `u64::MAX`: without end.
    pub(crate) records: u64,
    pub(crate) commit_every: Duration,
    linger_ms: String,
}

impl Options {
    pub(crate) fn from_args() -> Options {
        let pairs = std::env::args().skip(1);
        let mut given: HashMap<String, String> = pairs
            .map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())).expect("name=value"))
            .collect();
        let mut take = |name: &str, default: Option<&str>| {
            given.remove(name).or_else(|| default.map(str::to_owned)).unwrap_or_else(|| panic!("{name}= is missing"))
        };
        let commit_ms = take("commit_ms", Some("100")).parse().expect("commit_ms is a number");
        let changelog = take("changelog", Some(""));
        Options {
            mode: if take("mode", Some("poll")) == "batch" { Mode::Batch } else { Mode::Poll },
            counts: take("job", Some("echo")) == "count",
            brokers: take("brokers", None),
            group: take("group", None),
            input: take("input", None),
            output: take("output", None),
            changelog: Some(changelog).filter(|name| !name.is_empty()),
            records: take("records", Some("18446744073709551615")).parse().expect("records is a number"),
            commit_every: Duration::from_millis(commit_ms),
            linger_ms: take("linger_ms", Some("5")),
        }
    }

    /// Whether records wait for `linger.ms` before they are sent.
    pub(crate) fn lingers(&self) -> bool {
        self.linger_ms != "0"
    }

    pub(crate) fn consumer(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("group.id", &self.group);
        config.set("isolation.level", "read_committed").set("auto.offset.reset", "earliest");
        config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        config.set("session.timeout.ms", "10000");
        // The default of 1000 ms stops fetching for a second whenever the local queue is full.
        config.set("fetch.queue.backoff.ms", "10");
        // 256 MiB in all: the limit holds for the one queue of the consumer, or for each queue that is cut off.
        let share = if self.mode == Mode::Batch { "32768" } else { "262144" };
        config.set("queued.max.messages.kbytes", share);
        config
    }

    pub(crate) fn producer(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.brokers).set("transactional.id", format!("{}-0", self.group));
        config.set("linger.ms", &self.linger_ms).set("partitioner", "murmur2_random");
        config.set("queue.buffering.max.messages", "1000000");
        // The coordinator answers CONCURRENT_TRANSACTIONS for a moment after a commit; the default waits 100 ms then.
        config.set("retry.backoff.ms", "1");
        config
    }
}
