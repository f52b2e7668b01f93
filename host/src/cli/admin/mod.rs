//! Verbs that ask a running host, over its admin surface.

pub(super) mod args;
mod change;
mod history;
mod lag;
mod state;
mod status;
#[cfg(test)]
mod tests;

pub(super) use change::{deploy, pause, resume, rollback};
pub(super) use history::history;
pub(super) use lag::lag;
pub(super) use state::state;
pub(super) use status::status;

use super::host::{Client, Failure};
use super::{Out, host, load};
use args::HostArgs;
use serde::Serialize;

/// The host that the command line means.
fn find(at: &HostArgs) -> anyhow::Result<Client> {
    let mut application = load(&at.file)?;
    if let Some(folder) = &at.state_dir {
        application.state_dir = std::path::absolute(folder)?;
    }
    Ok(host::find(&application, at.host.as_deref())?)
}

/// One JSON value a line.
fn line(value: &impl Serialize, out: &mut Out<'_>) -> anyhow::Result<()> {
    Ok(writeln!(out.to, "{}", serde_json::to_string(value)?)?)
}

/// The first digits, as far as people need them.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}
