//! The stores against a plain map, across crashes, and against folders that are not what they should be.

use super::*;
use crate::model::log::Origin;
use crate::model::manifest::{Scope, StoreSpec};
use crate::model::state::{ScanRange, StateView};
use crate::model::{Batch, Clock, Column, HeadersRef, RecordRef, SystemClock, Verdict, Writes};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A clock that tests move; wall and monotonic time run together.
#[derive(Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.wall_ms() as u64)
    }
}

fn spec(name: &str) -> StoreSpec {
    StoreSpec { name: name.into(), scope: Scope::Partition, codec: "raw".into(), schema_version: 1, reads_from: 1 }
}

fn shared() -> Shared {
    Shared::new(8 << 20, 8 << 20)
}

fn open(dir: &Path, names: &[&str]) -> Stores {
    let specs: Vec<_> = names.iter().map(|name| spec(name)).collect();
    Stores::open(dir, &specs, &shared(), Arc::new(SystemClock::default())).unwrap()
}

/// Stores tied to a changelog, as after a restore.
fn open_tied(dir: &Path, names: &[&str]) -> Stores {
    let mut stores = open(dir, names);
    for store in 0..names.len() {
        stores.rebuild(store, "topic-id", 0, 1).unwrap();
    }
    stores
}

fn origin(entry: u32) -> Origin {
    Origin { slot: 0, input: 0, offset: entry.into() }
}

/// Store, key, value.
type Item<'a> = (u32, &'a [u8], Option<&'a [u8]>);

fn writes(items: &[Item<'_>]) -> Writes {
    let mut writes = Writes::default();
    for (i, (store, key, value)) in items.iter().enumerate() {
        writes.entries.push(i as u32);
        writes.stores.push(*store);
        writes.keys.push(Some(key));
        writes.values.push(*value);
    }
    writes
}

fn put(stores: &mut Stores, store: u32, key: &[u8], value: Option<&[u8]>) {
    stores.stage(&writes(&[(store, key, value)]), origin);
}

fn get(stores: &mut Stores, store: u32, key: &[u8]) -> Option<Vec<u8>> {
    let values = stores.get_many(store, &[Some(key)].into_iter().collect()).unwrap();
    values.iter().next().flatten().map(<[u8]>::to_vec)
}

fn dump(stores: &Stores, store: usize) -> Map {
    stores.dump(store).unwrap().map(|entry| entry.unwrap()).map(|(k, v)| (k.into_vec(), v.into_vec())).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target);
        } else {
            std::fs::copy(file.path(), target).unwrap();
        }
    }
}

fn batch(records: &[(&[u8], Option<&[u8]>)]) -> Batch {
    let mut batch = Batch::default();
    for (i, (key, value)) in records.iter().enumerate() {
        let record = RecordRef { key: Some(key), value: *value, headers: HeadersRef::default(), timestamp: 1 };
        batch.push(i as i64, record);
    }
    batch
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Option<Vec<u8>>),
    Apply,
    Discard,
    Reopen,
    Get(Vec<Vec<u8>>),
    Scan { start: Vec<u8>, end: Option<Vec<u8>>, reverse: bool, limit: u32, max_bytes: u32 },
}

/// Few keys, so that writes meet, prefixes of each other and empty ones among them.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..3, 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    let value = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..6));
    let scan = (key(), prop::option::of(key()), any::<bool>(), 0u32..12, 0u32..40);
    prop_oneof![
        12 => (key(), value).prop_map(|(key, value)| Op::Put(key, value)),
        2 => Just(Op::Apply),
        1 => Just(Op::Discard),
        1 => Just(Op::Reopen),
        4 => prop::collection::vec(key(), 0..6).prop_map(Op::Get),
        6 => scan.prop_map(|(start, end, reverse, limit, max_bytes)| Op::Scan { start, end, reverse, limit, max_bytes }),
    ]
}

fn model_scan(map: &Map, range: &ScanRange) -> (Vec<Vec<u8>>, bool) {
    let within = |key: &&Vec<u8>| **key >= range.start && range.end.as_ref().is_none_or(|end| *key < end);
    let mut keys: Vec<_> = map.keys().filter(within).collect();
    if range.reverse {
        keys.reverse();
    }
    let (mut out, mut bytes) = (Vec::new(), 0);
    for (i, key) in keys.iter().enumerate() {
        bytes += key.len() + map[*key].len();
        if i >= range.limit as usize || (i > 0 && bytes > range.max_bytes as usize) {
            return (out, true);
        }
        out.extend([(*key).clone(), map[*key].clone()]);
    }
    (out, false)
}

