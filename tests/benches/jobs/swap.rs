//! What a swap costs: how long the outputs of a partition stop where one version of a stateful plugin takes over from another, under load,
//! and how long a deploy takes.

use crate::process::Process;
use crate::settings::{KEYS, PARTITIONS, number, pelton};
use crate::table::{Table, median, thousands};
use pelton_tests::admin::Admin;
use pelton_tests::app::{App, Log, Processor};
use pelton_tests::load::Feed;
use pelton_tests::versions::{Version, maker};
use pelton_tests::wait::{self, secs};
use pelton_tests::{Rec, Rng, kafka};
use std::process::Command;
use std::time::{Duration, Instant};

const COLUMNS: &[&str] = &["what", "how many", "median ms", "p99 ms", "longest ms"];
/// Between two deploys.
const REST: Duration = Duration::from_millis(300);

pub(crate) fn run() {
    let (swaps, rate) = (number("BENCH_SWAPS", 100) as u32, number("BENCH_RATE", 20_000));
    let app = app();
    let feed = Feed::start(app.topic("in"), Rng::seeded("swap"), KEYS, rate);
    let mut command = Command::new(pelton());
    command.arg("run").arg(app.file()).arg("--state-dir").arg(app.state_dir(1));
    let mut process = Process::start(&mut command, app.dir().join("log"));
    let admin = Admin::of(&app, 1, process.id());
    admin.ready();
    wait::until("outputs come", secs(60), || (kafka::total(&app.topic("out")) > rate as i64).then_some(()));
    let before = process.resident_mib();
    let deploys: Vec<f64> = (2..swaps + 2).map(|n| deploy(&admin, n)).collect();
    let after = process.resident_mib();
    let sent = feed.stop().len();
    wait::until("all is worked off", secs(120), || (kafka::total(&app.topic("out")) >= sent as i64).then_some(()));
    process.look();
    let (at_swaps, elsewhere) = gaps(&app.read("out"));
    let title = format!(
        "{swaps} swaps at {} records/s, {PARTITIONS} partitions, {} keys",
        thousands(rate as f64),
        thousands(KEYS as f64)
    );
    let mut table = Table::new(&title, "make bench ONLY=swap", COLUMNS);
    table.row(&row("between the last output of a version and the first of the next, in a partition", at_swaps));
    table.row(&row("between any other two outputs of a partition", elsewhere));
    table.row(&row("a deploy, from the request to all tasks changed", deploys));
    table.note(&format!(
        "Times of outputs are those of the broker. Resident memory {before:.0} MiB before, {after:.0} MiB after."
    ));
    table.print();
}

fn app() -> App {
    let topics = ["in", "dead"].iter().fold(App::draft(Log::Kafka, "bench-swap"), |d, t| d.topic(t, PARTITIONS));
    let draft = topics.topic("out", PARTITIONS).topic_setting("out", "message.timestamp.type", "LogAppendTime");
    let processor = Processor::new("versioned").input("in", "in").output("out", "out").dead_letters("dead");
    let app = draft.processor(processor).ready();
    let file = Version::of(1).file(app.dir());
    app.set_processor(&["plugin"], file.to_str().unwrap());
    app
}

/// How long it took, in milliseconds.
fn deploy(admin: &Admin, number: u32) -> f64 {
    std::thread::sleep(REST);
    let (bytes, start) = (Version::of(number).bytes(), Instant::now());
    let headers = "Content-Type: application/wasm\r\n";
    let reply = admin.ask("POST", "/v1/processors/versioned/deploy", headers, &bytes);
    assert_eq!(reply.status, 200, "{reply:?}");
    start.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds between neighbours of a partition: where the version changes, and elsewhere.
fn gaps(outputs: &[Rec]) -> (Vec<f64>, Vec<f64>) {
    let (mut swaps, mut others) = (Vec::new(), Vec::new());
    for pair in outputs.windows(2).filter(|pair| pair[0].partition == pair[1].partition) {
        let gap = (pair[1].timestamp - pair[0].timestamp) as f64;
        if maker(&pair[0]) == maker(&pair[1]) { others.push(gap) } else { swaps.push(gap) }
    }
    (swaps, others)
}

fn row(what: &str, mut values: Vec<f64>) -> Vec<String> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)));
    let show = |value: Option<&f64>| value.map_or_else(String::new, |value| format!("{value:.0}"));
    let middle = format!("{:.0}", median(values.iter().copied()));
    vec![what.to_owned(), thousands(values.len() as f64), middle, show(at(0.99)), show(values.last())]
}
