//! How records are printed.

use super::At;
use super::fields::Field;
use crate::cli::bytes::show;
use crate::cli::line::Line;
use std::io::Write;

pub(super) enum Show {
    Jsonl,
    Raw,
    Table,
    Fields(Vec<Field>),
}

impl Show {
    /// What stands above the records.
    pub(super) fn head(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Show::Table => {
                Ok(writeln!(out, "{:>9} {:>9} {:>13}  {:20} value", "partition", "offset", "timestamp", "key")?)
            }
            Show::Jsonl | Show::Raw | Show::Fields(_) => Ok(()),
        }
    }

    pub(super) fn record(&self, at: &At<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Show::Jsonl => serde_json::to_writer(&mut *out, &Line::of(at.partition, at.offset, &at.record))?,
            Show::Raw => out.write_all(at.record.value.unwrap_or_default())?,
            Show::Table => row(at, out)?,
            Show::Fields(fields) => {
                for (i, field) in fields.iter().enumerate() {
                    let gap = if i == 0 { "" } else { " " };
                    write!(out, "{gap}{}", field.of(at))?;
                }
            }
        }
        Ok(out.write_all(b"\n")?)
    }
}

fn row(at: &At<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let At { partition, offset, record } = at;
    let (key, value) = (show(record.key), show(record.value));
    write!(out, "{partition:>9} {offset:>9} {:>13}  {key:20} {value}", record.timestamp)?;
    for (name, value) in record.headers.iter() {
        write!(out, "  {}={}", show(Some(name)), show(value))?;
    }
    Ok(())
}