fn check_get(stores: &mut Stores, view: &Map, keys: &[Vec<u8>]) {
    let column: Column = keys.iter().map(|key| Some(&key[..])).collect();
    let values = stores.get_many(1, &column).unwrap();
    let expected: Column = keys.iter().map(|key| view.get(key).map(|value| &value[..])).collect();
    assert_eq!(values, expected);
}

fn check_scan(stores: &mut Stores, view: &Map, range: &ScanRange) {
    let (entries, more) = stores.scan(1, range).unwrap();
    let (expected, expected_more) = model_scan(view, range);
    assert_eq!(entries.iter().map(|item| item.unwrap().to_vec()).collect::<Vec<_>>(), expected, "{range:?}");
    assert_eq!(more, expected_more, "{range:?}");
}

fn check_overlay(stores: &Stores, staged: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
    let changes: Vec<_> = stores.overlay(1).map(|c| (c.key.to_vec(), c.value.map(<[u8]>::to_vec))).collect();
    assert_eq!(changes.len(), staged.len(), "once per key");
    assert_eq!(&changes.into_iter().collect::<BTreeMap<_, _>>(), staged);
}

fn run_model(ops: Vec<Op>) {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = open_tied(dir.path(), &["other", "mine"]);
    let (mut committed, mut view, mut staged) = (Map::new(), Map::new(), BTreeMap::new());
    for op in ops {
        match op {
            Op::Put(key, value) => {
                put(&mut stores, 1, &key, value.as_deref());
                put(&mut stores, 0, &key, Some(b"other"));
                match &value {
                    Some(value) => view.insert(key.clone(), value.clone()),
                    None => view.remove(&key),
                };
                staged.insert(key, value);
            }
            Op::Apply => {
                check_overlay(&stores, &staged);
                stores.apply(&Applied { changelogs: &[None, Some(5)], inputs: &[("in", 3)] }).unwrap();
                committed = view.clone();
                staged.clear();
            }
            Op::Discard | Op::Reopen => {
                stores.discard();
                view = committed.clone();
                staged.clear();
                if matches!(op, Op::Reopen) {
                    stores.close().unwrap();
                    stores = open(dir.path(), &["other", "mine"]);
                }
            }
            Op::Get(keys) => check_get(&mut stores, &view, &keys),
            Op::Scan { start, end, reverse, limit, max_bytes } => {
                check_scan(&mut stores, &view, &ScanRange { start, end, reverse, limit, max_bytes });
            }
        }
    }
    assert_eq!(dump(&stores, 1), committed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stores_and_overlay_behave_like_a_map(ops in prop::collection::vec(op(), 1..80)) {
        run_model(ops);
    }
}

#[test]
fn a_change_remembers_its_last_writer() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = open(dir.path(), &["s"]);
    stores.stage(&writes(&[(0, b"a", Some(b"long value")), (0, b"b", None), (0, b"a", Some(b"1"))]), origin);
    let changes: Vec<_> = stores.overlay(0).map(|c| (c.key, c.value, c.origin.offset)).collect();
    assert_eq!(changes, [(&b"a"[..], Some(&b"1"[..]), 2), (b"b", None, 1)]);
    assert!(stores.overlay_bytes() > 0);
    stores.discard();
    assert_eq!((stores.overlay_bytes(), stores.overlay(0).count()), (0, 0));
}

#[test]
fn a_killed_store_reopens_older_with_its_own_older_positions() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut stores = open_tied(dir.path(), &["a", "b"]);
    let mut commit = |n: i64, flush: bool| {
        put(&mut stores, 0, b"n", Some(n.to_string().as_bytes()));
        put(&mut stores, 1, b"n", Some(n.to_string().as_bytes()));
        stores.apply(&Applied { changelogs: &[Some(n), Some(10 * n)], inputs: &[("in", 100 * n)] }).unwrap();
        if flush {
            stores.flush(true).unwrap();
        }
        // What a kill leaves behind: the files as they are now.
        copy(dir.path(), &copies.path().join(n.to_string()));
    };
    for (n, flush) in [(1, true), (2, false), (3, false), (4, true), (5, false)] {
        commit(n, flush);
    }
    for (killed_after, survives) in [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4)] {
        let mut stores = open(&copies.path().join(killed_after.to_string()), &["a", "b"]);
        let value = survives.to_string().into_bytes();
        assert_eq!((get(&mut stores, 0, b"n"), get(&mut stores, 1, b"n")), (Some(value.clone()), Some(value)));
        assert_eq!(stores.position(0).unwrap().offset, survives);
        assert_eq!(stores.position(1).unwrap().offset, 10 * survives);
        assert_eq!(stores.applied().inputs["in"], 100 * survives);
    }
}

