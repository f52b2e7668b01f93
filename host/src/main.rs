//! Parses, runs, maps to an exit code.

use std::process::ExitCode;

// State and records are many small allocations on many threads, which fragment glibc's heap.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    ExitCode::from(pelton::cli::main(std::env::args_os()))
}
