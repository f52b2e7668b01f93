//! `pelton dlq`: a processor's dead letters listed, shown, replayed, deleted.

pub(super) mod args;
mod list;
mod outcome;
mod row;
mod show;
#[cfg(test)]
mod tests;

use super::progress::Progress;
use super::{Out, host, load};
use crate::config::Application;
use crate::model::log::Log;
use crate::model::{Clock, Fault, SystemClock};
use crate::runtime::letters::Letters;
use args::{DlqArgs, DlqVerb, Which};

pub(super) fn dlq(args: &DlqArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let application = load(&args.which().file)?;
    let log = host::look_at_log(&application)?;
    on(&application, &*log, args, out)
}

pub(super) fn on(application: &Application, log: &dyn Log, args: &DlqArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let letters = Letters::open(log, application, &args.which().processor)?;
    match &args.verb {
        DlqVerb::List(args) => list::list(&letters, args, out),
        DlqVerb::Show(args) => show::show(&letters, args, out),
        DlqVerb::Replay(args) => outcome::replay(&letters, args, out),
        DlqVerb::Purge(args) => outcome::purge(&letters, args, out),
    }
}

impl DlqArgs {
    fn which(&self) -> &Which {
        match &self.verb {
            DlqVerb::List(args) => &args.which,
            DlqVerb::Show(args) => &args.which,
            DlqVerb::Replay(args) => &args.which,
            DlqVerb::Purge(args) => &args.which,
        }
    }
}

/// Wall-clock milliseconds.
fn now() -> i64 {
    SystemClock::default().wall_ms()
}

/// A bar over the whole dead-letter topic.
fn progress(doing: &str, letters: &Letters<'_>) -> Result<Progress, Fault> {
    Ok(Progress::new(format!("{doing} {}", letters.topic()), Some(letters.offsets()?)))
}
