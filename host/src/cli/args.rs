//! The command line as users see it: verbs, options, their help.

use super::admin::args::{
    DeployArgs, HistoryArgs, LagArgs, PauseArgs, ResumeArgs, RollbackArgs, StateArgs, StatusArgs,
};
use super::dlq::args::DlqArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Stream processing on Kafka with WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "pelton", version, propagate_version = true, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(super) struct Cli {
    /// How log lines look; they go to standard error. Without it as PELTON_LOG_FORMAT says, else text.
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run an application until it is told to stop.
    Run(RunArgs),
    /// Say everything that `run` would refuse, without running or changing anything.
    Check(CheckArgs),
    /// Build a guest crate into a component.
    Build(BuildArgs),
    /// Show what a component is, wants and promises.
    Inspect(InspectArgs),
    /// Write records into a topic of an application's log.
    Produce(ProduceArgs),
    /// Print records of a topic of an application's log.
    Consume(ConsumeArgs),
    /// List the topics of an application's log.
    Topics(TopicsArgs),
    /// Work with the dead letters of a processor: list, show, replay, purge.
    Dlq(DlqArgs),
    /// Show which processor reads and writes what; needs no running host.
    Topology(TopologyArgs),
    /// Show what a running host is doing.
    Status(StatusArgs),
    /// Show how far an application is behind, per processor and partition.
    Lag(LagArgs),
    /// Look into the committed state of a running host.
    State(StateArgs),
    /// Make another version of a plugin the active one, on all running hosts.
    Deploy(DeployArgs),
    /// Make an earlier version of a plugin the active one.
    Rollback(RollbackArgs),
    /// Show which versions of a processor's plugin there were.
    History(HistoryArgs),
    /// Pause a processor on all hosts, over restarts.
    Pause(PauseArgs),
    /// Let a paused processor go on.
    Resume(ResumeArgs),
}

const EXIT_CODES: &str = "\
Exit codes (docs/exit-codes.md):
  0  done
  1  failed while running
  2  the command line is wrong, or PELTON_LOG or PELTON_LOG_FORMAT is
  3  refused before running: application file, topics, plugin, state folder
  4  stopped before everything was committed or, with --until-idle, worked off; the next start goes on
  5  another process uses the identity of this one
  6  done in part: dead letters that could not be replayed are named
  7  the host that was to be asked is not running

Environment:
  PELTON_LOG         which log lines are shown, such as `debug` or `pelton::task=trace,info`
  PELTON_LOG_FORMAT  how they look: text or json
  NO_COLOR           when set, no colours";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pelton run examples/orders/orders.toml
  pelton run orders.toml --until-idle               # ends when all inputs are worked off
  pelton run orders.toml --state-dir /var/lib/b     # a second host on one machine

