//! The embedded log against a plain model, across kills, and by Kafka's rules.

use super::*;
use crate::model::log::*;
use crate::model::{
    Batch, Clock, Column, Fault, HeadersRef, RecordRef, SystemClock, TopicPartition, Verdict, partition_for_key,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NO_WAIT: Duration = Duration::ZERO;
const ALL: FetchLimit = FetchLimit { records: usize::MAX, bytes: usize::MAX };
const ORIGIN: Origin = Origin { slot: 1, input: 2, offset: 3 };

struct Hand(AtomicI64);

impl Clock for Hand {
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Remembers what the group did.
#[derive(Default)]
struct Listener {
    sources: Mutex<Vec<Box<dyn Source>>>,
    revoked: Mutex<Vec<TopicPartition>>,
}

impl GroupListener for Listener {
    fn assigned(&self, sources: Vec<Box<dyn Source>>) {
        self.sources.lock().unwrap().extend(sources);
    }

    fn revoked(&self, partitions: &[TopicPartition]) {
        self.revoked.lock().unwrap().extend_from_slice(partitions);
    }

    fn lost(&self, _: &[TopicPartition]) {
        panic!("nothing is lost in one process");
    }
}

fn open(dir: &Path) -> LocalLog {
    LocalLog::open(dir, Arc::new(SystemClock::default())).unwrap()
}

fn create(log: &LocalLog, name: &str, partitions: i32, properties: &[(&str, &str)]) {
    let properties = properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    log.create_topic(&TopicSpec { name: name.into(), partitions, replication: None, properties }).unwrap();
}

fn record<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> RecordRef<'a> {
    RecordRef { key, value, headers: HeadersRef::default(), timestamp: 5 }
}

fn read(log: &LocalLog, topic: &str, partition: i32, from: i64) -> Batch {
    let mut source = log.reader(&TopicPartition::new(topic, partition), from).unwrap();
    let mut batch = Batch::default();
    while !source.at_end() {
        source.fetch(&mut batch, ALL, NO_WAIT).unwrap();
    }
    batch
}

fn count(log: &LocalLog, topic: &str, partition: i32) -> usize {
    read(log, topic, partition, 0).len()
}

/// Commits values under one key each, all on partition 0.
fn commit(log: &LocalLog, topic: &str, records: &[(&[u8], Option<&[u8]>)]) {
    let mut producer = log.producer("helper", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic(topic).unwrap();
    producer.begin().unwrap();
    records.iter().for_each(|(k, v)| producer.send(to, Some(0), record(Some(k), *v), ORIGIN).unwrap());
    producer.commit().unwrap();
}

fn commit_many(log: &LocalLog, topic: &str, key: &str, value: Option<&str>, count: usize) {
    commit(log, topic, &vec![(key.as_bytes(), value.map(str::as_bytes)); count]);
}

fn join(log: &LocalLog, group: &str, topics: &[&str]) -> (Box<dyn Member>, Arc<Listener>) {
    let listener = Arc::new(Listener::default());
    let spec = GroupSpec {
        group: group.into(),
        topics: topics.iter().map(|&topic| topic.into()).collect(),
        protocol: GroupProtocol::Classic,
        instance_id: "i".into(),
        session_timeout: Duration::from_secs(10),
    };
    (log.join(spec, listener.clone()).unwrap(), listener)
}

fn offset(topic: &str, partition: i32, offset: i64, metadata: &str) -> OffsetCommit {
    let partition = TopicPartition::new(topic, partition);
    OffsetCommit { partition, topic_id: "".into(), offset, metadata: metadata.into() }
}

fn code(result: Result<(), Fault>) -> (Verdict, &'static str) {
    let fault = result.unwrap_err();
    (fault.verdict, fault.code)
}

type Stored = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>, i64);

#[derive(Clone, Debug)]
enum Op {
    Send(i32, Stored),
    Commit,
    Abort,
    Reopen,
    Read { partition: i32, from: u8, records: usize, bytes: usize },
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn op() -> impl Strategy<Value = Op> {
    let headers = prop::collection::vec((bytes(3), prop::option::of(bytes(3))), 0..3);
    let stored = (prop::option::of(bytes(4)), prop::option::of(bytes(40)), headers, -1i64..4);
    prop_oneof![
        10 => (0..2, stored).prop_map(|(partition, stored)| Op::Send(partition, stored)),
        3 => Just(Op::Commit),
        1 => Just(Op::Abort),
        1 => Just(Op::Reopen),
        6 => (0..2, any::<u8>(), 1usize..9, 0usize..80)
            .prop_map(|(partition, from, records, bytes)| Op::Read { partition, from, records, bytes }),
    ]
}

fn owned(record: RecordRef<'_>) -> Stored {
    let headers = record.headers.iter().map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect();
    (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec), headers, record.timestamp)
}

fn send(producer: &mut dyn Producer, to: TopicRef, partition: i32, (key, value, headers, timestamp): &Stored) {
    let names: Column = headers.iter().map(|(name, _)| Some(&name[..])).collect();
    let values: Column = headers.iter().map(|(_, value)| value.as_deref()).collect();
    let headers = HeadersRef::new(names.view(), values.view());
    let record = RecordRef { key: key.as_deref(), value: value.as_deref(), headers, timestamp: *timestamp };
    producer.send(to, Some(partition), record, ORIGIN).unwrap();
}

/// What a fetch must return: a run from `from`, within the limits, at least one.
fn check_read(log: &LocalLog, partition: i32, from: usize, limit: FetchLimit, expected: &[Stored]) {
    let mut source = log.reader(&TopicPartition::new("t", partition), from as i64).unwrap();
    let mut batch = Batch::default();
    let mut at = from;
    while !source.at_end() {
        batch.clear();
        let n = source.fetch(&mut batch, limit, NO_WAIT).unwrap();
        assert_eq!(n, batch.len());
        assert!(n <= limit.records && (n <= 1 || batch.bytes() <= limit.bytes), "{n} {}", batch.bytes());
        assert!(n > 0 || source.at_end());
        for (offset, record) in batch.iter() {
            assert_eq!((offset as usize, owned(record)), (at, expected[at].clone()));
            at += 1;
        }
        assert_eq!(source.position(), at as i64);
    }
    assert_eq!(at, expected.len());
}

fn run_model(ops: Vec<Op>) {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path());
    create(&log, "t", 2, &[]);
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let mut to = producer.topic("t").unwrap();
    producer.begin().unwrap();
    let (mut committed, mut pending) = ([vec![], vec![]], [vec![], vec![]]);
    for op in ops {
        match op {
            Op::Send(partition, stored) => {
                send(&mut *producer, to, partition, &stored);
                let (key, value, headers, timestamp) = stored;
                let sent_as = if timestamp == 0 { 1 } else { timestamp };
                pending[partition as usize].push((key, value, headers, sent_as));
            }
            Op::Commit => {
                producer.commit().unwrap();
                producer.begin().unwrap();
                (0..2).for_each(|p| committed[p].append(&mut pending[p]));
            }
            Op::Abort | Op::Reopen => {
                pending = [vec![], vec![]];
                producer.abort().unwrap();
                if matches!(op, Op::Reopen) {
                    drop(producer);
                    drop(log);
                    log = open(dir.path());
                    producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
                    to = producer.topic("t").unwrap();
                }
                producer.begin().unwrap();
            }
            Op::Read { partition, from, records, bytes } => {
                let expected = &committed[partition as usize];
                let from = from as usize % (expected.len() + 1);
                check_read(&log, partition, from, FetchLimit { records, bytes }, expected);
            }
        }
        let end = |partition| log.ends(&TopicPartition::new("t", partition)).unwrap().end as usize;
        assert_eq!([end(0), end(1)], [committed[0].len(), committed[1].len()], "only what is committed is there");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_behaves_like_lists_of_records(ops in prop::collection::vec(op(), 1..60)) {
        run_model(ops);
    }
}

#[test]
fn a_large_commit_is_read_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    let values: Vec<_> = (0..3000u32).map(|n| n.to_string().repeat(1 + n as usize % 300)).collect();
    let records: Vec<_> = values.iter().map(|value| (&b"k"[..], Some(value.as_bytes()))).collect();
    commit(&log, "t", &records);
    let batch = read(&log, "t", 0, 0);
    assert_eq!(batch.offsets, (0..3000).collect::<Vec<_>>());
    assert!(batch.values.iter().map(Option::unwrap).eq(values.iter().map(String::as_bytes)));
    assert_eq!(read(&log, "t", 0, 1111).offsets[0], 1111);
}

