//! Log lines: text for people or JSON for machines, on standard error, filtered by `PELTON_LOG`.

use super::args::LogFormat;
use super::exit::Usage;
use super::host::Lines;
use super::one_line::OneLine;
use super::time;
use crate::model::{Clock, SystemClock};
use clap::ValueEnum;
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that says which lines are shown.
const FILTER: &str = "PELTON_LOG";
/// The environment variable that says how they look.
const FORMAT: &str = "PELTON_LOG_FORMAT";
/// How long the end of a process waits for its last lines to be taken.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The way to standard error of this process.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Whether lines of this process are JSON.
static JSON: OnceLock<bool> = OnceLock::new();

/// Sets up logging for the process, in the format that the command line or else the environment says. A host tells what it does; other
/// verbs only what is odd.
pub(super) fn start(asked: Option<LogFormat>, is_host: bool) -> Result<(), Usage> {
    let format = format(asked, std::env::var_os(FORMAT))?;
    let _ = JSON.set(format == LogFormat::Json);
    let filter = filter(std::env::var_os(FILTER), if is_host { "info" } else { "warn" })?;
    let Ok(to) = Lines::to(io::stderr()) else {
        return Err(Usage("no thread can be started that writes the log".to_owned()));
    };
    let to = LINES.get_or_init(|| to);
    // Only a test that starts a second time is refused, and the first one's lines will do.
    let _ = subscriber(format, filter, colours(), || to.clone()).try_init();
    if format == LogFormat::Json {
        panics_as_lines();
    }
    Ok(())
}

/// What writes lines of one format. Each is one line, whatever is in it.
fn subscriber<W: Write + 'static>(
    format: LogFormat,
    filter: EnvFilter,
    colours: bool,
    to: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    // it would tell of a line that fails on standard error, and panic where that fails too
    let lines = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    match format {
        LogFormat::Text => {
            let to = move || OneLine { to: to(), colours };
            Box::new(lines.with_ansi(colours).with_target(false).with_writer(to).finish())
        }
        // JSON escapes by itself what could end its line
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_writer(to).finish()),
    }
}

/// A panic is told on several lines by default, which no reader of JSON takes.
fn panics_as_lines() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("panic without a text");
        let thread = std::thread::current().name().unwrap_or("without a name").to_owned();
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(thread, place, "panicked: {message}");
    }));
}

/// Tells a person something beside the result. Standard error may be closed; then nobody is there to tell.
pub(super) fn say(line: &str) {
    let line = format!("{line}\n");
    match LINES.get() {
        Some(lines) => lines.say(line.as_bytes()),
        None => drop(io::stderr().lock().write_all(line.as_bytes())),
    }
}

/// Tells why a verb failed.
pub(super) fn say_error(error: &str) {
    if *JSON.get().unwrap_or(&false) {
        say(&json!({"timestamp": time::show(SystemClock::default().wall_ms()), "level": "ERROR", "message": error})
            .to_string());
        return;
    }
    let label = if colours() { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
    error.lines().for_each(|line| say(&format!("{label} {line}")));
}

/// Waits for the last lines, though not for ever.
pub(super) fn finish() {
    if let Some(lines) = LINES.get() {
        lines.drain(LAST_LINES);
    }
}

/// How many lines standard error did not take.
pub(super) fn lost() -> u64 {
    LINES.get().map_or(0, Lines::lost)
}

/// Whether standard error is a terminal whose owner wants colours (<https://no-color.org>).
pub(super) fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// What the command line asks for, or else the variable.
fn format(asked: Option<LogFormat>, variable: Option<OsString>) -> Result<LogFormat, Usage> {
    let named = variable.filter(|_| asked.is_none()).map(|named| named.to_string_lossy().trim().to_owned());
    match (asked, named.as_deref()) {
        (Some(format), _) => Ok(format),
        (None, None | Some("")) => Ok(LogFormat::Text),
        (None, Some(named)) => LogFormat::from_str(named, true)
            .map_err(|_| Usage(format!("{FORMAT}=`{named}` is no format of log lines (text or json)"))),
    }
}

/// What the variable asks for; `level` where it is not set.
fn filter(asked: Option<OsString>, level: &str) -> Result<EnvFilter, Usage> {
    let asked = asked.map(|asked| asked.into_string().map_err(|asked| refused(&asked.to_string_lossy(), "no text")));
    let asked = asked.transpose()?.filter(|asked| !asked.trim().is_empty());
    let asked = asked.unwrap_or_else(|| level.to_owned());
    if let Some(word) = bare(&asked) {
        return Err(refused(&asked, &format!("`{word}` is no level")));
    }
    EnvFilter::try_new(&asked).map_err(|error| refused(&asked, &error.to_string()))
}

/// A part that is neither a level nor TARGET=LEVEL. The library takes it for the name of a target, and then nothing is shown.
fn bare(asked: &str) -> Option<&str> {
    // parts with spans have commas and equals signs of their own
    let mut parts = if asked.contains('[') { "" } else { asked }.split(',').map(str::trim);
    parts.find(|part| !part.is_empty() && !part.contains('=') && part.parse::<LevelFilter>().is_err())
}

fn refused(asked: &str, why: &str) -> Usage {
    Usage(format!(
        "{FILTER}=`{asked}`: {why} (a level is off, error, warn, info, debug or trace; parts, with commas between them, are LEVEL or \
         TARGET=LEVEL, such as `pelton::task=trace,info`)"
    ))
}

#[cfg(test)]
mod tests;
