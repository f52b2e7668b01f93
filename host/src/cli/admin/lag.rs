//! `pelton lag`: how far groups are behind, per processor and partition.

use super::args::LagArgs;
use super::{find, line, number};
use crate::cli::Out;
use crate::cli::table::Table;
use crate::runtime::control::{ProcessorStatus, Status};
use serde_json::{Value, json};

pub(in crate::cli) fn lag(args: &LagArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let status: Status = find(&args.at)?.get(&["v1", "status"], &[])?;
    show(&status, args.at.json, out)
}

pub(super) fn show(status: &Status, json: bool, out: &mut Out<'_>) -> anyhow::Result<()> {
    if json {
        let processors: Vec<Value> = status.processors.iter().map(one).collect();
        return line(&json!({"application": status.application, "processors": processors}), out);
    }
    let mut table = Table::new(&["processor", "topic", "partition", "committed", "end", "lag", "parked"]);
    status.processors.iter().for_each(|processor| rows(processor, &mut table));
    table.print(out)
}

fn one(processor: &ProcessorStatus) -> Value {
    let ProcessorStatus { name, group, lag, lags, .. } = processor;
    json!({"name": name, "group": group, "lag": lag, "partitions": lags})
}

fn rows(processor: &ProcessorStatus, table: &mut Table) {
    for lag in &processor.lags {
        table.row(vec![
            processor.name.clone().into(),
            lag.topic.clone().into(),
            lag.partition.to_string().into(),
            number(lag.committed).into(),
            number(lag.end).into(),
            number(lag.lag).into(),
            lag.parked.to_string().into(),
        ]);
    }
    let parked: u64 = processor.lags.iter().map(|lag| lag.parked).sum();
    let (name, all) = (processor.name.clone(), number(processor.lag));
    table.row(vec![name.into(), "all".into(), "".into(), "".into(), "".into(), all.into(), parked.to_string().into()]);
}