#[test]
fn memtable_pressure_keeps_data_and_positions_together() {
    let dir = tempfile::tempdir().unwrap();
    let test = ["--exact", "state::tests::writes_until_it_dies", "--ignored"];
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let status = child.args(test).env("PELTON_TEST_DIR", dir.path()).output().unwrap().status;
    assert!(!status.success(), "the child is to die");
    let killed = open(dir.path(), &["a"]);
    let position = killed.position(0).unwrap().offset;
    assert!((1..40_000).contains(&position), "nothing was flushed, or all was: {position}");
    assert_eq!(dump(&killed, 0).len() as i64, position);
}

#[test]
#[ignore = "the child of the test above"]
fn writes_until_it_dies() {
    let Ok(dir) = std::env::var("PELTON_TEST_DIR") else { return };
    let shared = Shared::new(1 << 20, 2 << 20);
    let mut stores = Stores::open(Path::new(&dir), &[spec("a")], &shared, Arc::new(SystemClock::default())).unwrap();
    stores.rebuild(0, "t", 0, 1).unwrap();
    for n in 0..400i64 {
        let keys: Vec<_> = (0..100).map(|i| format!("{n:05}-{i:02}")).collect();
        let items: Vec<_> = keys.iter().map(|key| (0, key.as_bytes(), Some(&[7u8; 100][..]))).collect();
        stores.stage(&writes(&items), origin);
        stores.apply(&Applied { changelogs: &[Some(100 * (n + 1))], inputs: &[] }).unwrap();
    }
    std::process::abort();
}

#[test]
fn flushes_are_bounded_in_time_and_idle_stores_stay_fresh() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let clock = Arc::new(Hand::default());
    let mut stores = Stores::open(dir.path(), &[spec("a")], &shared(), clock.clone()).unwrap();
    stores.rebuild(0, "t", 0, 0).unwrap();
    clock.0.store(29_000, Ordering::Relaxed);
    stores.flush_if_due().unwrap();
    assert!(stores.is_dirty(), "too early");
    clock.0.store(30_000, Ordering::Relaxed);
    stores.flush_if_due().unwrap();
    assert!(!stores.is_dirty());
    clock.0.store(3_600_000, Ordering::Relaxed);
    stores.flush_if_due().unwrap();
    assert_eq!(stores.applied().stores["a"].seen_ms, 0, "still restoring: what it has not read may be gone");
    stores.caught_up(0, 0, 0).unwrap();
    stores.flush(true).unwrap();
    clock.0.store(7_200_000, Ordering::Relaxed);
    stores.flush_if_due().unwrap();
    stores.flush(true).unwrap();
    copy(dir.path(), &copies.path().join("killed"));
    assert_eq!(open(&copies.path().join("killed"), &["a"]).applied().stores["a"].seen_ms, 7_200_000);
}

#[test]
fn restore_replays_and_moves_the_position_in_one_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = open_tied(dir.path(), &["s"]);
    stores.restore(0, &batch(&[(b"a", Some(b"1")), (b"b", Some(b"")), (b"a", None)]), 40).unwrap();
    drop(stores);
    let mut stores = open(dir.path(), &["s"]);
    assert_eq!(dump(&stores, 0), Map::from([(b"b".to_vec(), vec![])]));
    assert_eq!(*stores.position(0).unwrap(), Position { topic_id: "topic-id".into(), offset: 40 });
    assert_eq!(stores.applied().stores["s"].seen_ms, 1, "not caught up");
    stores.caught_up(0, 50, 9).unwrap();
    assert_eq!((stores.position(0).unwrap().offset, stores.applied().stores["s"].seen_ms), (50, 9));
}

