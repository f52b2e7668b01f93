//! `pelton state`: what is committed in a store, by key, by range, or all of it.

use super::args::{DumpArgs, GetArgs, Key, ScanArgs, StateArgs, StateVerb, StoreArgs};
use super::{Client, find, line};
use crate::cli::bytes::show;
use crate::cli::{Out, say};
use crate::http::{EntryReply, PageReply, ValueReply};
use crate::runtime::control::ProcessorStatus;
use std::collections::BTreeSet;

/// Entries of a page; more are asked for page by page.
const PAGE: u64 = 1000;

type Query = Vec<(&'static str, String)>;

pub(in crate::cli) fn state(args: &StateArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    match &args.verb {
        StateVerb::Get(args) => get(args, out),
        StateVerb::Scan(args) => scan(args, out),
        StateVerb::Dump(args) => dump(args, out),
    }
}

fn get(args: &GetArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let store = Store::of(&args.store)?;
    let mut query = store.query();
    query.push(("key_hex", hex::encode(&args.key.0)));
    let found: ValueReply = store.client.get(&store.path(), &query)?;
    if args.store.at.json {
        return line(&found, out);
    }
    Ok(writeln!(out.to, "{}", show(found.value.as_ref().map(|value| &*value.0)))?)
}

fn scan(args: &ScanArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let store = Store::of(&args.store)?;
    let mut query = store.query();
    let bounds = [("from_hex", &args.from), ("to_hex", &args.to), ("prefix_hex", &args.prefix)];
    query.extend(bounds.into_iter().filter_map(|(name, key)| key.as_ref().map(|Key(key)| (name, hex::encode(key)))));
    query.push(("reverse", args.reverse.to_string()));
    let json = args.store.at.json;
    store.pages(query, args.limit, &mut |entry| if json { line(entry, out) } else { text(entry, out) }).map(drop)
}

fn dump(args: &DumpArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let store = Store::of(&args.store)?;
    let processor: ProcessorStatus = store.client.get(&["v1", "processors", &args.store.processor], &[])?;
    let seen = store.pages(store.query(), u64::MAX, &mut |entry| line(entry, out))?;
    let all = usize::try_from(processor.partitions).unwrap_or_default();
    if args.store.partition.is_none() && seen.len() < all {
        let seen: Vec<String> = seen.iter().map(i32::to_string).collect();
        say(&format!("partitions {} of {all}; the others are on other hosts", seen.join(", ")));
    }
    Ok(())
}

/// A store of a running host.
struct Store<'a> {
    client: Client,
    args: &'a StoreArgs,
}

impl<'a> Store<'a> {
    fn of(args: &'a StoreArgs) -> anyhow::Result<Self> {
        Ok(Store { client: find(&args.at)?, args })
    }

    fn path(&self) -> [&str; 4] {
        ["v1", "state", &self.args.processor, &self.args.store]
    }

    fn query(&self) -> Query {
        self.args.partition.iter().map(|partition| ("partition", partition.to_string())).collect()
    }

    /// Gives at most `limit` entries to `take`, and the partitions that they could have come from.
    fn pages(
        &self,
        query: Query,
        limit: u64,
        take: &mut dyn FnMut(&EntryReply) -> anyhow::Result<()>,
    ) -> anyhow::Result<BTreeSet<i32>> {
        let (mut left, mut cursor, mut partitions) = (limit, None::<String>, BTreeSet::new());
        loop {
            let mut query = query.clone();
            query.push(("limit", left.min(PAGE).to_string()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page: PageReply = self.client.get(&self.path(), &query)?;
            page.entries.iter().try_for_each(&mut *take)?;
            partitions.extend(page.partitions);
            left = left.saturating_sub(page.entries.len() as u64);
            match page.cursor {
                Some(next) if left > 0 => cursor = Some(next),
                _ => return Ok(partitions),
            }
        }
    }
}

fn text(entry: &EntryReply, out: &mut Out<'_>) -> anyhow::Result<()> {
    let EntryReply { partition, key, value } = entry;
    Ok(writeln!(out.to, "{partition} {} {}", show(Some(&key.0)), show(Some(&value.0)))?)
}
