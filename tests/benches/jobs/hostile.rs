//! What a plugin that misbehaves costs everybody else: the throughput of seven partitions beside one in which every record loops until its
//! deadline, and the host's memory over a million failures.

use crate::contender::unique;
use crate::input;
use crate::process::Process;
use crate::settings::{PARTITIONS, number, pelton, plugin};
use crate::table::{Table, median, thousands};
use pelton_tests::broker::broker;
use pelton_tests::kafka;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::BaseRecord;
use rdkafka::{ClientConfig, TopicPartitionList};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);
/// How long nothing may happen.
const STALL: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(10);
/// The partition with the loops.
const HOSTILE: usize = 0;
/// More loops than a run has time for.
const LOOPS: u64 = 1000;
const VALUE_BYTES: usize = 100;
/// Where memory is looked at, in percent of the failures.
const LOOKS: [u64; 5] = [10, 25, 50, 75, 100];
const SHARES: &[&str] =
    &["what", "records/s of the seven", "of the fair share", "slowest partition, records/s", "dead letters"];
const MEMORY: &[&str] =
    &["what", "failures/s", "CPU-µs per failure", "10 %", "25 %", "50 %", "75 %", "100 %", "peak MiB"];

/// `bad` at work on a topic, with a group and an output of its own.
struct Run {
    process: Process,
    client: BaseConsumer,
    input: String,
    output: String,
    dead_letters: String,
    _dir: TempDir,
}

/// What the seven did.
struct Share {
    /// Records a second of all seven, until the last one was done.
    rate: f64,
    slowest: f64,
    dead_letters: u64,
}

pub(crate) fn run() {
    fair_share();
    flat_memory();
}

fn fair_share() {
    let (each, rounds) = (number("BENCH_RECORDS", 2_000_000) / PARTITIONS as u64, number("BENCH_ROUNDS", 3));
    let calm = topic("calm", |partition| (each, "ok", partition));
    let hostile =
        topic(
            "hostile",
            |partition| if partition == HOSTILE { (LOOPS, "loop", partition) } else { (each, "ok", partition) },
        );
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        alone.push(share(&calm, each));
        beside.push(share(&hostile, each));
    }
    [calm, hostile].iter().for_each(|topic| kafka::delete_topic(topic));
    let title = format!(
        "One hostile partition of {PARTITIONS}, two workers, {} records in each other, median of {rounds}",
        thousands(each as f64)
    );
    let mut table = Table::new(&title, "make bench ONLY=hostile", SHARES);
    let middle = |shares: &[Share], value: fn(&Share) -> f64| median(shares.iter().map(value));
    let fair = middle(&alone, |s| s.rate);
    for (what, shares) in [("all eight work", &alone), ("one loops until its deadline", &beside)] {
        table.row(&[
            what.to_owned(),
            thousands(middle(shares, |s| s.rate)),
            format!("{:.2}", middle(shares, |s| s.rate) / fair),
            thousands(middle(shares, |s| s.slowest)),
            thousands(middle(shares, |s| s.dead_letters as f64)),
        ]);
    }
    table.note("The fair share of the seven is what they get while the eighth works as they do.");
    table.print();
}

/// One run, until the seven are done.
fn share(input: &str, each: u64) -> Share {
    let mut run = Run::start(input);
    run.wait("the first commit", |positions| positions.iter().sum::<u64>() > 0);
    let (start, before) = (Instant::now(), run.positions());
    let mut done = [None; PARTITIONS as usize];
    run.wait("the seven are done", |positions| {
        for (partition, &position) in positions.iter().enumerate() {
            if position >= each {
                done[partition].get_or_insert_with(Instant::now);
            }
        }
        (0..PARTITIONS as usize).all(|partition| partition == HOSTILE || done[partition].is_some())
    });
    let seven = || (0..PARTITIONS as usize).filter(|&partition| partition != HOSTILE);
    let rate = |partition: usize| {
        let seconds = done[partition].map_or(0.0, |end| (end - start).as_secs_f64()).max(1e-3);
        ((each - before[partition]) as f64, seconds)
    };
    let (records, seconds) = seven().map(rate).fold((0.0, 0.0f64), |all, one| (all.0 + one.0, all.1.max(one.1)));
    let slowest = seven().map(rate).map(|(records, seconds)| records / seconds).fold(f64::MAX, f64::min);
    let share = Share {
        rate: records / seconds,
        slowest,
        dead_letters: kafka::read(&run.dead_letters, kafka::Isolation::Committed).len() as u64,
    };
    eprintln!("{input}: {} records/s of the seven, {} dead letters", thousands(share.rate), share.dead_letters);
    run.clear();
    share
}

fn flat_memory() {
    let failures = number("BENCH_FAILURES", 1_000_000);
    let title = format!("Memory over {} failures, MiB resident", thousands(failures as f64));
    let mut table = Table::new(&title, "make bench ONLY=hostile", MEMORY);
    let few = failures / 10;
    for (what, verbs, failures) in
        [("rejects", ["reject"; 2], few), ("traps", ["trap"; 2], few), ("both in turn", ["reject", "trap"], failures)]
    {
        let row = memory(what, verbs, failures);
        eprintln!("{}", row.join(", "));
        table.row(&row);
    }
    table.print();
}