#[test]
fn what_is_kept_in_memory_never_hides_a_restore_or_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = open_tied(dir.path(), &["s"]);
    put(&mut stores, 0, b"a", Some(b"1"));
    stores.apply(&Applied::default()).unwrap();
    assert_eq!(get(&mut stores, 0, b"a"), Some(b"1".to_vec()));
    stores.restore(0, &batch(&[(b"a", Some(b"2"))]), 9).unwrap();
    assert_eq!(get(&mut stores, 0, b"a"), Some(b"2".to_vec()));
    put(&mut stores, 0, b"a", Some(b"3"));
    stores.apply(&Applied::default()).unwrap();
    stores.rebuild(0, "t", 0, 1).unwrap();
    assert_eq!(get(&mut stores, 0, b"a"), None);
}

#[test]
fn a_rebuild_cannot_leave_a_position_without_data() {
    let (dir, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut stores = open_tied(dir.path(), &["a", "b"]);
    stores.restore(0, &batch(&[(b"k", Some(b"v"))]), 10).unwrap();
    stores.restore(1, &batch(&[(b"k", Some(b"v"))]), 10).unwrap();
    stores.flush(true).unwrap();
    stores.rebuild(0, "new", 3, 5).unwrap();
    copy(dir.path(), &copies.path().join("killed"));
    let killed = open(&copies.path().join("killed"), &["a", "b"]);
    assert_eq!((killed.position(0), killed.is_empty(0).unwrap()), (None, true));
    assert_eq!((killed.position(1).unwrap().offset, killed.is_empty(1).unwrap()), (10, false));
    assert_eq!(*stores.position(0).unwrap(), Position { topic_id: "new".into(), offset: 3 });
}

#[test]
fn stores_are_known_by_name_and_removed_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = open_tied(dir.path(), &["a", "b"]);
    put(&mut stores, 1, b"k", Some(b"in b"));
    stores.apply(&Applied { changelogs: &[None, Some(1)], inputs: &[] }).unwrap();
    stores.close().unwrap();
    drop(open(dir.path(), &["c"]));
    let mut stores = open(dir.path(), &["b", "c", "a"]);
    assert_eq!(get(&mut stores, 0, b"k"), Some(b"in b".to_vec()));
    assert_eq!(stores.position(0).unwrap().offset, 1);
    assert_eq!((get(&mut stores, 1, b"k"), stores.position(1)), (None, None));
}

#[test]
fn one_opener_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let stores = open(dir.path(), &["a"]);
    let again = || Stores::open(dir.path(), &[spec("a")], &shared(), Arc::new(SystemClock::default()));
    for fault in [again().err().unwrap(), Stores::wipe(dir.path()).unwrap_err()] {
        assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "state-locked"));
        assert!(fault.message.contains(&format!("process {}", std::process::id())), "{fault}");
    }
    drop(stores);
    Stores::wipe(dir.path()).unwrap();
    assert!(again().unwrap().is_empty(0).unwrap());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let path = dir.path().join("file").join("task");
    let fault = Stores::open(&path, &[], &shared(), Arc::new(SystemClock::default())).err().unwrap();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "state-not-writable"));
    assert!(fault.message.contains(path.to_str().unwrap()));
}

#[test]
fn damage_is_seen_and_wiping_mends_it() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 3] = [
        ("manifest gone", |db| damage(db, "MANIFEST", |file| std::fs::remove_file(file).unwrap())),
        ("manifest garbled", |db| damage(db, "MANIFEST", |file| std::fs::write(file, [7; 999]).unwrap())),
        ("table gone", |db| damage(db, ".sst", |file| std::fs::remove_file(file).unwrap())),
    ];
    for (name, damage) in cases {
        let dir = tempfile::tempdir().unwrap();
        let mut stores = open_tied(dir.path(), &["a"]);
        put(&mut stores, 0, b"k", Some(b"v"));
        stores.apply(&Applied::default()).unwrap();
        stores.close().unwrap();
        damage(&dir.path().join("db"));
        let again = || Stores::open(dir.path(), &[spec("a")], &shared(), Arc::new(SystemClock::default()));
        let fault = again().err().unwrap_or_else(|| panic!("{name}: opened"));
        assert_eq!((fault.verdict, fault.code), (Verdict::Corrupt, "store-corrupt"), "{name}: {fault}");
        Stores::wipe(dir.path()).unwrap();
        assert!(again().unwrap().position(0).is_none(), "{name}");
    }
}

fn damage(db: &Path, name: &str, how: impl Fn(&Path)) {
    let files = std::fs::read_dir(db).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains(name)).for_each(|path| how(&path));
}
