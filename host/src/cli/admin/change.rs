//! `pelton deploy`, `rollback`, `pause`, `resume`: what changes a processor, on all hosts.

use super::args::{ChangeArgs, DeployArgs, PauseArgs, ResumeArgs, RollbackArgs};
use super::{find, line, short};
use crate::cli::{Out, host, time};
use crate::http::PauseReply;
use crate::runtime::control::Deployed;

/// Longest name of who asks.
const NAME_LENGTH: usize = 200;

pub(in crate::cli) fn deploy(args: &DeployArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let change = &args.change;
    let client = find(&change.at)?;
    let component = host::component(&args.component)?;
    let query = [("by", by(change)), ("no_rollback", args.no_rollback.to_string())];
    let deployed: Deployed = client.post(&path(change, "deploy"), &query, Some(component))?;
    told(change, &deployed, "runs", out)
}

pub(in crate::cli) fn rollback(args: &RollbackArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let change = &args.change;
    let mut query = vec![("by", by(change))];
    query.extend(args.to.iter().map(|to| ("to", to.clone())));
    let deployed: Deployed = find(&change.at)?.post(&path(change, "rollback"), &query, None)?;
    told(change, &deployed, "runs again", out)
}

pub(in crate::cli) fn pause(args: &PauseArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    set_paused(&args.change, "pause", out)
}

pub(in crate::cli) fn resume(args: &ResumeArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    set_paused(&args.change, "resume", out)
}

fn set_paused(change: &ChangeArgs, verb: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    let reply: PauseReply = find(&change.at)?.post(&path(change, verb), &[("by", by(change))], None)?;
    if change.at.json {
        return line(&reply, out);
    }
    let already = if reply.changed { "" } else { "already " };
    let state = if reply.paused { "paused" } else { "running" };
    Ok(writeln!(out.to, "processor {} is {already}{state}", reply.processor)?)
}

fn told(change: &ChangeArgs, deployed: &Deployed, what: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    if change.at.json {
        return line(deployed, out);
    }
    let Deployed { sequence, digest, plugin, version, .. } = deployed;
    let name = &change.processor;
    writeln!(out.to, "processor {name}: {plugin} {version} ({}) {what} as version {sequence}", short(digest))?;
    for note in &deployed.notes {
        writeln!(out.to, "  {note}")?;
    }
    match deployed.probation_until_ms {
        Some(until) => Ok(writeln!(out.to, "  on probation until {}", time::show(until))?),
        None => Ok(()),
    }
}

fn path<'a>(change: &'a ChangeArgs, verb: &'a str) -> [&'a str; 4] {
    ["v1", "processors", &change.processor, verb]
}

/// Who is named, or the user of this machine.
fn by(change: &ChangeArgs) -> String {
    let by = change.by.clone().unwrap_or_else(|| format!("{}@{}", user(), machine()));
    by.chars().filter(|c| !c.is_control()).take(NAME_LENGTH).collect()
}

fn user() -> String {
    let of = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    of("USER").or_else(|| of("LOGNAME")).unwrap_or_else(|| "somebody".to_owned())
}

fn machine() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = name.map(|name| name.trim().to_owned()).ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "unknown".to_owned())
}
