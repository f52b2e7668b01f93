//! What the benchmarks compare with: a loop over rdkafka in a group, exactly once, with the traps avoided that cost it a factor. A process of
//! its own, so that its CPU time is its own; with the allocator that the product has.
//!
//! usage: raw_loop brokers=.. group=.. input=.. output=.. [mode=poll|batch] [job=echo|count] [changelog=..] [records=N]
//!        [commit_ms=100] [linger_ms=0]
//!
//! It ends after the commit of record N, or never. Headers are not carried over: the inputs of the benchmarks have none.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a benchmark stops at what is wrong")]
#![allow(clippy::disallowed_methods, reason = "commits are paced by real time")]

mod batch;
/// What is done to a record.
mod logic;
/// What rdkafka does not wrap.
mod native;
mod options;
mod poll;
/// Transactions and when they end.
mod transactions;

use options::{Mode, Options};

// librdkafka allocates records in one thread and frees them in another; glibc's malloc costs a quarter more CPU time there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let options = Options::from_args();
    match options.mode {
        Mode::Poll => poll::run(&options),
        Mode::Batch => batch::run(&options),
    }
    // Leaving the group takes time that is nobody's business here.
    std::process::exit(0);
}
