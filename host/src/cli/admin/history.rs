//! `pelton history`: which versions of a processor there were.

use super::args::HistoryArgs;
use super::{find, line, short};
use crate::cli::bytes::one_line;
use crate::cli::table::Table;
use crate::cli::{Out, time};
use crate::runtime::control::History;

pub(in crate::cli) fn history(args: &HistoryArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let history: History = find(&args.at)?.get(&["v1", "processors", &args.processor, "history"], &[])?;
    show(&history, args.at.json, out)
}

pub(super) fn show(history: &History, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    if json {
        return line(history, out);
    }
    let mut table = Table::new(&["version", "since", "how", "by", "digest", "plugin", "result"]);
    for entry in &history.entries {
        table.row(vec![
            entry.sequence.to_string().into(),
            time::show(entry.time_ms).into(),
            entry.how.clone().into(),
            one_line(&entry.by).into(),
            short(&entry.digest).into(),
            format!("{} {}", entry.plugin, entry.version).into(),
            one_line(&entry.result).into(),
        ]);
    }
    table.print(out)?;
    if history.paused {
        writeln!(out.to, "the processor is paused")?;
    }
    Ok(())
}
