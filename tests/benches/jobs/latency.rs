//! From the call that produces an input until a committed reader has its output, at a steady rate. The job is `count`: an output's key and
//! count say which input it came from, so nothing is added to the records.

use crate::contender::{Contender, Job, Kind, unique};
use crate::input::{self, key, key_number};
use crate::settings::{KEYS, PARTITIONS, number};
use crate::table::{Table, thousands};
use crate::verify;
use pelton_tests::kafka;
use rdkafka::Message;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::time::{Duration, Instant};

/// Records that are through before the clock counts.
const WARM_UP: u64 = 2_000;
const LIMIT: Duration = Duration::from_secs(60);
const COLUMNS: &[&str] = &["what", "commits every", "p50 ms", "p99 ms", "longest ms", "CPU-seconds per second"];
/// No divisor of it divides the number of keys: key after key, all of them before one comes again, neighbours far apart.
const STRIDE: u64 = 7_919;

/// What is produced and when. Record `i` has key `i × STRIDE mod KEYS`, and so is the key's record number `i / KEYS + 1`.
struct Plan {
    rate: u64,
    records: u64,
    /// The inverse of the stride: the first record of each key.
    first: Vec<u32>,
}

struct Found {
    /// Milliseconds, in ascending order.
    latencies: Vec<f64>,
    cpu_per_second: f64,
}

/// One clock for both ends, in microseconds.
#[derive(Clone, Copy)]
struct Clock(Instant);

pub(crate) fn run() {
    let plan = Plan::new(number("BENCH_RATE", 50_000), number("BENCH_SECONDS", 20));
    let title = format!("Latency at {} records/s over {} s", thousands(plan.rate as f64), plan.seconds());
    let mut table = Table::new(&title, "make bench ONLY=latency", COLUMNS);
    // The broker compiles its own code for about a minute, on the cores that the contenders need; whoever comes first should not pay.
    measure(
        &Contender { kind: Kind::Poll, job: Job::Count, commit_ms: 20 },
        &Plan::new(plan.rate, number("BENCH_WARM_SECONDS", 60)),
    );
    for (kind, commit_ms) in [(Kind::Poll, 100), (Kind::Pelton, 100), (Kind::Pelton, 20), (Kind::Poll, 20)] {
        let contender = Contender { kind, job: Job::Count, commit_ms };
        let found = measure(&contender, &plan);
        let row = row(&contender, &found);
        eprintln!("{}", row.join(", "));
        table.row(&row);
    }
    table.print();
}

fn measure(contender: &Contender, plan: &Plan) -> Found {
    let topic = unique("latency-in");
    kafka::create_topic(&topic, PARTITIONS, &[]);
    let (mut run, clock) = (contender.start(&topic, None), Clock(Instant::now()));
    let (reader, producer) = (verify::reader(&run.output), input::producer("2"));
    let warm_up = plan.produce(&producer, &topic, 0..WARM_UP, clock);
    assert_eq!(plan.arrivals(&reader, WARM_UP, clock).len(), warm_up.len());
    run.process.look();
    let before = run.process.cost();
    let (sent, arrived) = std::thread::scope(|scope| {
        let feed = scope.spawn(|| plan.produce(&producer, &topic, WARM_UP..WARM_UP + plan.records, clock));
        let arrived = plan.arrivals(&reader, plan.records, clock);
        (feed.join().expect("the feed ends well"), arrived)
    });
    let after = run.process.cost();
    run.clear();
    kafka::delete_topic(&topic);
    let cpu_per_second = (after.cpu_seconds - before.cpu_seconds) / (after.seconds - before.seconds);
    Found { latencies: plan.latencies(&sent, &arrived), cpu_per_second }
}

fn row(contender: &Contender, found: &Found) -> Vec<String> {
    let at = |share: f64| {
        let place = (found.latencies.len() as f64 * share) as usize;
        format!("{:.1}", found.latencies[place.min(found.latencies.len() - 1)])
    };
    vec![
        contender.name().to_owned(),
        format!("{} ms", contender.commit_ms),
        at(0.50),
        at(0.99),
        at(1.0),
        format!("{:.2}", found.cpu_per_second),
    ]
}

impl Clock {
    fn micros(self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }
}

impl Plan {
    fn new(rate: u64, seconds: u64) -> Plan {
        let mut first = vec![0; KEYS as usize];
        (0..KEYS).for_each(|i| first[(i * STRIDE % KEYS) as usize] = i as u32);
        Plan { rate, records: rate * seconds, first }
    }

    fn seconds(&self) -> u64 {
        self.records / self.rate
    }

    /// Produces records of the plan at its rate; gives the time of each.
    fn produce(&self, producer: &input::Feeder, topic: &str, range: std::ops::Range<u64>, clock: Clock) -> Vec<u64> {
        let (start, count) = (clock.micros(), range.end - range.start);
        let mut times = Vec::with_capacity(count as usize);
        while (times.len() as u64) < count {
            let due = ((clock.micros() - start) * self.rate / 1_000_000).min(count);
            while (times.len() as u64) < due {
                let number = range.start + times.len() as u64;
                times.push(clock.micros());
                input::send(producer, topic, key(number * STRIDE % KEYS).as_bytes(), &[b'v'; 100]);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        input::flush(producer);
        times
    }

    /// So many outputs as they come: number of the input, and when.
    fn arrivals(&self, reader: &BaseConsumer, count: u64, clock: Clock) -> Vec<(u64, u64)> {
        let mut arrived = Vec::with_capacity(count as usize);
        while (arrived.len() as u64) < count {
            match reader.poll(LIMIT).expect("outputs keep coming") {
                Ok(message) => arrived.push((self.number(&message), clock.micros())),
                // a new client says that all brokers are down while its first connection is replaced
                Err(KafkaError::PartitionEOF(_))
                | Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AllBrokersDown)) => {}
                Err(error) => panic!("consume: {error}"),
            }
        }
        arrived
    }

    /// Which input an output came from.
    fn number(&self, output: &impl Message) -> u64 {
        let count = verify::number(output.payload().unwrap_or_default());
        (count - 1) * KEYS + u64::from(self.first[key_number(output.key().unwrap_or_default())])
    }

    /// All but the first tenth, in ascending order. Each input must have one output.
    fn latencies(&self, sent: &[u64], arrived: &[(u64, u64)]) -> Vec<f64> {
        let mut seen = vec![false; sent.len()];
        let mut latencies = Vec::with_capacity(sent.len());
        for (number, at) in arrived {
            let place = (number - WARM_UP) as usize;
            assert!(!std::mem::replace(&mut seen[place], true), "record {number} has two outputs");
            if place >= sent.len() / 10 {
                latencies.push((at - sent[place]) as f64 / 1000.0);
            }
        }
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}
