//! `pelton status`: what a host is doing.

use super::args::StatusArgs;
use super::{Client, Failure, find, line, number, short};
use crate::cli::bytes::one_line;
use crate::cli::table::{Cell, Colour, Table};
use crate::cli::{Out, time};
use crate::runtime::control::{ProcessorState, ProcessorStatus, Status, TaskState, TaskStatus};
use std::time::Duration;

/// Failures of a processor that the table has room for; JSON has them all.
const FAILURES: usize = 5;
/// Clears a terminal and goes to its first line.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

pub(in crate::cli) fn status(args: &StatusArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let client = find(&args.at)?;
    if !args.watch {
        return show(&ask(&client)?, args.at.json, out);
    }
    loop {
        if out.terminal && !args.at.json {
            write!(out.to, "{CLEAR}")?;
        }
        // the address may be another one after a restart
        match find(&args.at).and_then(|client| Ok(ask(&client)?)) {
            Ok(status) => show(&status, args.at.json, out)?,
            Err(error) if is_passing(&error) => away(&error, args.at.json, out)?,
            Err(error) => return Err(error),
        }
        out.to.flush()?;
        std::thread::sleep(Duration::from_secs(args.every));
    }
}

fn ask(client: &Client) -> Result<Status, Failure> {
    client.get(&["v1", "status"], &[])
}

/// Whether a host may be there again in a moment.
fn is_passing(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Refused { status, .. }) => *status >= 500,
        Some(_) => true,
        None => false,
    }
}

fn away(error: &anyhow::Error, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    if json { line(&serde_json::json!({"away": error.to_string()}), out) } else { Ok(writeln!(out.to, "{error}")?) }
}

pub(super) fn show(status: &Status, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    if json {
        return line(status, out);
    }
    let Status { application, instance, pid, release, log, .. } = status;
    let up = Duration::from_millis(status.now_ms.abs_diff(status.started_ms));
    writeln!(
        out.to,
        "application {application} on {log}: host {instance}, process {pid}, Pelton {release}, up {}",
        span(up)
    )?;
    writeln!(out.to, "{}", if status.ready { "ready" } else { "not ready" })?;
    for reason in &status.reasons {
        writeln!(out.to, "  {}", one_line(reason))?;
    }
    writeln!(out.to)?;
    processors(status).print(out)?;
    print_under(&tasks(status), out)?;
    print_under(&failures(status), out)
}

fn print_under(table: &Table, out: &mut Out<'_>) -> anyhow::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    writeln!(out.to)?;
    table.print(out)
}

fn processors(status: &Status) -> Table {
    let mut table = Table::new(&["processor", "state", "lag", "tasks", "version", "plugin", "digest"]);
    for processor in &status.processors {
        let ProcessorStatus { name, version, tasks, partitions, .. } = processor;
        table.row(vec![
            name.into(),
            state(processor),
            number(processor.lag).into(),
            format!("{} of {partitions}", tasks.len()).into(),
            version.sequence.to_string().into(),
            format!("{} {}", version.plugin, version.version).into(),
            short(&version.digest).into(),
        ]);
    }
    table
}

fn state(processor: &ProcessorStatus) -> Cell {
    let (word, colour) = match processor.state {
        ProcessorState::Running => ("running", Colour::Good),
        ProcessorState::Paused => ("paused", Colour::Odd),
        ProcessorState::Stopped => ("stopped", Colour::Bad),
    };
    match &processor.reason {
        Some(reason) => Cell::coloured(format!("{word}: {}", one_line(reason)), colour),
        None => Cell::coloured(word, colour),
    }
}

fn tasks(status: &Status) -> Table {
    let mut table = Table::new(&["task", "state", "lag", "parked", "open bytes", "why"]);
    for processor in &status.processors {
        for task in &processor.tasks {
            let lag = task.inputs.iter().map(|input| input.lag).sum::<Option<i64>>();
            table.row(vec![
                format!("{}/{}", processor.name, task.partition).into(),
                task_state(task),
                number(lag).into(),
                task.parked.to_string().into(),
                task.overlay_bytes.to_string().into(),
                why(task).into(),
            ]);
        }
    }
    table
}

fn task_state(task: &TaskStatus) -> Cell {
    match task.state {
        TaskState::Opening => Cell::coloured("opening", Colour::Odd),
        TaskState::Restoring => Cell::coloured("restoring", Colour::Odd),
        TaskState::Running => Cell::coloured("running", Colour::Good),
        TaskState::BackingOff => Cell::coloured("backing off", Colour::Odd),
        TaskState::Halted => Cell::coloured("halted", Colour::Bad),
    }
}

fn why(task: &TaskStatus) -> String {
    let restore = task.restore.as_ref().map(|restore| {
        format!("{} of {} changelog records, {:.0}/s", restore.done, restore.target, restore.records_per_second)
    });
    let old = task.age_ms.map(|ms| format!("its worker is silent; this is {} old", span(Duration::from_millis(ms))));
    let reason = task.reason.as_deref().map(one_line);
    [restore, reason, old].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn failures(status: &Status) -> Table {
    let mut table = Table::new(&["last failures", "processor", "code", "record", "message"]);
    for processor in &status.processors {
        for failure in processor.failures.iter().take(FAILURES) {
            table.row(vec![
                time::show(failure.time_ms).into(),
                processor.name.clone().into(),
                one_line(&failure.code).into(),
                failure.place.clone().unwrap_or_else(|| "-".to_owned()).into(),
                one_line(&failure.message).into(),
            ]);
        }
    }
    table
}

/// `3d 4h`, `4h 12m`, `12m 3s`, `3.2s`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match seconds {
        86_400.. => format!("{days}d {hours}h"),
        3600.. => format!("{hours}h {minutes}m"),
        60.. => format!("{minutes}m {}s", seconds % 60),
        _ => format!("{:.1}s", span.as_secs_f64()),
    }
}