#[test]
fn a_commit_is_whole_and_an_abort_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "in", 2, &[]);
    create(&log, "out", 1, &[]);
    let (mut member, listener) = join(&log, "g", &["in"]);
    member.poll(NO_WAIT).unwrap();
    let given: Vec<_> = listener.sources.lock().unwrap().iter().map(|s| s.partition().clone()).collect();
    assert_eq!(given, [TopicPartition::new("in", 0), TopicPartition::new("in", 1)]);
    let group = member.group();
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let out = producer.topic("out").unwrap();
    let committed = || log.group("g").committed(&[TopicPartition::new("in", 1)]).unwrap().remove(0);
    for (finish, expected) in [(false, 0), (true, 1)] {
        producer.begin().unwrap();
        producer.send(out, Some(0), record(None, Some(b"v")), ORIGIN).unwrap();
        producer.send_offsets(&*group, &[offset("in", 1, 7, "meta")]).unwrap();
        assert_eq!(producer.flush().unwrap(), []);
        assert_eq!((count(&log, "out", 0), committed().offset), (0, None), "nothing shows before the commit");
        if finish { producer.commit() } else { producer.abort() }.unwrap();
        assert_eq!(count(&log, "out", 0), expected);
    }
    assert_eq!(committed(), Committed { offset: Some(7), metadata: "meta".into() });
    assert_eq!(producer.acknowledged(out, 0), Some(1));
}

