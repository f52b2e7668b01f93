//! `pelton dlq list`.

use super::args::ListArgs;
use super::row::{self, Row};
use super::{now, progress};
use crate::cli::progress::Progress;
use crate::cli::{Out, say};
use crate::runtime::letters::{Found, Letter, Letters};

pub(super) fn list(letters: &Letters<'_>, args: &ListArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    // lines that come on the terminal are progress enough
    let bar = if out.terminal { Progress::none() } else { progress("reading", letters)? };
    if !args.json {
        row::head(out.to)?;
    }
    let (mut count, limit) = (0, args.filter.limit());
    letters.scan::<anyhow::Error>(&args.filter(now()), &mut |found| {
        match found {
            Found::Passed(offsets) => bar.add(offsets),
            Found::Letter(letter) => {
                count += 1;
                print(letter, args.json, out)?;
            }
        }
        Ok(count < limit)
    })?;
    drop(bar);
    if out.terminal {
        say(&format!("{count} dead letters of {} in {}", args.which.processor, letters.topic()));
    }
    Ok(())
}

fn print(letter: &Letter<'_>, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    if json {
        return Ok(writeln!(out.to, "{}", serde_json::to_string(&Row::of(letter))?)?);
    }
    Ok(row::line(letter, out.to)?)
}
