//! `pelton produce`: records from a file or a pipe into a topic, in transactions.

mod chunk;
mod csv;
mod jsonl;
mod raw;
mod send;

use super::args::{InputFormat, ProduceArgs};
use super::exit::Usage;
use super::progress::Progress;
use super::{host, load, say};
use crate::config::Application;
use crate::model::log::{FetchLimit, Log, TopicSpec};
use crate::model::{Batch, Clock, Fault, SystemClock, TopicPartition};
use anyhow::Context;
use chunk::Chunk;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// How long one look for a record waits.
const LOOK: Duration = Duration::from_millis(500);

/// Where records come from, one format each.
pub(super) trait Records {
    /// Appends the next record. False at the end.
    fn next(&mut self, chunk: &mut Chunk) -> anyhow::Result<bool>;
}

pub(super) fn produce(args: &ProduceArgs) -> anyhow::Result<()> {
    let application = load(&args.file)?;
    let input = open(&args.input)?;
    let log = host::open_log(&application)?;
    let produced = into(&application, &*log, args, input)?;
    say(&match produced {
        Some(count) => format!("produced {count} records to {}", args.topic),
        None => format!("{} holds records already: nothing produced", args.topic),
    });
    Ok(())
}

/// Produces what `input` holds. `None` where `--if-empty` found records.
pub(super) fn into(
    application: &Application,
    log: &dyn Log,
    args: &ProduceArgs,
    input: Box<dyn Read>,
) -> anyhow::Result<Option<u64>> {
    let now = SystemClock::default().wall_ms();
    let mut records = reader(args, BufReader::with_capacity(1 << 16, input), now)?;
    let partitions = ensure_topic(application, log, &args.topic)?;
    if args.if_empty && holds_records(log, &args.topic, partitions)? {
        return Ok(None);
    }
    let progress = Progress::new(format!("producing to {}", args.topic), None);
    let mut sender = send::Sender::open(log, application, &args.topic, args.if_empty)?;
    let mut chunk = Chunk::default();
    let mut more = true;
    while more {
        chunk.clear();
        while more && (args.if_empty || !chunk.is_full()) {
            more = records.next(&mut chunk).map_err(|error| after(sender.sent(), error))?;
        }
        chunk.check_partitions(partitions)?;
        sender.send(&chunk)?;
        progress.add(chunk.len() as u64);
    }
    Ok(Some(sender.sent()))
}

/// A mistake in the input comes with what is in the topic already: producing the whole input again would double that.
fn after(committed: u64, error: anyhow::Error) -> anyhow::Error {
    match committed {
        0 => error,
        _ => error.context(format!("{committed} records before it are committed; go on after them")),
    }
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("opening the input {}", path.display()))?;
    Ok(Box::new(file))
}

fn reader(args: &ProduceArgs, input: BufReader<Box<dyn Read>>, now: i64) -> anyhow::Result<Box<dyn Records>> {
    let only_csv = args.key.is_some() || !args.text.is_empty() || args.value != "json" || args.delimiter != ',';
    if only_csv && args.format != InputFormat::Csv {
        return Err(Usage("--key, --value, --text and --delimiter go with --format csv".to_owned()).into());
    }
    Ok(match args.format {
        InputFormat::Csv => Box::new(csv::Rows::new(args, input, now)?),
        InputFormat::Jsonl => Box::new(jsonl::Lines::new(input, now)),
        InputFormat::Raw => Box::new(raw::Values::new(input, now)),
    })
}

/// The topic's partition count; the topic is made where the application file says so.
fn ensure_topic(application: &Application, log: &dyn Log, name: &str) -> Result<i32, Fault> {
    if let Some(info) = log.topic(name)? {
        return Ok(info.partitions);
    }
    if !application.create_topics {
        let hint = "create it, or set create_topics = true under [log]";
        return Err(Fault::fatal("topic-missing", format!("the topic `{name}` does not exist")).hint(hint));
    }
    if let Some(problem) = crate::config::names::topic_problem(name) {
        return Err(Fault::fatal("topic-name", format!("creating the topic `{name}`: its name {problem}")));
    }
    let settings = application.topics.get(name);
    let partitions = settings.map_or(1, |t| t.partitions);
    let properties = settings.map_or_else(Vec::new, |t| t.properties.clone().into_iter().collect());
    log.create_topic(&TopicSpec {
        name: name.to_owned(),
        partitions,
        replication: settings.and_then(|t| t.replication),
        properties,
    })?;
    Ok(partitions)
}

/// Whether any committed record is there. Offsets alone do not say: an aborted attempt uses some up.
fn holds_records(log: &dyn Log, topic: &str, partitions: i32) -> Result<bool, Fault> {
    for partition in 0..partitions {
        let partition = TopicPartition::new(topic, partition);
        let ends = log.ends(&partition)?;
        if ends.stable > ends.start && holds_record(log, &partition, ends.start, ends.stable)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn holds_record(log: &dyn Log, partition: &TopicPartition, start: i64, end: i64) -> Result<bool, Fault> {
    let mut source = log.reader(partition, start)?;
    let mut batch = Batch::default();
    loop {
        let limit = FetchLimit { records: 1, bytes: 1 << 20 };
        if source.fetch(&mut batch, limit, LOOK)? > 0 {
            return Ok(true);
        }
        if source.at_end() || source.position() >= end {
            return Ok(false);
        }
    }
}
