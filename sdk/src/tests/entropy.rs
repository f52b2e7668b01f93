//! What crates get that ask for randomness: repeated by a replay, different for everything else.

use std::collections::BTreeSet;

use super::batch::{core, keyed};
use super::host::MemoryHost;
use crate::entropy::{fill, settle};

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

fn home(application: &str, partition: u32) {
    settle(application, "totals", &[("in".to_owned(), "orders".to_owned())], partition);
}

/// What each record of a call gets, in two goes.
fn run(offset: i64, count: usize) -> Vec<[u8; 20]> {
    let (mut core, mut batch) = (core(0, 0), keyed(&vec!["k"; count]));
    batch.offsets = (offset..).take(count).collect();
    let mut seen = Vec::new();
    core.begin(&batch);
    core.run(&MemoryHost::default(), &batch, |record, ctx| {
        let (first, second): ([u8; 3], [u8; 17]) = (bytes(), bytes());
        assert_ne!(ctx.random().to_le_bytes()[..3], first, "it is another sequence than the plugin's own");
        seen.push([&first[..], &second[..]].concat().try_into().unwrap());
        assert_eq!(record.offset(), offset + seen.len() as i64 - 1);
        Ok(())
    });
    seen
}

#[test]
fn the_same_record_gets_the_same_bytes_in_whatever_batch() {
    home("shop", 3);
    let all = run(100, 5);
    assert_eq!(run(100, 5), all);
    assert_eq!(run(103, 2), all[3..]);
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), 5);
}

#[test]
fn other_tasks_get_other_bytes() {
    home("shop", 3);
    let all = run(100, 1);
    home("shop", 4);
    assert_ne!(run(100, 1), all);
    home("shop2", 3);
    assert_ne!(run(100, 1), all);
}

#[test]
fn before_the_first_record_bytes_are_the_tasks() {
    home("shop", 3);
    let first: [u8; 8] = bytes();
    let second: [u8; 8] = bytes();
    assert_ne!(first, second);
    home("shop", 3);
    assert_eq!(bytes(), first);
    home("shop", 4);
    assert_ne!(bytes(), first);
}
