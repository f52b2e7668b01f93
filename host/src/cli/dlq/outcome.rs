//! `pelton dlq replay` and `purge`: done by the runtime, told here.

use super::args::{PurgeArgs, ReplayArgs};
use super::{now, progress};
use crate::cli::exit::Partly;
use crate::cli::progress::Progress;
use crate::cli::{Out, say};
use crate::model::{Failure, Place};
use crate::runtime::letters::{Event, Letters, PurgeOptions, Purged, ReplayOptions, Replayed};
use serde_json::{Value, json};

/// So many letters that stay are named one by one, where a person reads it.
const NAMED: u64 = 20;

/// Tells what comes of a replay, as it comes.
struct Teller<'t, 'o> {
    args: &'t ReplayArgs,
    bar: Progress,
    out: &'t mut Out<'o>,
    /// As JSON, where that is asked for.
    refused: Vec<Value>,
    named: u64,
    /// Why nothing more could be printed.
    broken: Option<anyhow::Error>,
}

pub(super) fn replay(letters: &Letters<'_>, args: &ReplayArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let options = ReplayOptions {
        filter: args.filter.filter(now()),
        limit: args.filter.limit(),
        max_replays: args.max_replays,
        through_plugin: args.through_plugin,
        dry_run: args.dry_run,
    };
    let bar = progress("replaying", letters)?;
    let mut teller = Teller { args, bar, out, refused: Vec::new(), named: 0, broken: None };
    let done = letters.replay(&options, &mut |event| teller.hear(&event));
    teller.end(letters.topic(), done?)
}

pub(super) fn purge(letters: &Letters<'_>, args: &PurgeArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let bar = progress("purging", letters)?;
    let options = PurgeOptions { before: args.before.map(|when| when.at(now())), dry_run: args.dry_run };
    let purged = letters.purge(options, &mut |event| {
        if let Event::Passed(offsets) = event {
            bar.add(offsets);
        }
    })?;
    drop(bar);
    if args.json {
        let Purged { purged, unreplayed, behind } = purged;
        let all = json!({"purged": purged, "unreplayed": unreplayed, "behind": behind, "dry_run": args.dry_run});
        return Ok(writeln!(out.to, "{all}")?);
    }
    print_purged(purged, args.dry_run, letters.topic(), out)
}

fn print_purged(purged: Purged, dry: bool, topic: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    let Purged { purged, unreplayed, behind } = purged;
    let would = if dry { "would purge" } else { "purged" };
    writeln!(out.to, "{would} {} of {topic}, {unreplayed} of them never replayed", count(purged))?;
    if behind > 0 {
        let letters = count(behind);
        writeln!(out.to, "kept {letters} that lie behind something that is not to be deleted")?;
    }
    Ok(())
}

fn count(letters: u64) -> String {
    if letters == 1 { "1 dead letter".to_owned() } else { format!("{letters} dead letters") }
}

impl Teller<'_, '_> {
    fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Passed(offsets) => self.bar.add(*offsets),
            Event::Replayed { place, to } if self.args.dry_run && !self.args.json => {
                self.print(&format!("{place}: would be replayed to {to}"));
            }
            Event::Replayed { .. } => {}
            Event::Refused { place, failure } => self.refused(*place, failure),
        }
    }

    fn refused(&mut self, place: Place, failure: &Failure) {
        let Failure { code, message, .. } = failure;
        if self.args.json {
            let Place { partition, offset } = place;
            self.refused.push(json!({"partition": partition, "offset": offset, "code": code, "message": message}));
        }
        self.named += 1;
        if self.named <= NAMED {
            self.bar.above(|| say(&format!("{place}: stays: {message} ({code})")));
        }
    }

    /// A line of a result, past the bar.
    fn print(&mut self, line: &str) {
        let printed = self.bar.above(|| writeln!(self.out.to, "{line}"));
        self.broken = self.broken.take().or_else(|| printed.err().map(anyhow::Error::from));
    }

    fn end(self, topic: &str, done: Replayed) -> anyhow::Result<()> {
        let Teller { args, bar, out, refused, named, broken } = self;
        drop(bar);
        broken.map_or(Ok(()), Err)?;
        if named > NAMED {
            say(&format!("and {} more; --json names them all", named - NAMED));
        }
        let replayed = done.replayed;
        if args.json {
            let all = json!({"replayed": replayed, "refused": refused, "dry_run": args.dry_run});
            writeln!(out.to, "{all}")?;
        } else {
            let would = if args.dry_run { "would replay" } else { "replayed" };
            writeln!(out.to, "{would} {} of {topic}", count(replayed))?;
        }
        match done.refused {
            0 => Ok(()),
            refused => Err(Partly(format!("not replayed: {}, each named above", count(refused))).into()),
        }
    }
}
