//! Changelogs on the embedded log: what a commit leaves there brings the store back, whatever has happened to either.

use super::*;
use crate::local::LocalLog;
use crate::model::log::*;
use crate::model::manifest::{Scope, StoreSpec};
use crate::model::{Clock, Fault, SystemClock, TopicPartition, Writes};
use crate::state::{Applied, Shared, Stores};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const NO_WAIT: Duration = Duration::ZERO;
const DAY: i64 = 86_400_000;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Hand(AtomicI64);

impl Clock for Hand {
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.wall_ms() as u64)
    }
}

/// One task's stores and their changelogs on an embedded log.
struct Rig {
    folder: tempfile::TempDir,
    log: LocalLog,
    clock: Arc<Hand>,
    stores: Option<Stores>,
    rebuilt: Vec<(usize, Reason)>,
}

impl Rig {
    fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let log = LocalLog::open(&folder.path().join("log"), Arc::new(SystemClock::default())).unwrap();
        let clock = Arc::new(Hand(AtomicI64::new(10 * DAY)));
        let mut rig = Rig { folder, log, clock, stores: None, rebuilt: Vec::new() };
        rig.create_changelogs();
        rig.restart().unwrap();
        rig
    }

    fn create_changelogs(&self) {
        for store in ["a", "b"] {
            self.log.create_topic(&spec("app", "proc", store, 2, 1_000_000)).unwrap();
        }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn open(&self, dir: &Path) -> Stores {
        let specs = ["a", "b"].map(|name| StoreSpec {
            name: name.into(),
            scope: Scope::Key,
            codec: "raw".into(),
            schema_version: 1,
            reads_from: 1,
        });
        Stores::open(dir, &specs, &Shared::new(1 << 20, 4 << 20), self.clock.clone()).unwrap()
    }

    fn stop(&mut self) {
        if let Some(stores) = self.stores.take() {
            stores.close().unwrap();
        }
    }

    /// Opens and restores.
    fn restart(&mut self) -> Result<(), Fault> {
        self.stop();
        let mut stores = self.open(&self.dir());
        let mut restore =
            Restore::start(Arc::new(self.log.clone()), &places(), (&mut stores, &[]), self.clock.clone())?;
        restore.run(&mut stores, NO_WAIT, |_| ())?;
        let progress = restore.progress();
        assert_eq!(progress.done, progress.target);
        self.rebuilt = restore.rebuilt().collect();
        self.stores = Some(stores);
        Ok(())
    }

    /// A commit: changelog, then stores. `crash` leaves out the stores, as a kill between the two does.
    fn commit(&mut self, changes: &[(u32, &str, Option<&str>)], crash: bool) {
        let stores = self.stores.as_mut().unwrap();
        stores.stage(&writes(changes), |entry| Origin { slot: 0, input: 0, offset: entry.into() });
        let mut producer = self.log.producer("p", Delivery::ExactlyOnce).unwrap();
        let topics = places().map(|place| producer.topic(&place.topic).unwrap());
        producer.begin().unwrap();
        for (store, topic) in topics.iter().enumerate() {
            produce(stores, store, &mut *producer, (*topic, 1), 77).unwrap();
        }
        assert_eq!(producer.flush().unwrap(), []);
        producer.commit().unwrap();
        if crash {
            stores.discard();
        } else {
            let changelogs = topics.map(|topic| producer.acknowledged(topic, 1));
            stores.apply(&Applied { changelogs: &changelogs, inputs: &[] }).unwrap();
        }
    }

    fn dump(&self, store: usize) -> Map {
        let entries = self.stores.as_ref().unwrap().dump(store).unwrap();
        entries.map(|entry| entry.unwrap()).map(|(k, v)| (k.into_vec(), v.into_vec())).collect()
    }

    fn away(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }
}

fn places() -> [TopicPartition; 2] {
    ["a", "b"].map(|store| TopicPartition::new(format!("app-proc-{store}-changelog"), 1))
}

