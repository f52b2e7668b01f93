//! Whole jobs through the built binary, beside what they are compared with: a broker of their own, tables in Markdown.
//!
//! `make bench ONLY=echo` (or `count`, `latency`, `local`, `hostile`, `swap`); without: all. `docs/benchmarks.md` says what is measured, and has
//! the numbers.
//!
//! What may be set by environment: `FULL=1` (10 million records too), `BENCH_RECORDS`, `BENCH_ROUNDS`, `BENCH_SECONDS`, `BENCH_RATE`,
//! `BENCH_WARM_SECONDS`, `BENCH_FAILURES` (of `hostile`), `BENCH_SWAPS` (of `swap`), `BENCH_LINGER_MS` (of the raw loops), `BENCH_OUT` (a file that the tables are
//! appended to), `PELTON_BIN`, `PELTON_PLUGINS`, `PELTON_TEST_BROKERS`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a benchmark stops at what is wrong")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark says what it does and found")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

/// A process whose CPU time and memory are looked at.
mod process;
/// What the environment says.
mod settings;
/// What was found, as Markdown.
mod table;

/// Who runs a job on Kafka: Pelton, or a raw loop.
mod contender;
/// Records with a known answer.
mod input;
/// Whether an output is right.
mod verify;
/// How far a contender is.
mod watch;

mod hostile;
mod latency;
mod local;
mod swap;
mod throughput;

const SECTIONS: &[(&str, fn())] = &[
    ("local", local::run),
    ("echo", throughput::echo),
    ("count", throughput::count),
    ("latency", latency::run),
    ("hostile", hostile::run),
    ("swap", swap::run),
];

fn main() {
    // `cargo bench` adds words of its own, which begin with dashes.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for word in &wanted {
        assert!(
            SECTIONS.iter().any(|(name, _)| name == word),
            "no benchmark {word}: local, echo, count, latency, hostile, swap"
        );
    }
    for (name, run) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            eprintln!("== {name}");
            run();
        }
    }
}