#[test]
fn groups_give_all_once_and_take_offsets_from_their_member_only() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "in", 2, &[]);
    let (mut first, one) = join(&log, "g", &["in"]);
    let (mut second, two) = join(&log, "g", &["in"]);
    first.poll(NO_WAIT).unwrap();
    first.poll(NO_WAIT).unwrap();
    second.poll(NO_WAIT).unwrap();
    assert_eq!((one.sources.lock().unwrap().len(), two.sources.lock().unwrap().len()), (2, 0));
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    producer.begin().unwrap();
    let mine = offset("in", 0, 1, "");
    let refused = code(producer.send_offsets(&*second.group(), std::slice::from_ref(&mine)));
    assert_eq!(refused, (Verdict::Transient, "group-not-member"));
    first.leave().unwrap();
    assert_eq!(one.revoked.lock().unwrap().len(), 2);
    assert_eq!(code(producer.send_offsets(&*first.group(), &[mine])).1, "group-not-member");
    second.poll(NO_WAIT).unwrap();
    assert_eq!(two.sources.lock().unwrap().len(), 2);
}

#[test]
fn a_source_reads_nothing_before_its_first_seek() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "in", 1, &[]);
    commit(&log, "in", &[(b"k", Some(b"v"))]);
    let (mut member, listener) = join(&log, "g", &["in"]);
    member.poll(NO_WAIT).unwrap();
    let mut source = listener.sources.lock().unwrap().remove(0);
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = woken.clone();
    source.on_ready(Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    let mut batch = Batch::default();
    assert_eq!(source.fetch(&mut batch, ALL, NO_WAIT).unwrap(), 0);
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    source.seek(0).unwrap();
    assert_eq!(woken.load(Ordering::Relaxed), 1, "there was something already");
    assert_eq!(source.fetch(&mut batch, ALL, NO_WAIT).unwrap(), 1);
    commit(&log, "in", &[(b"k", Some(b"w"))]);
    assert_eq!(woken.load(Ordering::Relaxed), 2);
    assert_eq!(source.fetch(&mut batch, ALL, NO_WAIT).unwrap(), 1);
    source.seek(99).unwrap();
    assert_eq!(source.fetch(&mut batch, ALL, NO_WAIT).unwrap_err().code, "offset-out-of-range");
}

