//! How far a contender is, seen from outside and alike for all: its run lasts from the first output that reaches the broker until its group
//! has committed the whole input.

use crate::contender::Run;
use crate::settings::PARTITIONS;
use pelton_tests::broker::broker;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
/// How long nothing may happen.
const STALL: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);

/// A moment of a run.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    at: Instant,
    cpu: f64,
    records: u64,
}

pub(crate) struct Watched {
    /// The first output.
    pub(crate) start: Mark,
    /// The first commit that covers half of the input.
    pub(crate) half: Mark,
    /// The last commit.
    pub(crate) end: Mark,
}

/// What lies between two moments.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) records: f64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
}

struct Watcher<'r> {
    run: &'r mut Run,
    client: BaseConsumer,
    input: &'r str,
    /// When there was news last.
    news: Instant,
}

pub(crate) fn watch(run: &mut Run, input: &str, records: u64) -> Watched {
    let mut watcher = Watcher::new(run, input);
    let start = watcher.first_output();
    let half = watcher.committed(records / 2);
    let end = watcher.committed(records);
    Watched { start, half, end }
}

impl Watched {
    pub(crate) fn whole(&self) -> Stretch {
        self.start.until(self.end)
    }

    /// Without the time in which code is compiled, caches are filled and queues are empty.
    pub(crate) fn second_half(&self) -> Stretch {
        self.half.until(self.end)
    }
}

impl Mark {
    fn until(self, end: Mark) -> Stretch {
        Stretch {
            records: (end.records - self.records) as f64,
            seconds: (end.at - self.at).as_secs_f64(),
            cpu_seconds: end.cpu - self.cpu,
        }
    }
}

impl Stretch {
    pub(crate) fn per_second(&self) -> f64 {
        self.records / self.seconds.max(1e-3)
    }

    pub(crate) fn per_cpu_second(&self) -> f64 {
        self.records / self.cpu_seconds.max(1e-3)
    }
}

impl<'r> Watcher<'r> {
    /// A client that asks for the group's offsets and never joins it. Not read_committed, with which the answer waits for the end
    /// of an open transaction (KIP-447); what it sees is committed all the same.
    fn new(run: &'r mut Run, input: &'r str) -> Watcher<'r> {
        let client = ClientConfig::new()
            .set("bootstrap.servers", &broker().address)
            .set("group.id", &run.group)
            .set("isolation.level", "read_uncommitted")
            .create()
            .expect("a client");
        Watcher { run, client, input, news: Instant::now() }
    }

    fn first_output(&mut self) -> Mark {
        while self.end_of_output() == 0 {
            self.rest();
        }
        self.mark(0)
    }

    fn committed(&mut self, records: u64) -> Mark {
        let mut seen = 0;
        loop {
            let now = self.position();
            if now >= records {
                return self.mark(now);
            }
            if now > seen {
                (seen, self.news) = (now, Instant::now());
            }
            self.rest();
        }
    }

    fn mark(&mut self, records: u64) -> Mark {
        self.news = Instant::now();
        Mark { at: self.news, cpu: self.run.process.cpu(), records }
    }

    fn rest(&mut self) {
        self.run.process.look();
        let log = || self.run.process.said();
        assert!(self.news.elapsed() < STALL, "nothing was committed for {STALL:?}:\n{}", log());
        std::thread::sleep(LOOK);
    }

    /// One request for all partitions. Records that are not yet committed count: this is when work begins.
    fn end_of_output(&self) -> i64 {
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            list.add_partition_offset(&self.run.output, partition, Offset::End).unwrap();
        }
        let ends = self.client.offsets_for_times(list, LIMIT).expect("the ends of the output");
        sum(&ends)
    }

    fn position(&self) -> u64 {
        let mut list = TopicPartitionList::new();
        list.add_partition_range(self.input, 0, PARTITIONS - 1);
        let committed = self.client.committed_offsets(list, LIMIT).expect("the group's offsets");
        sum(&committed) as u64
    }
}

fn sum(list: &TopicPartitionList) -> i64 {
    list.elements().iter().filter_map(|e| e.offset().to_raw()).filter(|&offset| offset > 0).sum()
}
