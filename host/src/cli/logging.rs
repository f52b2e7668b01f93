//! Log lines: text for people or JSON for machines, on standard error, filtered by `PELTON_LOG`.

use super::args::LogFormat;
use super::exit::Usage;
use super::host::Lines;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The environment variable that says which lines are shown.
const FILTER: &str = "PELTON_LOG";
/// How long the end of a process waits for its last lines to be taken.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The way to standard error of this process.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Sets up logging for the process. A host tells what it does; other verbs only what is odd.
pub(super) fn start(format: LogFormat, is_host: bool) -> Result<(), Usage> {
    let filter = filter(std::env::var_os(FILTER), if is_host { "info" } else { "warn" })?;
    let Ok(to) = Lines::to(io::stderr()) else {
        return Err(Usage("no thread can be started that writes the log".to_owned()));
    };
    let to = LINES.get_or_init(|| to);
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| to.clone());
    // it would tell of a line that fails on standard error, and panic where that fails too
    let lines = lines.log_internal_errors(false);
    let set = match format {
        LogFormat::Text => lines.with_ansi(colours()).with_target(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    // Only a test that starts a second time gets here, and the first one's lines will do.
    drop(set);
    Ok(())
}

/// Tells a person something beside the result. Standard error may be closed; then nobody is there to tell.
pub(super) fn say(line: &str) {
    let line = format!("{line}\n");
    match LINES.get() {
        Some(lines) => lines.say(line.as_bytes()),
        None => drop(io::stderr().lock().write_all(line.as_bytes())),
    }
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
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<String, String> {
        filter(Some(text.into()), "info").map(|filter| filter.to_string()).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn what_says_a_level_is_taken() {
        for right in
            ["debug", "WARN", "pelton::task=trace,info", "off", "plugin=off, debug", "info,", "pelton[{task}]=debug"]
        {
            assert!(asked(right).is_ok(), "{right}: {:?}", asked(right));
        }
        for nothing in ["", " "] {
            assert_eq!(asked(nothing).as_deref(), Ok("info"));
        }
        assert_eq!(filter(None, "warn").unwrap().to_string(), "warn");
    }

    #[test]
    fn what_would_show_nothing_is_refused_with_what_is_right() {
        for wrong in ["debgu", "pelton", "info,pelton::task", "pelton=debgu", "verbose,info"] {
            let said = asked(wrong).expect_err(wrong);
            assert!(said.starts_with(&format!("PELTON_LOG=`{wrong}`: ")) && said.contains("TARGET=LEVEL"), "{said}");
        }
    }
}
