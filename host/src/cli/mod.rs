//! Verbs, printing and exit codes: the only room that names clap and anyhow and writes to standard output.

mod admin;
mod args;
mod build;
mod bytes;
mod check;
mod consume;
mod dlq;
mod exit;
mod host;
mod inspect;
mod line;
mod logging;
mod one_line;
mod produce;
mod progress;
mod run;
mod stdout;
mod table;
mod time;
mod topics;
mod topology;

#[cfg(test)]
mod tests;

use crate::config::{self, Application};
use args::{Cli, Verb};
use clap::Parser;
use logging::say;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Where a verb prints its result.
struct Out<'a> {
    to: &'a mut dyn Write,
    /// Whether a person is looking.
    terminal: bool,
}

/// Parses the command line, does what it says, and returns the exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE } else { exit::OK };
        }
    };
    let started = logging::start(cli.log_format, matches!(cli.verb, Verb::Run(_)));
    let result = started.map_err(anyhow::Error::from).and_then(|()| printed(&cli.verb));
    let code = result.map_or_else(|error| report(&error), |()| exit::OK);
    logging::finish();
    code
}

/// Does what a verb says, with its result on standard output.
fn printed(verb: &Verb) -> anyhow::Result<()> {
    let mut stdout = BufWriter::new(stdout::Stdout::default());
    let mut out = Out { to: &mut stdout, terminal: io::stdout().is_terminal() };
    let result = perform(verb, &mut out);
    let flushed = stdout.flush();
    // what the verb failed of comes first; it may be the same
    result.and_then(|()| Ok(flushed?))
}

fn perform(verb: &Verb, out: &mut Out<'_>) -> anyhow::Result<()> {
    match verb {
        Verb::Run(args) => run::run(args, out),
        Verb::Check(args) => check::check(args, out),
        Verb::Build(args) => build::build(args, out),
        Verb::Inspect(args) => inspect::inspect(args, out),
        Verb::Produce(args) => produce::produce(args),
        Verb::Consume(args) => consume::consume(args, out),
        Verb::Topics(args) => topics::topics(args, out),
        Verb::Dlq(args) => dlq::dlq(args, out),
        Verb::Topology(args) => topology::topology(args, out),
        Verb::Status(args) => admin::status(args, out),
        Verb::Lag(args) => admin::lag(args, out),
        Verb::State(args) => admin::state(args, out),
        Verb::Pause(args) => admin::pause(args, out),
        Verb::Resume(args) => admin::resume(args, out),
        Verb::Deploy(args) => admin::deploy(args, out),
        Verb::Rollback(args) => admin::rollback(args, out),
        Verb::History(args) => admin::history(args, out),
    }
}

/// Loads an application file.
fn load(file: &Path) -> anyhow::Result<Application> {
    Ok(config::load(file)?)
}

/// Tells of an error, and gives the exit code.
fn report(error: &anyhow::Error) -> u8 {
    if exit::is_closed_pipe(error) {
        return exit::OK;
    }
    logging::say_error(&format!("{error:#}"));
    exit::code(error)
}
