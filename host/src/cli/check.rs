//! `pelton check`: everything that `run` refuses, without running.

use super::args::CheckArgs;
use super::host::Report;
use super::{Out, host, load};

pub(super) fn check(args: &CheckArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut application = load(&args.file)?;
    application.new_stores.clone_from(&args.new_store);
    let report = host::check(&application)?;
    if args.json { json(&report, out) } else { text(&application.id, &report, out) }
}

fn text(id: &str, report: &Report, out: &mut Out<'_>) -> anyhow::Result<()> {
    for (name, plugin, version) in &report.processors {
        writeln!(out.to, "processor {name}: plugin {plugin} {version}")?;
    }
    for topic in &report.creates {
        writeln!(out.to, "run would create topic {topic}")?;
    }
    Ok(writeln!(out.to, "application {id} can run")?)
}

fn json(report: &Report, out: &mut Out<'_>) -> anyhow::Result<()> {
    let processors = report
        .processors
        .iter()
        .map(|(name, plugin, version)| serde_json::json!({"name": name, "plugin": plugin, "version": version}));
    let all: Vec<_> = processors.collect();
    Ok(writeln!(out.to, "{}", serde_json::json!({"processors": all, "creates": report.creates}))?)
}
