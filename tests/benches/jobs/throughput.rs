//! How many records a second, and for how much CPU time: Pelton and the raw loops in turn, on the same input.

use crate::contender::{Contender, Job, Kind};
use crate::process::Cost;
use crate::settings::{full, number};
use crate::table::{Table, median, thousands};
use crate::{input, verify, watch};
use pelton_tests::kafka;
use std::time::Duration;

const COLUMNS: &[&str] = &[
    "what",
    "records/s",
    "records per CPU-second",
    "the same, whole process",
    "the same, second half",
    "CPU-seconds, whole process",
    "peak MiB",
];
/// A host that ends when idle looks twice, and waits for nothing else.
const ENDING: Duration = Duration::from_secs(120);

/// One run.
struct Outcome {
    whole: watch::Stretch,
    second_half: watch::Stretch,
    cost: Cost,
}

pub(crate) fn echo() {
    compare(Job::Echo, number("BENCH_RECORDS", 2_000_000), number("BENCH_ROUNDS", 3));
}

pub(crate) fn count() {
    compare(Job::Count, number("BENCH_RECORDS", 2_000_000), number("BENCH_ROUNDS", 3));
    if full() {
        compare(Job::Count, 10_000_000, 1);
    }
}

fn compare(job: Job, records: u64, rounds: u64) {
    let contenders = [Kind::Pelton, Kind::Poll, Kind::Batch].map(|kind| Contender { kind, job, commit_ms: 100 });
    let input = input::load(records);
    let mut outcomes: Vec<Vec<Outcome>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds as usize {
        // In turn, and each of them first once.
        for step in 0..contenders.len() {
            let who = (round + step) % contenders.len();
            outcomes[who].push(run(&contenders[who], &input, records));
        }
    }
    kafka::delete_topic(&input);
    report(job, records, &contenders, &outcomes);
}

fn run(contender: &Contender, input: &str, records: u64) -> Outcome {
    let mut run = contender.start(input, Some(records));
    let watched = watch::watch(&mut run, input, records);
    let cost = run.process.finish(ENDING);
    let outcome = Outcome { whole: watched.whole(), second_half: watched.second_half(), cost };
    eprintln!(
        "{}: {} records/s, {} per CPU-second; whole process {:.1} s, {:.1} CPU-seconds",
        contender.name(),
        thousands(outcome.whole.per_second()),
        thousands(outcome.whole.per_cpu_second()),
        cost.seconds,
        cost.cpu_seconds,
    );
    verify::output(&run, contender.job, records);
    run.clear();
    outcome
}

fn report(job: Job, records: u64, contenders: &[Contender], outcomes: &[Vec<Outcome>]) {
    let title =
        format!("Kafka, `{}`, {} records, median of {}", job.name(), thousands(records as f64), outcomes[0].len());
    let full = if records > 2_000_000 { " FULL=1" } else { "" };
    let mut table = Table::new(&title, &format!("make bench ONLY={}{full}", job.name()), COLUMNS);
    for (contender, outcomes) in contenders.iter().zip(outcomes) {
        table.row(&row(contender.name(), records, outcomes));
    }
    let rate = |place: usize| median(outcomes[place].iter().map(|o| o.whole.per_second()));
    let against = |place: usize| format!("{:.2} of {}", rate(0) / rate(place), contenders[place].name());
    table.note(&format!("Pelton's records/s: {}; {}.", against(1), against(2)));
    table.print();
}

fn row(name: &str, records: u64, outcomes: &[Outcome]) -> Vec<String> {
    let middle = |value: &dyn Fn(&Outcome) -> f64| median(outcomes.iter().map(value));
    vec![
        name.to_owned(),
        thousands(middle(&|o| o.whole.per_second())),
        thousands(middle(&|o| o.whole.per_cpu_second())),
        thousands(middle(&|o| records as f64 / o.cost.cpu_seconds)),
        second_half(outcomes),
        format!("{:.2}", middle(&|o| o.cost.cpu_seconds)),
        format!("{:.0}", middle(&|o| o.cost.peak_mib)),
    ]
}

/// Nothing where it was too short for the ticks of the clock.
fn second_half(outcomes: &[Outcome]) -> String {
    let long = outcomes.iter().all(|o| o.second_half.cpu_seconds >= 0.1);
    if long { thousands(median(outcomes.iter().map(|o| o.second_half.per_cpu_second()))) } else { "–".to_owned() }
}
