//! `pelton topics`: the topics of an application's log, and where their partitions end.

use super::args::TopicsArgs;
use super::{Out, host, load};
use crate::config::names::is_internal;
use crate::config::{Application, Processor};
use crate::model::log::{Ends, Log, TopicInfo};
use crate::model::{Fault, TopicPartition, ids};
use serde_json::json;

pub(super) fn topics(args: &TopicsArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let application = load(&args.file)?;
    let log = host::look_at_log(&application)?;
    list(&application, &*log, args.json, out)
}

/// One topic as it is shown.
struct Row {
    name: String,
    internal: bool,
    compacted: bool,
    ends: Vec<Ends>,
}

pub(super) fn list(application: &Application, log: &dyn Log, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut infos = log.topics()?;
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    let rows = infos.iter().map(|info| row(application, log, info)).collect::<Result<Vec<_>, Fault>>()?;
    if json {
        return rows.iter().try_for_each(|row| row.json(out));
    }
    let width = rows.iter().map(|r| r.name.len()).max().unwrap_or(0).max("topic".len());
    writeln!(out.to, "{:width$} {:>10} {:>12}  {:8}  ends", "topic", "partitions", "offsets", "kind")?;
    rows.iter().try_for_each(|row| row.text(width, out))
}

fn row(application: &Application, log: &dyn Log, info: &TopicInfo) -> Result<Row, Fault> {
    let ends = |p| log.ends(&TopicPartition::new(info.name.as_str(), p));
    Ok(Row {
        name: info.name.clone(),
        internal: info.name.starts_with("__") || is_own(application, &info.name),
        compacted: info.limits.compact,
        ends: (0..info.partitions).map(ends).collect::<Result<_, _>>()?,
    })
}

/// A changelog, the dead-letter topic of a processor that names none, or the marks of what was replayed from any.
fn is_own(application: &Application, topic: &str) -> bool {
    let id = &application.id;
    let is_letters = |processor: &Processor| match &processor.dead_letter_topic {
        Some(named) => topic == ids::marks_topic(named),
        None => {
            let own = ids::dead_letter_topic(id, &processor.name);
            topic == own || topic == ids::marks_topic(&own)
        }
    };
    is_internal(id, topic) || application.processors.iter().any(is_letters)
}

impl Row {
    /// Offsets that can be read: records, and on Kafka the markers of transactions.
    fn offsets(&self) -> i64 {
        self.ends.iter().map(|e| e.stable - e.start).sum()
    }

    fn text(&self, width: usize, out: &mut Out<'_>) -> anyhow::Result<()> {
        let kind = if self.internal { "internal" } else { "" };
        let ends = self.ends.iter().map(|e| e.stable.to_string()).collect::<Vec<_>>().join(" ");
        Ok(writeln!(out.to, "{:width$} {:>10} {:>12}  {kind:8}  {ends}", self.name, self.ends.len(), self.offsets())?)
    }

    fn json(&self, out: &mut Out<'_>) -> anyhow::Result<()> {
        let ends = self.ends.iter().map(|e| json!({"start": e.start, "stable": e.stable, "end": e.end}));
        let row = json!({
            "topic": self.name,
            "partitions": self.ends.len(),
            "internal": self.internal,
            "compacted": self.compacted,
            "offsets": self.offsets(),
            "ends": ends.collect::<Vec<_>>(),
        });
        Ok(writeln!(out.to, "{row}")?)
    }
}
