//! `pelton run`: the host, and at its end a summary of what it did.

use super::args::RunArgs;
use super::exit::Unfinished;
use super::host::End;
use super::{Out, host, load, logging};
use crate::metrics::{Registry, names};
use crate::model::{Clock, SystemClock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a run did.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    total: Counts,
    /// By name, in the file's order.
    processors: Vec<(String, Counts)>,
    took: Duration,
    /// Whether every input was worked off, where that is what it ran for.
    idle: Option<bool>,
    /// Lines that standard error did not take.
    lines_lost: u64,
}

/// What was done by one processor, or by all.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    records_in: u64,
    records_out: u64,
    restored: u64,
    /// By code.
    dead_letters: BTreeMap<String, u64>,
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
    let names: Vec<String> = application.processors.iter().map(|processor| processor.name.clone()).collect();
    let registry = Registry::default();
    registry.install();
    registry.read_from(names::LOG_LINES_LOST, || logging::lost() as f64);
    let clock = SystemClock::default();
    let page = registry.clone();
    let shown = Arc::new(move || page.render());
    let result = host::run(application, args.until_idle, shown);
    let mut summary = Summary::of(&registry, names, clock.monotonic());
    summary.idle = args.until_idle.then_some(result == Ok(End::Idle));
    let printed = if result.is_ok() || summary.total.records_in > 0 { summary.print(args.json, out) } else { Ok(()) };
    // why the host ended comes before why nobody could be told what it did
    result?;
    printed?;
    match summary.idle {
        Some(false) => Err(Unfinished(format!("{UNFINISHED}: the next run goes on there")).into()),
        _ => Ok(()),
    }
}

impl Summary {
    fn of(registry: &Registry, names: Vec<String>, took: Duration) -> Self {
        let total = Counts {
            records_in: registry.total(names::TASK_RECORDS_IN),
            records_out: registry.total(names::TASK_RECORDS_OUT),
            restored: registry.total(names::CHANGELOG_RECORDS_RESTORED),
            dead_letters: registry.by_label(names::DELIVERY_DEAD_LETTERS, names::CODE),
        };
        let processors = names.into_iter().map(|name| (name.clone(), Counts::of(registry, name))).collect();
        Summary { total, processors, took, idle: None, lines_lost: logging::lost() }
    }

    /// Input records per second of the whole run, start and end included.
    fn rate(&self) -> u64 {
        (self.total.records_in as f64 / self.took.as_secs_f64().max(1e-3)) as u64
    }

    fn print(&self, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
        if json { Ok(writeln!(out.to, "{}", self.json())?) } else { self.text(out) }
    }

    fn json(&self) -> Value {
        let mut all = self.total.json();
        let processors = self.processors.iter().map(|(name, counts)| {
            let mut own = counts.json();
            own["name"] = json!(name);
            own
        });
        all["processors"] = processors.collect();
        all["seconds"] = json!(self.took.as_secs_f64());
        all["records_per_second"] = json!(self.rate());
        all["log_lines_lost"] = json!(self.lines_lost);
        if let Some(idle) = self.idle {
            all["idle"] = json!(idle);
        }
        all
    }

    fn text(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        let total = &self.total;
        writeln!(out.to, "records in: {}", total.records_in)?;
        writeln!(out.to, "records out: {}", total.records_out)?;
        for (code, count) in &total.dead_letters {
            writeln!(out.to, "dead letters ({code}): {count}")?;
        }
        if total.restored > 0 {
            writeln!(out.to, "restored from changelogs: {}", total.restored)?;
        }
        // of one processor these are the totals
        for (name, counts) in self.processors.iter().filter(|_| self.processors.len() > 1) {
            writeln!(out.to, "processor {name}: {}", counts.line())?;
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
        match self.total.records_in {
            0 => "nothing new was processed".to_owned(),
            _ => format!("rate: {} records/s over {:.1} s", self.rate(), self.took.as_secs_f64()),
        }
    }
}

impl Counts {
    fn of(registry: &Registry, processor: String) -> Counts {
        let own = |metric| registry.by_label(metric, names::PROCESSOR).remove(&processor).unwrap_or_default();
        let letters = registry.by_labels(names::DELIVERY_DEAD_LETTERS, (names::PROCESSOR, names::CODE));
        Counts {
            records_in: own(names::TASK_RECORDS_IN),
            records_out: own(names::TASK_RECORDS_OUT),
            restored: own(names::CHANGELOG_RECORDS_RESTORED),
            dead_letters: letters
                .into_iter()
                .filter_map(|((name, code), count)| (name == processor).then_some((code, count)))
                .collect(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "records_in": self.records_in,
            "records_out": self.records_out,
            "restored": self.restored,
            "dead_letters": self.dead_letters,
        })
    }

    fn line(&self) -> String {
        let mut parts = vec![format!("in {}", self.records_in), format!("out {}", self.records_out)];
        let letters: u64 = self.dead_letters.values().sum();
        let more = [(letters, "dead letters"), (self.restored, "restored")];
        parts.extend(more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} {count}")));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ProcessorMetrics, Traffic};

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
        let total = Counts { records_in: 3000, records_out: 2998, restored: 0, dead_letters };
        let processors = vec![("p".to_owned(), Counts::default())];
        let summary = Summary { total, processors, took, ..Summary::default() };
        check(
            &summary,
            false,
            "records in: 3000\nrecords out: 2998\ndead letters (plugin): 2\nrate: 2000 records/s over 1.5 s\n",
        );
        let nothing = Summary { took, ..Summary::default() };
        check(&nothing, false, "records in: 0\nrecords out: 0\nnothing new was processed\n");
        let json = r#"{"dead_letters":{},"log_lines_lost":0,"processors":[],"records_in":0,"records_out":0,"records_per_second":0,"restored":0,"seconds":1.5}"#;
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
            serde_json::from_slice::<Value>(&text).unwrap()["idle"].clone()
        };
        assert_eq!([json(Some(true)), json(Some(false)), json(None)], [true.into(), false.into(), Value::Null]);
    }

    #[test]
    fn several_processors_have_a_line_each() {
        let registry = Registry::default();
        metrics_of(&registry);
        let names = ["a", "b", "idle"].map(str::to_owned).to_vec();
        let summary = Summary::of(&registry, names, Duration::from_secs(1));
        check(
            &summary,
            false,
            "records in: 14\nrecords out: 12\ndead letters (plugin): 3\ndead letters (trap): 1\n\
             processor a: in 10, out 9, dead letters 1\nprocessor b: in 4, out 3, dead letters 3\n\
             processor idle: in 0, out 0\nrate: 14 records/s over 1.0 s\n",
        );
        let json = summary.json();
        assert_eq!((&json["records_in"], &json["processors"][1]["records_in"]), (&json!(14), &json!(4)));
        assert_eq!(json["processors"][1]["dead_letters"], json!({"plugin": 2, "trap": 1}));
        assert_eq!(json["processors"][2]["name"], "idle");
    }

    fn metrics_of(registry: &Registry) {
        registry.during(|| {
            let (a, b) = (ProcessorMetrics::new("a"), ProcessorMetrics::new("b"));
            a.committed(Traffic { records_in: 10, records_out: 9, ..Traffic::default() });
            b.committed(Traffic { records_in: 4, records_out: 3, ..Traffic::default() });
            a.dead_letters("plugin", 1);
            b.dead_letters("plugin", 2);
            b.dead_letters("trap", 1);
        });
    }
}
