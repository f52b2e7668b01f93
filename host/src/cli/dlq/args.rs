//! The command line of `pelton dlq`.

use crate::cli::bytes;
use crate::cli::time::{self, When};
use crate::delivery::LetterFilter;
use crate::model::Place;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  pelton dlq list orders.toml order-counts --since 2h --code trap
  pelton dlq show orders.toml order-counts 3:17
  pelton dlq replay orders.toml order-counts --code card-service-down --dry-run
  pelton dlq replay orders.toml order-counts --code card-service-down
  pelton dlq purge orders.toml order-counts --before 30d

docs/dlq.md says more. On Kafka all of it works while hosts run; an embedded log
belongs to one process at a time, so its host must be stopped first."
)]
pub(in crate::cli) struct DlqArgs {
    #[command(subcommand)]
    pub verb: DlqVerb,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DlqVerb {
    /// List dead letters, or those that filters admit.
    List(ListArgs),
    /// Show one dead letter whole: why it was given up, headers, stack, payload.
    Show(ShowArgs),
    /// Send dead letters back to where their records came from, or through the plugin, each exactly once.
    Replay(ReplayArgs),
    /// Delete dead letters for good.
    Purge(PurgeArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Which {
    /// The application file; it names the log and the processor's dead-letter topic.
    pub file: PathBuf,
    /// The processor's name.
    pub processor: String,
}

/// Filters; every one that is given must fit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(in crate::cli) struct FilterArgs {
    /// Letters with this code; repeat for more.
    #[arg(long, value_name = "CODE")]
    pub code: Vec<String>,
    /// Given up at this moment or later: 2026-03-01, 2026-03-01T10:30:00Z (UTC where no zone is given), milliseconds, or so long ago: 90s, 15m, 2h, 3d.
    #[arg(long, value_name = "T", value_parser = time::parse)]
    pub since: Option<When>,
    /// Given up before this moment.
    #[arg(long, value_name = "T", value_parser = time::parse)]
    pub until: Option<When>,
    /// Letters with this key, as `list` prints it: text, "text" as in JSON, 0x80ff for bytes, null.
    #[arg(long, value_name = "KEY", value_parser = parse_key, allow_hyphen_values = true)]
    pub key: Option<Key>,
    /// The letter at this place of the dead-letter topic; repeat for more.
    #[arg(long, value_name = "PARTITION:OFFSET", value_parser = parse_place)]
    pub at: Vec<Place>,
    /// At most so many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

/// A key that letters are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Key(Option<Vec<u8>>);

#[derive(Debug, Args)]
#[command(after_help = "\
Columns: place in the dead-letter topic (as `show` and --at take it), when it
was given up, its code, calls with it in all, how often it had been replayed
before, whether it has been replayed since, where its record came from, key,
message. Order is by partition and offset.
null is null; text that is not plain is quoted as in JSON; other bytes are
0x80ff.")]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    pub which: Which,
    /// Print one JSON object a letter.
    #[arg(long)]
    pub json: bool,
    // last: its heading would go on
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Only letters that have been replayed.
    #[arg(long, conflicts_with = "unreplayed")]
    pub replayed: bool,
    /// Only letters that have not been replayed.
    #[arg(long)]
    pub unreplayed: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    pub which: Which,
    /// The letter's place, as `list` prints it.
    #[arg(value_name = "PARTITION:OFFSET", value_parser = parse_place)]
    pub place: Place,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each letter that has not been replayed becomes its record again: key, value,
timestamp and own headers as they were, with the header pelton-replays counting
up, at the end of the partition that it came from. Record and mark of a letter
are committed together (topic of marks: DEAD-LETTER-TOPIC-replayed), so that a
crash and a second run give it once. Letters that come meanwhile are for the
next replay. A second replay of the same letters takes over from the first.

Stays, is named, and makes the exit code 6: a letter at its limit of replays,
one that was cut to fit its topic, one whose source topic is no input any more,
one whose record the topic refuses, and with --through-plugin one whose record
fails again.

--through-plugin runs the plugin here, on letters only, and commits its outputs;
the source topic sees nothing. For plugins without state (world `transform`).

Examples:
  pelton dlq replay orders.toml enrich --dry-run
  pelton dlq replay orders.toml enrich --at 3:17
  pelton dlq replay orders.toml enrich --code trap --through-plugin")]
pub(in crate::cli) struct ReplayArgs {
    #[command(flatten)]
    pub which: Which,
    /// Say what would be done, letter by letter, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Refuse a letter whose record has been replayed so often already.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_replays: u32,
    /// Run the plugin on the letters here, without the source topic.
    #[arg(long)]
    pub through_plugin: bool,
    /// Print the outcome as one JSON object.
    #[arg(long)]
    pub json: bool,
    // last: its heading would go on
    #[command(flatten)]
    pub filter: FilterArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A log deletes from the front of a partition only. So letters go as far as
nothing lies before them that is to stay: a letter that is not old enough, or
another's record where processors share the topic. The outcome says how many
stay for that.")]
pub(in crate::cli) struct PurgeArgs {
    #[command(flatten)]
    pub which: Which,
    /// Letters given up before this moment: 2026-03-01, 2026-03-01T10:30:00Z, milliseconds, or so long ago: 12h, 30d.
    #[arg(long, value_name = "T", value_parser = time::parse, required_unless_present = "all", conflicts_with = "all")]
    pub before: Option<When>,
    /// All letters that are there now, replayed or not.
    #[arg(long)]
    pub all: bool,
    /// Say what would be done and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the outcome as one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl FilterArgs {
    /// `now` in wall-clock milliseconds.
    pub(super) fn filter(&self, now: i64) -> LetterFilter {
        LetterFilter {
            codes: self.code.clone(),
            since: self.since.map(|when| when.at(now)),
            until: self.until.map(|when| when.at(now)),
            key: self.key.clone().map(|Key(key)| key),
            places: self.at.clone(),
            replayed: None,
        }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.unwrap_or(u64::MAX)
    }
}

impl ListArgs {
    pub(super) fn filter(&self, now: i64) -> LetterFilter {
        let replayed = (self.replayed || self.unreplayed).then_some(self.replayed);
        LetterFilter { replayed, ..self.filter.filter(now) }
    }
}

fn parse_key(text: &str) -> Result<Key, String> {
    bytes::parse(text).map(Key)
}

fn parse_place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|()| "write PARTITION:OFFSET, such as 3:17".to_owned())
}
