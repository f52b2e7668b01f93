//! `pelton consume`: records of a topic, committed ones only.

mod fields;
mod read;
mod show;

use super::args::{ConsumeArgs, OutputFormat};
use super::exit::Usage;
use super::progress::Progress;
use super::{Out, host, load};
use crate::config::Application;
use crate::model::log::Log;
use crate::model::{Fault, HeadersRef, RecordRef};
use fields::Field;
use show::Show;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn consume(args: &ConsumeArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let application = load(&args.file)?;
    let log = host::look_at_log(&application)?;
    from(&application, &*log, args, out)
}

/// A record with its place.
pub(super) struct At<'a> {
    partition: i32,
    offset: i64,
    record: RecordRef<'a>,
}

/// What was read last of a key.
struct Last {
    partition: i32,
    offset: i64,
    timestamp: i64,
    value: Vec<u8>,
}

pub(super) fn from(_: &Application, log: &dyn Log, args: &ConsumeArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let partitions = partitions(log, args)?;
    let show = shown(args, out.terminal)?;
    let reading = read::Reading { log, topic: &args.topic, partitions, from: args.from, max: args.max };
    if args.latest {
        return latest(&reading, &show, args.count, out);
    }
    if args.count {
        let mut count = 0u64;
        reading.to_end(&Progress::new(format!("reading {}", args.topic), None), &mut |_| {
            count += 1;
            Ok(())
        })?;
        return Ok(writeln!(out.to, "{count}")?);
    }
    show.head(out.to)?;
    if args.follow {
        return reading.follow(&mut |event| match event {
            read::Event::Record(at) => show.record(&at, out.to),
            read::Event::Idle => Ok(out.to.flush()?),
        });
    }
    reading.to_end(&Progress::none(), &mut |at| show.record(&at, out.to))
}

fn partitions(log: &dyn Log, args: &ConsumeArgs) -> anyhow::Result<Vec<i32>> {
    let Some(info) = log.topic(&args.topic)? else {
        let hint = "pelton topics FILE lists those that exist";
        return Err(Fault::fatal("topic-missing", format!("the topic `{}` does not exist", args.topic))
            .hint(hint)
            .into());
    };
    if args.partition.is_empty() {
        return Ok((0..info.partitions).collect());
    }
    match args.partition.iter().find(|p| !(0..info.partitions).contains(*p)) {
        Some(wrong) => {
            Err(Usage(format!("there is no partition {wrong}: {} has {}", info.name, info.partitions)).into())
        }
        None => Ok(args.partition.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()),
    }
}

fn shown(args: &ConsumeArgs, terminal: bool) -> anyhow::Result<Show> {
    if !args.fields.is_empty() {
        let fields = args.fields.iter().map(|f| Field::parse(f)).collect::<Result<_, _>>().map_err(Usage)?;
        return Ok(Show::Fields(fields));
    }
    Ok(match args.format {
        Some(OutputFormat::Jsonl) => Show::Jsonl,
        Some(OutputFormat::Raw) => Show::Raw,
        Some(OutputFormat::Table) => Show::Table,
        None if terminal => Show::Table,
        None => Show::Jsonl,
    })
}

/// The last record of each key, in key order.
fn latest(reading: &read::Reading<'_>, show: &Show, count: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut last: BTreeMap<Vec<u8>, Last> = BTreeMap::new();
    let progress = Progress::new(format!("reading {}", reading.topic), None);
    reading.to_end(&progress, &mut |at| {
        keep(&mut last, &at);
        Ok(())
    })?;
    drop(progress);
    if count {
        return Ok(writeln!(out.to, "{}", last.len())?);
    }
    show.head(out.to)?;
    for (key, Last { partition, offset, timestamp, value }) in &last {
        // Headers are not kept: what is asked for is a table's rows.
        let record =
            RecordRef { key: Some(key), value: Some(value), headers: HeadersRef::default(), timestamp: *timestamp };
        show.record(&At { partition: *partition, offset: *offset, record }, out.to)?;
    }
    Ok(())
}

fn keep(last: &mut BTreeMap<Vec<u8>, Last>, at: &At<'_>) {
    let Some(key) = at.record.key else { return };
    match at.record.value {
        None => {
            last.remove(key);
        }
        Some(value) => {
            let (partition, offset, timestamp) = (at.partition, at.offset, at.record.timestamp);
            last.insert(key.to_owned(), Last { partition, offset, timestamp, value: value.to_owned() });
        }
    }
}
