//! `pelton run`: the host, and at its end a summary of what it did.

use super::args::RunArgs;
use super::{Out, host, load};
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
}

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
    let summary = Summary::of(&registry, clock.monotonic());
    if result.is_ok() || summary.records_in > 0 {
        summary.print(args.json, out)?;
    }
    Ok(result?)
}

impl Summary {
    fn of(registry: &Registry, took: Duration) -> Self {
        Summary {
            records_in: registry.total(names::TASK_RECORDS_IN),
            records_out: registry.total(names::TASK_RECORDS_OUT),
            restored: registry.total(names::CHANGELOG_RECORDS_RESTORED),
            dead_letters: registry.by_label(names::DELIVERY_DEAD_LETTERS, names::CODE),
            took,
        }
    }

    /// Input records per second of the whole run, start and end included.
    fn rate(&self) -> u64 {
        (self.records_in as f64 / self.took.as_secs_f64().max(1e-3)) as u64
    }

    fn print(&self, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
        if json {
            let all = serde_json::json!({
                "records_in": self.records_in,
                "records_out": self.records_out,
                "restored": self.restored,
                "dead_letters": self.dead_letters,
                "seconds": self.took.as_secs_f64(),
                "records_per_second": self.rate(),
            });
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
        let rate = match self.records_in {
            0 => "nothing new was processed".to_owned(),
            _ => format!("rate: {} records/s over {:.1} s", self.rate(), self.took.as_secs_f64()),
        };
        Ok(writeln!(out.to, "{rate}")?)
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
        let summary = Summary { records_in: 3000, records_out: 2998, restored: 0, dead_letters, took };
        check(
            &summary,
            false,
            "records in: 3000\nrecords out: 2998\ndead letters (plugin): 2\nrate: 2000 records/s over 1.5 s\n",
        );
        let nothing = Summary { took, ..Summary::default() };
        check(&nothing, false, "records in: 0\nrecords out: 0\nnothing new was processed\n");
        let json =
            r#"{"dead_letters":{},"records_in":0,"records_out":0,"records_per_second":0,"restored":0,"seconds":1.5}"#;
        check(&nothing, true, &format!("{json}\n"));
    }
}
