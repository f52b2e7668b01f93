//! Scans agree with a plain sorted map, whatever was written in the call and however small the pages are.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::host::MemoryHost;
use crate::Scan;
use crate::state::Partition;

type Table = BTreeMap<Vec<u8>, Vec<u8>>;

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 254, 255]), 0..4)
}

fn table() -> impl Strategy<Value = Table> {
    prop::collection::btree_map(key(), prop::collection::vec(any::<u8>(), 0..3), 0..20)
}

fn writes() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    prop::collection::vec((key(), prop::option::of(prop::collection::vec(any::<u8>(), 0..3))), 0..20)
}

/// The stores as a scan must see them: the host's, with the call's own writes.
fn laid_over(mut base: Table, writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Table {
    for (key, value) in writes {
        match value {
            Some(value) => base.insert(key.clone(), value.clone()),
            None => base.remove(key),
        };
    }
    base
}

fn expected(table: &Table, start: &[u8], end: Option<&[u8]>, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = |key: &Vec<u8>| key.as_slice() >= start && end.is_none_or(|end| key.as_slice() < end);
    let mut found: Vec<_> = table.iter().filter(|(key, _)| inside(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if reverse {
        found.reverse();
    }
    found
}

proptest! {
    #[test]
    fn a_scan_is_the_merged_range(
        base in table(), writes in writes(), start in key(), end in key(), reverse: bool, limit in 1u32..8, max_bytes in 1u32..40,
    ) {
        let host = MemoryHost { stores: BTreeMap::from([(20, base.clone())]), ..MemoryHost::default() };
        let mut store = Partition::new(20);
        writes.iter().for_each(|(key, value)| store.set(key, 0, value.clone()));
        store.keep();
        let scan = Scan::range(&start, &end).limit(limit).max_bytes(max_bytes);
        let page = store.scan(&host, &if reverse { scan.reverse() } else { scan }).unwrap();
        let all = expected(&laid_over(base, &writes), &start, Some(&end), reverse);
        prop_assert_eq!(&page.entries[..], &all[..page.entries.len()]);
        prop_assert_eq!(page.more, page.entries.len() < all.len());
        prop_assert!(page.entries.len() <= limit as usize);
        if page.more {
            let bytes: usize = page.entries.iter().map(|(key, value)| key.len() + value.len()).sum();
            prop_assert!(page.entries.len() == limit as usize || bytes >= max_bytes as usize);
        }
    }

    #[test]
    fn a_prefix_is_a_range(base in table(), prefix in key()) {
        let host = MemoryHost { stores: BTreeMap::from([(20, base.clone())]), ..MemoryHost::default() };
        let page = Partition::new(20).scan(&host, &Scan::prefix(&prefix)).unwrap();
        let all: Vec<_> = base.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
        prop_assert_eq!(page.entries, all);
    }

    #[test]
    fn undone_writes_leave_no_trace(base in table(), kept in writes(), undone in writes()) {
        let host = MemoryHost { stores: BTreeMap::from([(20, base.clone())]), ..MemoryHost::default() };
        let mut store = Partition::new(20);
        kept.iter().for_each(|(key, value)| store.set(key, 0, value.clone()));
        store.keep();
        undone.iter().for_each(|(key, value)| store.set(key, 1, value.clone()));
        store.undo();
        let page = store.scan(&host, &Scan::all()).unwrap();
        prop_assert_eq!(page.entries, expected(&laid_over(base, &kept), &[], None, false));
    }
}