#[test]
fn a_waiting_reader_is_woken_by_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    let mut source = log.reader(&TopicPartition::new("t", 0), 0).unwrap();
    let reader = std::thread::spawn(move || source.fetch(&mut Batch::default(), ALL, Duration::from_secs(60)).unwrap());
    commit(&log, "t", &[(b"k", None)]);
    assert_eq!(reader.join().unwrap(), 1);
}

#[test]
fn refusals_name_their_origin_and_spoil_the_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let now = 1_000_000_000_000;
    let log = LocalLog::open(dir.path(), Arc::new(Hand(AtomicI64::new(now)))).unwrap();
    create(&log, "t", 1, &[("max.message.bytes", "500")]);
    create(&log, "compacted", 1, &[("cleanup.policy", "compact")]);
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let (t, compacted) = (producer.topic("t").unwrap(), producer.topic("compacted").unwrap());
    let late = RecordRef { timestamp: now + 3_600_001, ..record(None, None) };
    let cases = [
        (t, record(None, Some(&[0; 500])), "output-too-large"),
        (t, late, "output-timestamp-refused"),
        (compacted, record(None, None), "output-refused"),
    ];
    for (to, bad, expected) in cases {
        producer.begin().unwrap();
        producer.send(t, None, record(Some(b"good"), None), ORIGIN).unwrap();
        producer.send(to, None, bad, Origin { offset: 9, ..ORIGIN }).unwrap();
        let refusals = producer.flush().unwrap();
        assert_eq!(refusals.iter().map(|r| (r.code, r.origin.offset)).collect::<Vec<_>>(), [(expected, 9)]);
        assert_eq!(code(producer.commit()), (Verdict::Transient, "transaction-refused"));
        producer.abort().unwrap();
        producer.begin().unwrap();
        assert_eq!(producer.flush().unwrap(), [], "an abort forgets refusals");
    }
    assert_eq!(count(&log, "t", 0), 0);
}

#[test]
fn a_newer_producer_fences_the_older() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    let mut old = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let to = old.topic("t").unwrap();
    old.begin().unwrap();
    old.send(to, Some(0), record(None, None), ORIGIN).unwrap();
    let mut new = log.producer("p", Delivery::ExactlyOnce).unwrap();
    for result in [old.flush().map(drop), old.commit(), old.begin()] {
        assert_eq!(code(result), (Verdict::Fenced, "producer-fenced"));
    }
    new.begin().unwrap();
    new.commit().unwrap();
    assert_eq!(count(&log, "t", 0), 0);
}

#[test]
fn at_least_once_shows_records_at_the_flush_and_takes_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    let mut producer = log.producer("p", Delivery::AtLeastOnce).unwrap();
    let to = producer.topic("t").unwrap();
    for expected in 1..3 {
        producer.begin().unwrap();
        producer.send(to, Some(0), record(None, None), ORIGIN).unwrap();
        producer.flush().unwrap();
        assert_eq!(count(&log, "t", 0), expected);
        producer.abort().unwrap();
        assert_eq!(count(&log, "t", 0), expected);
    }
}

#[test]
fn keys_choose_their_partition_and_null_keys_are_spread() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 4, &[]);
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic("t").unwrap();
    producer.begin().unwrap();
    producer.send(to, None, record(Some(b"foobar"), None), ORIGIN).unwrap();
    producer.commit().unwrap();
    assert_eq!(count(&log, "t", partition_for_key(b"foobar", 4)), 1);
    producer.begin().unwrap();
    (0..40).for_each(|_| producer.send(to, None, record(None, None), ORIGIN).unwrap());
    producer.commit().unwrap();
    assert!((0..4).all(|partition| count(&log, "t", partition) >= 10));
}

