//! Log lines: text for people or JSON for machines, on standard error, filtered by `PELTON_LOG`.

use super::args::LogFormat;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// The environment variable that says which lines are shown.
const FILTER: &str = "PELTON_LOG";

/// Sets up logging for the process. A host tells what it does; other verbs only what is odd.
pub(super) fn start(format: LogFormat, is_host: bool) {
    let level = if is_host { "info" } else { "warn" };
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let set = match format {
        LogFormat::Text => lines.with_ansi(colours()).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    // Only a test that starts a second time gets here, and the first one's lines will do.
    drop(set);
}

/// Whether standard error is a terminal whose owner wants colours (<https://no-color.org>).
pub(super) fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
