//! The command line of the verbs that ask a running host.

use crate::cli::bytes;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Which host, and how it is shown.
#[derive(Debug, Args)]
pub(in crate::cli) struct HostArgs {
    /// The application file; its state folder says where its host listens.
    pub file: PathBuf,
    /// Look for the host in this folder instead of application.state_dir.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Ask the host at this address: HOST:PORT, or a URL.
    #[arg(long, value_name = "ADDR", conflicts_with = "state_dir")]
    pub host: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pelton status orders.toml
  pelton status orders.toml --watch
  pelton status orders.toml --host 10.0.0.7:9400 --json | jq .ready

Columns of tasks: partition, state, lag (offsets to the end of its inputs), records
parked for a retry, bytes of effects that are not committed yet, and why it is not
running. docs/admin.md says more.")]
pub(in crate::cli) struct StatusArgs {
    #[command(flatten)]
    pub at: HostArgs,
    /// Show it again and again, until stopped; a host that is away is waited for.
    #[arg(long)]
    pub watch: bool,
    /// With --watch: seconds between.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, requires = "watch", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lag is what the consumer group has still to work off, over all hosts: offsets
between what is committed and the end that readers of committed records see. It
is 0 where only markers of transactions are left.

Examples:
  pelton lag orders.toml
  pelton lag orders.toml --json | jq '.processors[].lag'")]
pub(in crate::cli) struct LagArgs {
    #[command(flatten)]
    pub at: HostArgs,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  pelton state get orders.toml order-counts totals 14048
  pelton state get orders.toml order-counts totals 0x80ff --json
  pelton state scan orders.toml order-counts totals --prefix 140 --limit 20
  pelton state dump orders.toml order-counts totals > totals.jsonl

Keys and values are shown as text where that is plain, quoted as in JSON where it
is not, and as 0x80ff where they are not UTF-8; a key is read in the same forms.
Only what is committed is shown. A host has the state of its own partitions: a key
that another host holds is answered with that host's address."
)]
pub(in crate::cli) struct StateArgs {
    #[command(subcommand)]
    pub verb: StateVerb,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum StateVerb {
    /// Show the value of one key; null where there is none.
    Get(GetArgs),
    /// Show a range of keys, in their order within each partition.
    Scan(ScanArgs),
    /// Print all entries of this host as JSON lines.
    Dump(DumpArgs),
}

/// Which store.
#[derive(Debug, Args)]
pub(in crate::cli) struct StoreArgs {
    #[command(flatten)]
    pub at: HostArgs,
    /// The processor's name.
    pub processor: String,
    /// The store's name.
    pub store: String,
    /// Look in this partition only.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct GetArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The key: text, "text" as in JSON, or 0x80ff for bytes.
    #[arg(value_parser = parse_key, allow_hyphen_values = true)]
    pub key: Key,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ScanArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The first key.
    #[arg(long, value_name = "KEY", value_parser = parse_key, allow_hyphen_values = true)]
    pub from: Option<Key>,
    /// The key before which the range ends.
    #[arg(long, value_name = "KEY", value_parser = parse_key, allow_hyphen_values = true)]
    pub to: Option<Key>,
    /// Keys that begin so.
    #[arg(long, value_name = "KEY", value_parser = parse_key, allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub prefix: Option<Key>,
    /// From the last key to the first.
    #[arg(long)]
    pub reverse: bool,
    /// At most so many entries.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DumpArgs {
    #[command(flatten)]
    pub store: StoreArgs,
}

/// A key as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Key(pub Vec<u8>);

/// Which processor, and who asks.
#[derive(Debug, Args)]
pub(in crate::cli) struct ChangeArgs {
    #[command(flatten)]
    pub at: HostArgs,
    /// The processor's name.
    pub processor: String,
    /// Who asks, for the history; default: user@machine.
    #[arg(long, value_name = "WHO")]
    pub by: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Its tasks stop at their next batch boundary, on all hosts, and what they have done
is committed. It stays so over restarts, until `pelton resume`.

Example:
  pelton pause orders.toml order-counts")]
pub(in crate::cli) struct PauseArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  pelton resume orders.toml order-counts")]
pub(in crate::cli) struct ResumeArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The component is checked, compiled and tried while the old version works; only
then every task changes, at its next batch boundary. A version that fails any step
leaves everything as it was. One that fails on its first records, within
processor.probation, is rolled back by itself.

Examples:
  pelton deploy orders.toml order-counts order-counts.wasm
  pelton deploy orders.toml order-counts order-counts.wasm --by release-42

docs/deploy.md says more.")]
pub(in crate::cli) struct DeployArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
    /// The component's file.
    pub component: PathBuf,
    /// Deploy a version that cannot be rolled back by itself: the old one could not read what it writes.
    #[arg(long)]
    pub no_rollback: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pelton rollback orders.toml order-counts                 # the version before the active one
  pelton rollback orders.toml order-counts --to 5f3a91c2   # one of `pelton history`")]
pub(in crate::cli) struct RollbackArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
    /// The beginning of the digest of an earlier version.
    #[arg(long, value_name = "DIGEST")]
    pub to: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Columns, newest version first: sequence, when it became active (UTC), how (start,
deploy, watch, rollback, probation), who asked, the first digits of the component's
digest, the plugin's name and version, what became of it.

Example:
  pelton history orders.toml order-counts")]
pub(in crate::cli) struct HistoryArgs {
    #[command(flatten)]
    pub at: HostArgs,
    /// The processor's name.
    pub processor: String,
}

fn parse_key(text: &str) -> Result<Key, String> {
    match bytes::parse(text)? {
        Some(key) => Ok(Key(key)),
        None => Err("no key is null; the text is written as \"null\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_shown() {
        assert_eq!(parse_key("0x80ff"), Ok(Key(vec![0x80, 0xff])));
        assert_eq!(parse_key("-5"), Ok(Key(b"-5".to_vec())));
        assert_eq!(parse_key("\"null\""), Ok(Key(b"null".to_vec())));
        assert!(parse_key("null").is_err() && parse_key("0x8").is_err());
    }
}