fn writes(changes: &[(u32, &str, Option<&str>)]) -> Writes {
    let mut writes = Writes::default();
    for (i, (store, key, value)) in changes.iter().enumerate() {
        writes.entries.push(i as u32);
        writes.stores.push(*store);
        writes.keys.push(Some(key.as_bytes()));
        writes.values.push(value.map(str::as_bytes));
    }
    writes
}

fn map(entries: &[(&str, &str)]) -> Map {
    entries.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
}

#[test]
fn a_wiped_state_folder_comes_back_byte_for_byte() {
    let mut rig = Rig::new();
    for n in 0..40 {
        let key = format!("k{}", n % 17);
        let value = "v".repeat(n);
        rig.commit(&[(0, &key, Some(&value)), (1, "gone", Some("x")), (1, "gone", None), (1, &key, Some(""))], false);
    }
    let before = [rig.dump(0), rig.dump(1)];
    assert_eq!((before[0].len(), before[1].len()), (17, 17));
    rig.stop();
    Stores::wipe(&rig.dir()).unwrap();
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, [(0, Reason::New), (1, Reason::New)]);
    assert_eq!([rig.dump(0), rig.dump(1)], before);
}

#[test]
fn one_record_for_each_changed_key_of_a_commit() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "k", Some("1")), (0, "k", Some("2")), (0, "l", None)], false);
    let mut reader = rig.log.reader(&places()[0], 0).unwrap();
    let mut batch = crate::model::Batch::default();
    reader.fetch(&mut batch, FetchLimit { records: 9, bytes: 999 }, NO_WAIT).unwrap();
    let records: Vec<_> = batch.iter().map(|(_, record)| (record.key, record.value, record.timestamp)).collect();
    assert_eq!(records, [(Some(&b"k"[..]), Some(&b"2"[..]), 77), (Some(b"l"), None, 77)]);
}

#[test]
fn a_crash_between_the_log_and_the_store_replays_the_tail_only() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "k", Some("1"))], false);
    rig.commit(&[(0, "k", Some("2")), (1, "l", Some("3"))], true);
    assert_eq!(rig.dump(0), map(&[("k", "1")]));
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, []);
    assert_eq!([rig.dump(0), rig.dump(1)], [map(&[("k", "2")]), map(&[("l", "3")])]);
}

#[test]
fn a_restore_cut_short_goes_on_where_it_was() {
    let mut rig = Rig::new();
    let keys: Vec<_> = (0..25_000).map(|n| format!("k{n}")).collect();
    rig.commit(&keys.iter().map(|key| (0, key.as_str(), Some("v"))).collect::<Vec<_>>(), false);
    rig.stop();
    let dir = rig.folder.path().join("second");
    let mut stores = rig.open(&dir);
    let start = |stores: &mut Stores| {
        Restore::start(Arc::new(rig.log.clone()), &places(), (stores, &[]), rig.clock.clone()).unwrap()
    };
    let mut restore = start(&mut stores);
    assert_eq!(restore.step(&mut stores, NO_WAIT).unwrap(), Step::More(10_000));
    assert_eq!((restore.progress().done, restore.progress().target), (10_000, 25_000));
    stores.close().unwrap();
    let mut stores = rig.open(&dir);
    let mut restore = start(&mut stores);
    assert_eq!((restore.rebuilt().count(), restore.progress().target), (0, 15_000));
    restore.run(&mut stores, NO_WAIT, |_| ()).unwrap();
    assert_eq!((restore.progress().records, stores.dump(0).unwrap().count()), (15_000, 25_000));
}

#[test]
fn b41_records_deleted_past_the_position_rebuild_once() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "old", Some("1"))], false);
    rig.commit(&[(0, "lost", Some("2"))], true);
    rig.commit(&[(0, "new", Some("3"))], true);
    rig.log.delete_records(&places()[0], 2).unwrap();
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, [(0, Reason::BeforeStart(1, 2))]);
    assert_eq!(rig.dump(0), map(&[("new", "3")]));
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, []);
}

