//! Ids and random numbers: repeated by a replay, different for everything else.

use std::collections::BTreeSet;

use crate::identity::Origin;

fn origin(offset: i64) -> Origin<'static> {
    Origin { application: "shop", processor: "totals", topic: "orders", partition: 3, offset }
}

#[test]
fn the_scheme_is_frozen() {
    // Ids are in other people's systems once they were emitted: this must never change.
    assert_eq!(origin(100).id(0).to_string(), "99a6171f-d91d-8f4e-801a-aecd1de8289e");
    assert_eq!(origin(100).random().next(), 9_304_211_214_050_774_551);
}

#[test]
fn every_part_of_the_origin_counts() {
    let mut ids: BTreeSet<_> = (0..100).map(|offset| origin(offset).id(0)).collect();
    ids.extend((1..100).map(|n| origin(0).id(n)));
    ids.insert(Origin { application: "shop2", ..origin(0) }.id(0));
    ids.insert(Origin { processor: "total", ..origin(0) }.id(0));
    ids.insert(Origin { topic: "order", ..origin(0) }.id(0));
    ids.insert(Origin { partition: 4, ..origin(0) }.id(0));
    ids.insert(Origin { application: "shopt", processor: "otals", ..origin(0) }.id(0));
    assert_eq!(ids.len(), 204);
}

#[test]
fn random_numbers_are_a_sequence() {
    let (mut first, mut again) = (origin(1).random(), origin(1).random());
    let numbers: BTreeSet<u64> = (0..1000).map(|_| first.next()).collect();
    assert_eq!(numbers.len(), 1000);
    assert!((0..1000).all(|_| numbers.contains(&again.next())));
}