SIGTERM or Ctrl-C commits what is done and ends; a second one ends at once.
A summary is printed at the end.")]
pub(super) struct RunArgs {
    /// The application file.
    pub file: PathBuf,
    /// Use this folder instead of application.state_dir; hosts on one machine differ in it.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// End when every record of every input is processed and committed, by whichever host.
    #[arg(long)]
    pub until_idle: bool,
    /// Use this many threads instead of application.workers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Let this store begin empty though records are worked off already: its changelog is gone, or the plugin has just got it.
    /// For one start; repeat, or separate by commas.
    #[arg(long, value_name = "PROCESSOR/STORE", value_delimiter = ',')]
    pub new_store: Vec<String>,
    /// Print the summary as one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The application file.
    pub file: PathBuf,
    /// Check the start of a host that keeps its state in this folder, as `run --state-dir` does.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Check a start that lets this store begin empty, as `run --new-store` does.
    #[arg(long, value_name = "PROCESSOR/STORE", value_delimiter = ',')]
    pub new_store: Vec<String>,
    /// Print what was found, or what is refused, as one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pelton build               # the crate in this folder
  pelton build plugins/echo --out bin/plugins
  pelton build --lines       # traps name file and line; five times the size

Prints the component's path on standard output.")]
pub(super) struct BuildArgs {
    /// The guest crate's folder.
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Where NAME.wasm goes; default: the crate's folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Keep line tables, so that the stack of a trap names file and line of each function; five times the size.
    #[arg(long)]
    pub lines: bool,
    /// Install a missing compiler target, where that needs no questions.
    #[arg(long)]
    pub install: bool,
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The component's file.
    pub component: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  csv    The first line names the columns. The value is the row as a JSON
         object, in the columns' order. A column whose first filled cell is a
         number as JSON writes it (not 007) is a column of numbers, written
         digit for digit; a later cell that is no number is an error. Columns
         named by --text, and the --key column, are always text. Empty cells
         are null, and \"\" in those text columns.
  jsonl  One JSON object a line, as `consume --format jsonl` prints it: key,
         value, headers, timestamp, partition. Bytes that are not UTF-8 are
         {\"hex\":\"80ff\"}. Without timestamp it is now; without partition the
         key decides. topic and offset are ignored.
  raw    One line is one value; keys are null.

Examples:
  pelton produce orders.toml orders --input cdnow.csv --if-empty \\
    --format csv --key customer_id --text date
  pelton consume a.toml t --format jsonl | pelton produce b.toml t

Records go in transactions of some thousands each; with --if-empty in one, so
that all are there or none.")]
pub(super) struct ProduceArgs {
    /// The application file; it names the log.
    pub file: PathBuf,
    /// The topic. A missing one is made where log.create_topics says so.
    pub topic: String,
    /// Where records come from; `-` is standard input.
    #[arg(long, default_value = "-", value_name = "FILE")]
    pub input: PathBuf,
    #[arg(long, value_enum, default_value_t = InputFormat::Jsonl)]
    pub format: InputFormat,
    /// csv: the column whose text is the key; without it keys are null.
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// csv: `json` for the whole row as a JSON object, or the one column whose text is the value.
    #[arg(long, value_name = "json|COLUMN", default_value = "json")]
    pub value: String,
    /// csv: columns that stay text though they look like numbers; repeat, or separate by commas.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub text: Vec<String>,
    /// csv: what separates columns.
    #[arg(long, value_name = "CHAR", default_value = ",")]
    pub delimiter: char,
    /// Do nothing when the topic holds a record already.
    #[arg(long)]
    pub if_empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum InputFormat {
    Csv,
    Jsonl,
    Raw,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  jsonl  One JSON object a line, which `produce --format jsonl` takes; bytes
         that are not UTF-8 are {\"hex\":\"80ff\"}.
  table  partition, offset, timestamp, key, value, headers. null is null; text
         that is not plain is quoted as in JSON; other bytes are 0x80ff.
  raw    The value's bytes and a line end.
The default is table on a terminal, else jsonl.

Examples:
  pelton consume orders.toml orders --max 10
  pelton consume orders.toml order-counts --latest --fields key,value.cds
  pelton consume orders.toml orders-dead-letters --follow --from end")]
pub(super) struct ConsumeArgs {
    /// The application file; it names the log.
    pub file: PathBuf,
    pub topic: String,
    /// Where to begin in each partition: start, end, or an offset.
    #[arg(long, default_value = "start", value_name = "start|end|OFFSET", value_parser = parse_from)]
    pub from: From,
    /// Go on with records that come later, until stopped.
    #[arg(long, conflicts_with_all = ["latest", "count"])]
    pub follow: bool,
    /// Only records of committed transactions. This is always so; the flag says it aloud.
    #[arg(long)]
    pub committed: bool,
    /// End after this many records.
    #[arg(long, value_name = "N")]
    pub max: Option<u64>,
    /// Read only this partition; repeat for more.
    #[arg(long, value_name = "P")]
    pub partition: Vec<i32>,
    #[arg(long, value_enum)]
    pub format: Option<OutputFormat>,
    /// Print these, separated by spaces: key, value, partition, offset, timestamp, or value.NAME for a field of a JSON value.
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', conflicts_with = "format")]
    pub fields: Vec<String>,
    /// Print the last record of each key, in key order; a null value deletes its key, and records without a key are left out.
    #[arg(long, conflicts_with = "max")]
    pub latest: bool,
    /// Print only how many records there are (with --latest: how many keys).
    #[arg(long)]
    pub count: bool,
}

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Start,
    End,
    Offset(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Jsonl,
    Raw,
    Table,
}

#[derive(Debug, Args)]
pub(super) struct TopicsArgs {
    /// The application file; it names the log.
    pub file: PathBuf,
    /// Print one JSON object a topic.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pelton topology orders.toml
  pelton topology orders.toml --dot | dot -Tsvg > orders.svg")]
pub(super) struct TopologyArgs {
    /// The application file.
    pub file: PathBuf,
    /// Print a graph for Graphviz.
    #[arg(long, conflicts_with = "json")]
    pub dot: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

fn parse_from(text: &str) -> Result<From, String> {
    match text {
        "start" => Ok(From::Start),
        "end" => Ok(From::End),
        _ => match text.parse::<i64>() {
            Ok(offset) if offset >= 0 => Ok(From::Offset(offset)),
            _ => Err("write start, end, or an offset of 0 or more".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn from_takes_three_forms() {
        assert_eq!(parse_from("start"), Ok(From::Start));
        assert_eq!(parse_from("7"), Ok(From::Offset(7)));
        assert!(parse_from("-1").is_err() && parse_from("beginning").is_err());
    }
}