#[test]
fn b41_an_emptied_changelog_stops_with_a_choice_and_touches_nothing() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "k", Some("1")), (1, "l", Some("2"))], false);
    rig.log.delete_topic(&places()[0].topic).unwrap();
    rig.create_changelogs();
    let fault = rig.restart().unwrap_err();
    assert_eq!(fault.code, "changelog-recreated");
    assert!(fault.hint.unwrap().contains("state folder"));
    let stores = rig.open(&rig.dir());
    assert_eq!((stores.dump(0).unwrap().count(), stores.dump(1).unwrap().count()), (1, 1));
    drop(stores);
    Stores::wipe(&rig.dir()).unwrap();
    rig.restart().unwrap();
    assert_eq!([rig.dump(0), rig.dump(1)], [map(&[]), map(&[("l", "2")])]);
}

#[test]
fn b41_a_changelog_made_again_and_filled_is_never_mixed_with_the_old_state() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "k", Some("1"))], false);
    rig.log.delete_topic(&places()[0].topic).unwrap();
    rig.create_changelogs();
    rig.commit(&[(0, "x", Some("8")), (0, "y", Some("9"))], true);
    assert_eq!(
        rig.restart().unwrap_err().code,
        "changelog-recreated",
        "whoever filled it, the store may be the last whole copy"
    );
    Stores::wipe(&rig.dir()).unwrap();
    rig.restart().unwrap();
    assert_eq!(rig.dump(0), map(&[("x", "8"), ("y", "9")]));
}

#[test]
fn deletions_that_may_have_been_missed_rebuild_the_store() {
    let mut rig = Rig::new();
    rig.commit(&[(0, "k", Some("1"))], false);
    rig.away(2 * DAY);
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, [], "nothing has been written since");
    rig.commit(&[(0, "l", Some("2"))], true);
    rig.away(DAY - 1);
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, []);
    rig.commit(&[(0, "m", Some("3"))], true);
    rig.away(DAY + 1);
    rig.restart().unwrap();
    assert_eq!(rig.rebuilt, [(0, Reason::TombstonesExpired(DAY + 1))]);
    assert_eq!(rig.dump(0), map(&[("k", "1"), ("l", "2"), ("m", "3")]));
}

#[test]
fn a_compacted_tail_restores() {
    let mut rig = Rig::new();
    for n in 0..3 {
        let changes: Vec<_> = (0..4000).map(|i| (0, format!("k{i}"), n)).collect();
        let values: Vec<_> = changes.iter().map(|(_, _, n)| n.to_string()).collect();
        let changes: Vec<_> =
            changes.iter().zip(&values).map(|((s, k, _), v)| (*s, k.as_str(), Some(v.as_str()))).collect();
        rig.commit(&changes, false);
    }
    (0..20).for_each(|n| rig.commit(&[(1, "work", Some(&n.to_string()))], false));
    let before = rig.dump(0);
    rig.stop();
    Stores::wipe(&rig.dir()).unwrap();
    rig.restart().unwrap();
    assert_eq!((rig.dump(0) == before, before.len()), (true, 4000));
}

#[test]
fn a_topic_that_cannot_be_a_changelog_is_refused_with_the_remedy() {
    let rig = Rig::new();
    let good = rig.log.topic(&places()[0].topic).unwrap().unwrap();
    check(&good, 2).unwrap();
    assert_eq!(good.limits.max_message_bytes, 1_000_000 + 65_536);
    let with = |compact, delete| {
        let limits = TopicLimits { compact, delete, ..good.limits.clone() };
        check(&TopicInfo { limits, ..good.clone() }, 2)
    };
    for bad in [with(true, true), with(false, true), with(false, false)] {
        let fault = bad.unwrap_err();
        assert_eq!(fault.code, "changelog-policy");
        assert!(fault.hint.unwrap().contains("--add-config cleanup.policy=compact"));
    }
    assert_eq!(check(&good, 3).unwrap_err().code, "changelog-partitions");
}