fn memory(what: &str, verbs: [&str; 2], failures: u64) -> Vec<String> {
    let name = format!("failures-{}", verbs.join("-"));
    let input = create(&name);
    let producer = input::producer("20");
    for number in 0..failures {
        input::send(&producer, &input, input::key(number).as_bytes(), &value(verbs[number as usize % 2], number));
    }
    input::flush(&producer);
    let mut run = Run::start(&input);
    run.wait("the first commit", |positions| positions.iter().sum::<u64>() > 0);
    let (start, before) = (run.process.cost(), run.positions().iter().sum::<u64>());
    let mut sizes = Vec::new();
    for percent in LOOKS {
        run.wait("more failures", |positions| positions.iter().sum::<u64>() >= failures * percent / 100);
        sizes.push(run.process.resident_mib());
    }
    run.process.look();
    let end = run.process.cost();
    let dead = kafka::total(&run.dead_letters) as u64;
    assert!(dead >= failures, "each is a dead letter: {dead}");
    run.clear();
    kafka::delete_topic(&input);
    let (seconds, cpu, done) = (end.seconds - start.seconds, end.cpu_seconds - start.cpu_seconds, failures - before);
    let mut row = vec![
        format!("{} {what}", thousands(failures as f64)),
        thousands(done as f64 / seconds.max(1e-3)),
        format!("{:.1}", cpu * 1e6 / done.max(1) as f64),
    ];
    row.extend(sizes.iter().map(|mib| format!("{mib:.0}")));
    row.push(format!("{:.0}", end.peak_mib));
    row
}

impl Run {
    /// Everything that is not said is the default, but two workers.
    fn start(input: &str) -> Run {
        let dir = tempfile::Builder::new().prefix("pelton-bench-").tempdir().unwrap();
        let id = unique("bad");
        let output = format!("{id}.out");
        kafka::create_topic(&output, PARTITIONS, &[]);
        let (brokers, plugin, file) = (&broker().address, plugin("bad"), dir.path().join("app.toml"));
        let text = format!(
            "[application]\nid = {id:?}\nstate_dir = \"state\"\nworkers = 2\n\n[log]\nkind = \"kafka\"\nbrokers = {brokers:?}\n\n\
             [[processor]]\nname = \"bad\"\nplugin = {plugin:?}\ninputs.in = {input:?}\noutputs.out = {output:?}\n"
        );
        std::fs::write(&file, text).unwrap();
        let process = Process::start(Command::new(pelton()).arg("run").arg(&file), dir.path().join("log"));
        let group = format!("{id}-bad");
        let client = ClientConfig::new()
            .set("bootstrap.servers", &broker().address)
            .set("group.id", &group)
            .set("isolation.level", "read_uncommitted")
            .create()
            .expect("a client");
        Run {
            process,
            client,
            input: input.to_owned(),
            output,
            dead_letters: format!("{group}-dead-letters"),
            _dir: dir,
        }
    }

    /// What the group has committed of each partition.
    fn positions(&self) -> Vec<u64> {
        let mut list = TopicPartitionList::new();
        list.add_partition_range(&self.input, 0, PARTITIONS - 1);
        let committed = self.client.committed_offsets(list, LIMIT).expect("the group's offsets");
        committed.elements().iter().map(|e| e.offset().to_raw().unwrap_or(0).max(0) as u64).collect()
    }

    fn wait(&mut self, what: &str, mut ready: impl FnMut(&[u64]) -> bool) {
        let (mut news, mut seen) = (Instant::now(), Vec::new());
        loop {
            let positions = self.positions();
            if ready(&positions) {
                return;
            }
            if positions != seen {
                (seen, news) = (positions, Instant::now());
            }
            assert!(news.elapsed() < STALL, "{what}: nothing happens:\n{}", self.process.said());
            self.process.look();
            std::thread::sleep(LOOK);
        }
    }

    fn clear(self) {
        drop(self.process);
        [self.output, self.dead_letters].iter().for_each(|topic| kafka::delete_topic(topic));
    }
}

/// A topic with so many records of a kind in each partition.
fn topic(name: &str, of: impl Fn(usize) -> (u64, &'static str, usize)) -> String {
    let topic = create(name);
    let producer = input::producer("20");
    for partition in 0..PARTITIONS as usize {
        let (records, verb, partition) = of(partition);
        for number in 0..records {
            let (key, value) = (input::key(number), value(verb, number));
            let record = BaseRecord::to(&topic).partition(partition as i32).key(key.as_bytes()).payload(&value[..]);
            input::send_record(&producer, record);
        }
    }
    input::flush(&producer);
    topic
}

fn create(name: &str) -> String {
    let topic = format!("bench-{name}-{}", std::process::id());
    kafka::create_topic(&topic, PARTITIONS, &[]);
    topic
}

/// The verb, a number, and filling.
fn value(verb: &str, number: u64) -> Vec<u8> {
    let mut value = format!("{verb} #{number:012} ").into_bytes();
    value.resize(VALUE_BYTES, b'v');
    value
}
