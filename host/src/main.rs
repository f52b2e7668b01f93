//! Parses, runs, maps to an exit code.

fn main() {}
