//! Committed state, and only that: keys where the partitioner puts them, pages that go on where the last one ended.

use super::rig::{App, Host, until};
use crate::model::partition_for_key;
use crate::model::state::ScanRange;
use crate::runtime::control::state::{Answer, Entry, Get, Page, Scan, Value};

fn get(key: &[u8]) -> Get {
    Get { processor: "proc".into(), store: "store".into(), key: key.to_vec(), partition: None }
}

fn scan(range: ScanRange) -> Scan {
    Scan { processor: "proc".into(), store: "store".into(), partition: None, range, from: None }
}

/// The count of a key, and where it is.
fn count(host: &Host, key: &[u8]) -> (i32, Option<u8>) {
    let Answer::Here(Value { partition, value }) = host.control.get(&get(key)).unwrap() else { panic!("it is here") };
    (partition, value.map(|value| value[0]))
}

/// Page by page, until there is no more.
fn pages(host: &Host, mut ask: Scan) -> Vec<Page> {
    let mut pages = Vec::new();
    loop {
        let Answer::Here(page) = host.control.scan(&ask).unwrap() else { panic!("it is here") };
        ask.from.clone_from(&page.next);
        pages.push(page);
        if ask.from.is_none() {
            return pages;
        }
        assert!(pages.len() < 1000, "it ends");
    }
}

fn all(host: &Host, ask: Scan) -> Vec<Entry> {
    pages(host, ask).into_iter().flat_map(|page| page.entries).collect()
}

#[test]
fn a_key_is_found_where_the_partitioner_puts_it() {
    let app = App::counting(5);
    let host = app.host(1);
    app.feed(&[(b"a", "x"), (b"b", "x"), (b"a", "x")]);
    host.idle();
    assert_eq!(count(&host, b"a"), (partition_for_key(b"a", 5), Some(2)));
    assert_eq!(count(&host, b"b"), (partition_for_key(b"b", 5), Some(1)));
    assert_eq!(count(&host, b"c"), (partition_for_key(b"c", 5), None));
    let elsewhere = (partition_for_key(b"a", 5) + 1) % 5;
    let named = host.control.get(&Get { partition: Some(elsewhere), ..get(b"a") }).unwrap();
    assert_eq!(named, Answer::Here(Value { partition: elsewhere, value: None }), "only where it was asked for");
}

#[test]
fn what_is_not_committed_is_not_shown() {
    let app = App::new(1, "commit_interval = \"30s\"", &super::rig::processor("proc", ""));
    let host = app.host(1);
    host.idle();
    app.feed(&[(b"a", "x")]);
    // the first commit comes at once, and the next one when the interval is over
    until("the first is committed", || (count(&host, b"a").1 == Some(1)).then_some(()));
    app.feed(&[(b"a", "x"), (b"b", "x")]);
    until("more lies over it", || host.tasks().pop().filter(|task| task.overlay_bytes > 0));
    assert_eq!((count(&host, b"a").1, count(&host, b"b").1), (Some(1), None));
    let entry = Entry { partition: 0, key: b"a".to_vec(), value: vec![1] };
    assert_eq!(all(&host, scan(ScanRange::default())), [entry]);
    host.stop().unwrap();
}

#[test]
fn pages_of_any_size_are_the_whole_either_way() {
    let app = App::counting(4);
    let host = app.host(1);
    let keys: Vec<[u8; 1]> = (0u8..=255).filter(|key| key % 3 != 0).map(|key| [key]).collect();
    for key in &keys {
        app.feed(&[(key, "x")]);
    }
    host.idle();
    let whole = all(&host, scan(ScanRange::default()));
    assert_eq!(whole.len(), keys.len());
    assert!(whole.is_sorted_by_key(|entry| (entry.partition, entry.key.clone())), "by partition, then by key");
    assert!(whole.iter().all(|entry| entry.partition == partition_for_key(&entry.key, 4)));
    let part = ScanRange { start: vec![20], end: Some(vec![200]), ..ScanRange::default() };
    let wanted = |entry: &&Entry| (20..200).contains(&entry.key[0]);
    for limit in [1, 2, 7, 43, 5000] {
        for reverse in [false, true] {
            let range = ScanRange { limit, reverse, ..part.clone() };
            let mut expected: Vec<Entry> = whole.iter().filter(wanted).cloned().collect();
            if reverse {
                expected.sort_by_key(|entry| (entry.partition, std::cmp::Reverse(entry.key.clone())));
            }
            let pages = pages(&host, scan(range));
            assert!(pages.iter().all(|page| page.entries.len() <= limit as usize && !page.entries.is_empty()));
            assert_eq!(
                pages.into_iter().flat_map(|page| page.entries).collect::<Vec<_>>(),
                expected,
                "{limit} {reverse}"
            );
        }
    }
    let bytes = ScanRange { max_bytes: 9, ..ScanRange::default() };
    assert!(pages(&host, scan(bytes)).iter().all(|page| page.entries.len() <= 4), "two bytes each");
    let one = Scan { partition: Some(2), ..scan(ScanRange::default()) };
    let expected: Vec<Entry> = whole.iter().filter(|entry| entry.partition == 2).cloned().collect();
    assert_eq!(all(&host, one), expected);
}

#[test]
fn what_is_not_there_is_named() {
    let app = App::new(2, "", &super::rig::processor("proc", "ordering = \"key\""));
    let host = app.host(1);
    host.idle();
    let code = |ask: Get| host.control.get(&ask).map(drop).map_err(|fault| (fault.code, fault.to_string()));
    let (unknown, says) = code(Get { processor: "p".into(), ..get(b"a") }).unwrap_err();
    assert!(unknown == "processor-unknown" && says.contains("there are: proc"), "{says}");
    let (unknown, says) = code(Get { store: "stroe".into(), ..get(b"a") }).unwrap_err();
    assert!(unknown == "store-unknown" && says.contains("it has: store"), "{says}");
    // what is parked is nobody's state
    assert_eq!(code(Get { store: "pelton-parked".into(), ..get(b"a") }).unwrap_err().0, "store-unknown");
    for partition in [-1, 2] {
        let (unknown, says) = code(Get { partition: Some(partition), ..get(b"a") }).unwrap_err();
        assert!(unknown == "partition-unknown" && says.contains("it has 2"), "{says}");
    }
}

#[test]
fn a_worker_that_does_not_answer_is_said_to_be_busy() {
    let app = App::counting(1);
    let host = app.host(1);
    host.idle();
    let release = host.hold_up_workers();
    assert_eq!(host.control.get(&get(b"a")).unwrap_err().code, "state-busy");
    drop(release);
    assert_eq!(count(&host, b"a").1, None);
}