#[test]
fn a_topic_made_again_is_another_and_starts_empty() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    commit(&log, "t", &[(b"k", Some(b"v"))]);
    let (mut member, _listener) = join(&log, "g", &["t"]);
    member.poll(NO_WAIT).unwrap();
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    producer.topic("t").unwrap();
    producer.begin().unwrap();
    producer.send_offsets(&*member.group(), &[offset("t", 0, 1, "")]).unwrap();
    producer.commit().unwrap();
    let mut source = log.reader(&TopicPartition::new("t", 0), 0).unwrap();
    let id = log.topic("t").unwrap().unwrap().id;
    log.delete_topic("t").unwrap();
    assert_eq!(log.topic("t").unwrap(), None);
    assert_eq!(source.fetch(&mut Batch::default(), ALL, NO_WAIT).unwrap_err().code, "topic-missing");
    create(&log, "t", 1, &[]);
    assert_ne!(log.topic("t").unwrap().unwrap().id, id);
    assert_eq!(count(&log, "t", 0), 0);
    let offsets = log.group("g").committed(&[TopicPartition::new("t", 0)]).unwrap();
    assert_eq!(offsets, [Committed::default()]);
}

#[test]
fn deleted_records_are_out_of_range() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    (0..4).for_each(|_| commit_many(&log, "t", "k", Some("v"), 3));
    let place = TopicPartition::new("t", 0);
    log.delete_records(&place, 7).unwrap();
    assert_eq!(log.ends(&place).unwrap(), Ends { start: 7, stable: 12, end: 12 });
    assert_eq!(read(&log, "t", 0, 7).offsets, [7, 8, 9, 10, 11]);
    let mut early = log.reader(&place, 6).unwrap();
    assert_eq!(early.fetch(&mut Batch::default(), ALL, NO_WAIT).unwrap_err().code, "offset-out-of-range");
    drop(early);
    drop(log);
    assert_eq!(open(dir.path()).ends(&place).unwrap().start, 7);
}

#[test]
fn a_compacted_topic_does_not_grow_for_ever_and_keeps_the_last_of_each_key() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Hand(AtomicI64::new(1_000)));
    let log = LocalLog::open(dir.path(), clock.clone()).unwrap();
    create(&log, "t", 1, &[("cleanup.policy", "compact"), ("delete.retention.ms", "500")]);
    let mut expected = BTreeMap::new();
    let (mut offset, mut most) = (0i64, 0);
    for round in 0..400 {
        let items: Vec<_> = (0..200).map(|i| (format!("k{}", (round * 7 + i * 3) % 501), round * 200 + i)).collect();
        let values: Vec<_> = items.iter().map(|(_, n)| (n % 5 != 0).then(|| n.to_string())).collect();
        let records = items.iter().zip(&values).map(|((k, _), v)| (k.as_bytes(), v.as_deref().map(str::as_bytes)));
        commit(&log, "t", &records.collect::<Vec<_>>());
        for ((key, _), value) in items.into_iter().zip(values) {
            expected.insert(key, (offset, value));
            offset += 1;
        }
        most = most.max(log.record_count("t", 0));
    }
    assert!(most < 2 * 501 + 4096 + 4 * 4096, "{most}");
    check_compacted(&log, &expected, offset, true);
    // The first cleaning that sees a tombstone gives it its time, the next one after that removes it.
    for now in [10_000, 20_000] {
        clock.0.store(now, Ordering::Relaxed);
        (0..10).for_each(|_| commit_many(&log, "t", "last", Some("v"), 4000));
    }
    let live = read(&log, "t", 0, 0).values.iter().filter(|value| value.is_none()).count();
    assert_eq!(live, 0, "tombstones go once they have been there long enough");
    check_compacted(&log, &expected, offset, false);
    let stored = log.record_count("t", 0);
    assert_eq!(count(&log, "t", 0) as i64, stored);
}

