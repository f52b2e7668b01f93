//! `pelton run`: the host, and at its end a summary of what it did.

use super::args::RunArgs;
use super::exit::Unfinished;
use super::host::End;
use super::{Out, host, load, logging};
use crate::metrics::{Registry, names};
use crate::model::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a run did.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    records_in: u64,
    records_out: u64,
    restored: u64,
    /// By code.
    dead_letters: BTreeMap<String, u64>,
    took: Duration,
    /// Whether every input was worked off, where that is what it ran for.
    idle: Option<bool>,
    /// Lines that standard error did not take.
    lines_lost: u64,
}

/// What is told of a run that was to go on until it is idle, and did not.
const UNFINISHED: &str = "stopped before every input was worked off";

pub(super) fn run(args: &RunArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut application = load(&args.file)?;
    if let Some(folder) = &args.state_dir {
        application.state_dir = std::path::absolute(folder)?;
    }
    if let Some(workers) = args.workers {
        application.workers = usize::from(workers);
    }
    application.new_stores.clone_from(&args.new_store);
    let registry = Registry::default();
    registry.install();
    let clock = SystemClock::default();
    let result = host::run(application, args.until_idle);
    let mut summary = Summary::of(&registry, clock.monotonic());
    summary.idle = args.until_idle.then_some(result == Ok(End::Idle));
    let printed = if result.is_ok() || summary.records_in > 0 { summary.print(args.json, out) } else { Ok(()) };
    // why the host ended comes before why nobody could be told what it did
    result?;
    printed?;
    match summary.idle {
        Some(false) => Err(Unfinished(format!("{UNFINISHED}: the next run goes on there")).into()),
        _ => Ok(()),
    }
}

impl Summary {
    fn of(registry: &Registry, took: Duration) -> Self {
        Summary {
            records_in: registry.total(names::TASK_RECORDS_IN),
            records_out: registry.total(names::TASK_RECORDS_OUT),
            restored: registry.total(names::CHANGELOG_RECORDS_RESTORED),
            dead_letters: registry.by_label(names::DELIVERY_DEAD_LETTERS, names::CODE),
            took,
            idle: None,
            lines_lost: logging::lost(),
        }
    }

    /// Input records per second of the whole run, start and end included.
    fn rate(&self) -> u64 {
        (self.records_in as f64 / self.took.as_secs_f64().max(1e-3)) as u64
    }

    fn print(&self, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
        if json {
            let mut all = serde_json::json!({
                "records_in": self.records_in,
                "records_out": self.records_out,
                "restored": self.restored,
                "dead_letters": self.dead_letters,
                "seconds": self.took.as_secs_f64(),
                "records_per_second": self.rate(),
                "log_lines_lost": self.lines_lost,
            });
            if let Some(idle) = self.idle {
                all["idle"] = idle.into();
            }
            return Ok(writeln!(out.to, "{all}")?);
        }
        writeln!(out.to, "records in: {}", self.records_in)?;
        writeln!(out.to, "records out: {}", self.records_out)?;
        for (code, count) in &self.dead_letters {
            writeln!(out.to, "dead letters ({code}): {count}")?;
        }
        if self.restored > 0 {
            writeln!(out.to, "restored from changelogs: {}", self.restored)?;
        }
        if self.lines_lost > 0 {
            writeln!(out.to, "log lines lost: {}", self.lines_lost)?;
        }
        writeln!(out.to, "{}", self.outcome())?;
        match self.idle {
            Some(false) => Ok(writeln!(out.to, "{UNFINISHED}")?),
            _ => Ok(()),
        }
    }

    fn outcome(&self) -> String {
        match self.records_in {
            0 => "nothing new was processed".to_owned(),
            _ => format!("rate: {} records/s over {:.1} s", self.rate(), self.took.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(summary: &Summary, json: bool, expected: &str) {
        let mut text = Vec::new();
        summary.print(json, &mut Out { to: &mut text, terminal: false }).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn the_summary() {
        let dead_letters = BTreeMap::from([("plugin".to_owned(), 2)]);
        let took = Duration::from_millis(1500);
        let summary = Summary { records_in: 3000, records_out: 2998, dead_letters, took, ..Summary::default() };
        check(
            &summary,
            false,
            "records in: 3000\nrecords out: 2998\ndead letters (plugin): 2\nrate: 2000 records/s over 1.5 s\n",
        );
        let nothing = Summary { took, ..Summary::default() };
        check(&nothing, false, "records in: 0\nrecords out: 0\nnothing new was processed\n");
        let json = r#"{"dead_letters":{},"log_lines_lost":0,"records_in":0,"records_out":0,"records_per_second":0,"restored":0,"seconds":1.5}"#;
        check(&nothing, true, &format!("{json}\n"));
    }

    #[test]
    fn a_run_that_was_stopped_before_its_end_says_so() {
        let stopped = Summary { idle: Some(false), lines_lost: 3, ..Summary::default() };
        check(
            &stopped,
            false,
            "records in: 0\nrecords out: 0\nlog lines lost: 3\nnothing new was processed\nstopped before every input was worked off\n",
        );
        let json = |idle| {
            let mut text = Vec::new();
            let summary = Summary { idle, ..Summary::default() };
            summary.print(true, &mut Out { to: &mut text, terminal: false }).unwrap();
            serde_json::from_slice::<serde_json::Value>(&text).unwrap()["idle"].clone()
        };
        assert_eq!(
            [json(Some(true)), json(Some(false)), json(None)],
            [true.into(), false.into(), serde_json::Value::Null]
        );
    }
}
