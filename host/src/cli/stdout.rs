//! Standard output, whose errors say so.

use std::io::{self, Write};

pub(super) struct Stdout<'a>(io::StdoutLock<'a>);

impl Default for Stdout<'_> {
    fn default() -> Self {
        Stdout(io::stdout().lock())
    }
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// The kind stays: a pipe that was closed is no mistake.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        // who writes tries again
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("writing to standard output: {error}")),
    }
}