/// The last record of each key is there under its own offset, and offsets only rise.
fn check_compacted(log: &LocalLog, expected: &BTreeMap<String, (i64, Option<String>)>, until: i64, tombstones: bool) {
    let batch = read(log, "t", 0, 0);
    assert!(batch.offsets.is_sorted_by(|a, b| a < b));
    let mut last = BTreeMap::new();
    for (offset, record) in batch.iter().filter(|(offset, _)| *offset < until) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        last.insert(text(record.key.unwrap()), (offset, record.value.map(text)));
    }
    let wanted = expected.iter().filter(|(_, (_, value))| tombstones || value.is_some());
    let wanted: BTreeMap<_, _> = wanted.map(|(key, at)| (key.clone(), at.clone())).collect();
    assert_eq!(last, wanted);
}

#[test]
fn a_reader_passes_a_tail_that_compaction_has_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let log = LocalLog::open(dir.path(), Arc::new(Hand(AtomicI64::new(1_000)))).unwrap();
    create(&log, "t", 1, &[("cleanup.policy", "compact"), ("delete.retention.ms", "0")]);
    create(&log, "other", 1, &[]);
    commit_many(&log, "t", "k", None, 5000);
    let work = |n: usize| (0..n).for_each(|_| commit(&log, "other", &[(b"k", None)]));
    work(10);
    assert_eq!(log.record_count("t", 0), 1, "the last tombstone stays at first");
    commit_many(&log, "t", "k", None, 5000);
    work(10);
    let mut source = log.reader(&TopicPartition::new("t", 0), 0).unwrap();
    let mut batch = Batch::default();
    while !source.at_end() {
        source.fetch(&mut batch, ALL, NO_WAIT).unwrap();
    }
    assert_eq!((batch.offsets.clone(), source.position()), (vec![9_999], 10_000));
    let mut source = log.reader(&TopicPartition::new("t", 0), 3).unwrap();
    assert_eq!(source.fetch(&mut Batch::default(), ALL, NO_WAIT).unwrap(), 1);
}

#[test]
fn handles_of_one_process_share_and_another_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    create(&log, "t", 1, &[]);
    assert!(open(dir.path()).topic("t").unwrap().is_some());
    let output = child("opens_and_reports", dir.path());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("log-in-use") && said.contains(&format!("process {}", std::process::id())), "{said}");
}

#[test]
fn committed_records_survive_a_kill_and_others_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let output = child("commits_and_dies", dir.path());
    assert!(!output.status.success(), "the child is to die");
    let log = open(dir.path());
    let batch = read(&log, "t", 0, 0);
    assert_eq!(batch.offsets, (0..30).collect::<Vec<_>>());
    let offsets = log.group("g").committed(&[TopicPartition::new("t", 0)]).unwrap();
    assert_eq!(offsets[0].offset, Some(29));
}

fn child(test: &str, dir: &Path) -> std::process::Output {
    let name = format!("local::tests::{test}");
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--ignored", "--nocapture"]).env("PELTON_TEST_DIR", dir).output().unwrap()
}

#[test]
#[ignore = "the child of another test"]
fn opens_and_reports() {
    let Ok(dir) = std::env::var("PELTON_TEST_DIR") else { return };
    let fault = LocalLog::open(Path::new(&dir), Arc::new(SystemClock::default())).err();
    println!("{fault:?}");
}

#[test]
#[ignore = "the child of another test"]
fn commits_and_dies() {
    let Ok(dir) = std::env::var("PELTON_TEST_DIR") else { return };
    let log = open(Path::new(&dir));
    create(&log, "t", 1, &[]);
    let (mut member, _listener) = join(&log, "g", &["t"]);
    member.poll(NO_WAIT).unwrap();
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic("t").unwrap();
    for n in 0..30 {
        producer.begin().unwrap();
        producer.send(to, Some(0), record(None, Some(b"v")), ORIGIN).unwrap();
        producer.send_offsets(&*member.group(), &[offset("t", 0, n, "")]).unwrap();
        producer.commit().unwrap();
    }
    producer.begin().unwrap();
    producer.send(to, Some(0), record(None, Some(b"uncommitted")), ORIGIN).unwrap();
    producer.flush().unwrap();
    std::process::abort();
}
