//! The log on a real broker: records, transactions, refusals, positions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and measures with the machine's clock"
)]

mod kafka_support;

use kafka_support::*;
use pelton::kafka::Kafka;
use pelton::model::log::{Delivery, Ends, FetchLimit, GroupProtocol, Log, OffsetCommit, TopicSpec};
use pelton::model::{Batch, Fault, SystemClock, TopicPartition, Verdict};
use pelton::runtime::{Stretch, walk};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_topic_that_was_made_can_be_used_at_once() {
    let log = kafka();
    for _ in 0..4 {
        let name = unique("new");
        // our own client remembers for a while that there is no such topic
        assert_eq!(log.topic(&name).unwrap(), None);
        let spec = TopicSpec { name: name.clone(), partitions: 8, replication: None, properties: Vec::new() };
        log.create_topic(&spec).unwrap();
        assert_eq!(log.topic(&name).unwrap().map(|info| info.partitions), Some(8));
        let nothing = Ends { start: 0, stable: 0, end: 0 };
        (0..8).for_each(|p| assert_eq!(log.ends(&TopicPartition::new(&*name, p)).unwrap(), nothing));
    }
}

#[test]
fn a_commit_is_outputs_changelog_and_offsets_at_once_and_the_next_producer_fences() {
    let log = kafka();
    let (input, output) = (create(&log, "in", 1, &[]), create(&log, "out", 4, &[]));
    let changelog = create(&log, "changelog", 1, &[("cleanup.policy", "compact")]);
    let member = Membership::join(&log, spec(&unique("group"), &[&input], GroupProtocol::Classic, "one"));
    member.wait_for(1);
    let (id, input) = (unique("id"), TopicPartition::new(&*input, 0));
    let group = Arc::clone(&member.group);

    let mut first = producer(&log, &id);
    first.begin().unwrap();
    let to = first.topic(&output).unwrap();
    for i in 0..100 {
        rec(&format!("k{i}"), "v").borrow(|record| first.send(to, None, record, origin(i))).unwrap();
    }
    send(&mut *first, &changelog, 0, &[rec("k", "state")]);
    assert_eq!(first.flush().unwrap(), []);
    let changelog_ref = first.topic(&changelog).unwrap();
    assert_eq!(first.acknowledged(changelog_ref, 0), Some(1));
    assert_eq!((0..4).filter_map(|p| first.acknowledged(to, p)).count(), 0);
    let offset =
        OffsetCommit { partition: input.clone(), topic_id: "".into(), offset: 100, metadata: "attempts".into() };
    first.send_offsets(&*group, &[offset]).unwrap();
    assert_eq!(read(&log, &output, 0, 0), []);
    first.commit().unwrap();

    assert_eq!((0..4).map(|p| read(&log, &output, p, 0).len()).sum::<usize>(), 100);
    assert_eq!(values(&read(&log, &changelog, 0, 0)), ["state"]);
    let committed = group.committed(std::slice::from_ref(&input)).unwrap();
    assert_eq!((committed[0].offset, &*committed[0].metadata), (Some(100), "attempts"));

    first.begin().unwrap();
    send(&mut *first, &changelog, 0, &[rec("k", "of a zombie")]);
    first.flush().unwrap();
    let mut second = producer(&log, &id);
    write(&mut *second, &changelog, 0, &[rec("k", "next")]);
    let fault = first.commit().unwrap_err();
    assert_eq!(fault.verdict, Verdict::Fenced, "{fault}");
    assert_eq!(values(&read(&log, &changelog, 0, 0)), ["state", "next"]);
    assert!(member.leave().is_none());
}

#[test]
fn records_of_every_shape_come_back_unchanged() {
    let log = kafka();
    let topic = create(&log, "shapes", 1, &[("max.message.bytes", "2000000")]);
    let plain = rec("k", "v");
    let header = |name: &str, value: Option<&str>| (name.as_bytes().to_vec(), value.map(|v| v.as_bytes().to_vec()));
    let mut shapes = vec![
        Rec { key: None, ..plain.clone() },
        Rec { key: Some(vec![]), ..plain.clone() },
        Rec { value: None, ..plain.clone() },
        Rec { value: Some(vec![]), ..plain.clone() },
        Rec { key: None, value: None, ..plain.clone() },
        Rec { key: Some(vec![0xff, 0, 0xfe]), value: Some(vec![0, 1, 0xc3, 0x28]), ..plain.clone() },
        Rec { value: Some((0..900 << 10).map(|i| (i % 251) as u8).collect()), ..plain.clone() },
        Rec { timestamp: -1, ..plain.clone() },
        Rec { timestamp: 1, ..plain.clone() },
        Rec { timestamp: 0, ..plain.clone() },
        Rec {
            headers: vec![header("a", Some("1")), header("b", None), header("a", Some("")), header("", Some("x"))],
            ..plain.clone()
        },
        plain,
    ];
    write(&mut *producer(&log, &unique("id")), &topic, 0, &shapes);
    shapes[9].timestamp = 1;
    let back: Vec<Rec> = read(&log, &topic, 0, 0).into_iter().map(|(_, rec)| rec).collect();
    assert_eq!(back.len(), shapes.len());
    for (back, sent) in back.iter().zip(&shapes) {
        assert_eq!((&back.headers, back.timestamp), (&sent.headers, sent.timestamp));
        assert!(back == sent);
    }
}

#[test]
fn an_abort_leaves_nothing_and_readers_pass_its_markers_to_the_end() {
    let log = kafka();
    let topic = create(&log, "aborts", 1, &[]);
    let partition = TopicPartition::new(&*topic, 0);
    let mut producer = producer(&log, &unique("id"));
    write(&mut *producer, &topic, 0, &[rec("a", "1"), rec("b", "2")]);
    for _ in 0..2 {
        producer.begin().unwrap();
        send(&mut *producer, &topic, 0, &[rec("a", "never"), rec("b", "never")]);
        producer.flush().unwrap();
        producer.abort().unwrap();
    }
    // An abort that finds records still on their way.
    producer.begin().unwrap();
    send(&mut *producer, &topic, 0, &vec![rec("a", "never"); 500]);
    producer.abort().unwrap();

    let ends = until("the markers are written", || {
        let ends = log.ends(&partition).unwrap();
        (ends.stable == ends.end && ends.end >= 9).then_some(ends)
    });
    let mut reader = log.reader(&partition, 0).unwrap();
    assert_eq!(values(&drain(&mut *reader)), ["1", "2"]);
    assert_eq!(reader.position(), ends.end);
    write(&mut *producer, &topic, 0, &[rec("c", "3")]);
    let mut batch = Batch::default();
    until("the record after the end is read", || {
        (reader.fetch(&mut batch, ALL, Duration::from_millis(100)).unwrap() > 0).then_some(())
    });
    assert_eq!(values(&records(&batch)), ["3"]);
    drain(&mut *reader);
    assert_eq!(reader.position(), log.ends(&partition).unwrap().end);
}

#[test]
fn a_reader_waits_for_an_open_transaction_and_ends_tell_both_ends() {
    let log = kafka();
    let topic = create(&log, "open", 1, &[]);
    let partition = TopicPartition::new(&*topic, 0);
    let mut producer = producer(&log, &unique("id"));
    producer.begin().unwrap();
    send(&mut *producer, &topic, 0, &[rec("a", "1"), rec("b", "2")]);
    producer.flush().unwrap();
    let ends = log.ends(&partition).unwrap();
    assert_eq!((ends.start, ends.stable, ends.end), (0, 0, 2));
    let mut reader = log.reader(&partition, 0).unwrap();
    assert_eq!(drain(&mut *reader), []);
    assert_eq!(reader.position(), 0);
    producer.commit().unwrap();
    let mut batch = Batch::default();
    until("committed records are read", || {
        reader.fetch(&mut batch, ALL, Duration::from_millis(100)).unwrap();
        (batch.len() == 2).then_some(())
    });
}

#[test]
fn refusals_carry_their_origin_and_spare_their_neighbours() {
    let log = kafka();
    let topic = create(&log, "refusals", 1, &[("max.message.bytes", "20000")]);
    let hour = 3_600_000;
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let bad = [
        (Rec { value: Some(vec![7; 60_000]), ..rec("k", "") }, "output-too-large"),
        (Rec { timestamp: now + 2 * hour, ..rec("k", "v") }, "output-timestamp-refused"),
    ];
    let mut producer = producer(&log, &unique("id"));
    let to = producer.topic(&topic).unwrap();
    for (bad, code) in bad {
        let small = Rec { timestamp: now, value: Some(vec![1; 500]), ..rec("k", "") };
        let refusals = until("the guilty one is found", || {
            producer.begin().unwrap();
            for i in 0..300 {
                let record = if i == 150 { &bad } else { &small };
                match record.borrow(|record| producer.send(to, Some(0), record, origin(i))) {
                    Ok(()) => {}
                    Err(fault) if fault.verdict == Verdict::Transient => break,
                    Err(fault) => panic!("{fault}"),
                }
            }
            let told = producer.flush();
            assert!(producer.commit().is_err());
            producer.abort().unwrap();
            // A batch refused for one of its records blames nobody: the same again finds out.
            told.map_err(|fault| assert_eq!(fault.verdict, Verdict::Transient, "{fault}")).ok()
        });
        let told: Vec<_> = refusals.iter().map(|r| (r.origin, r.code)).collect();
        assert_eq!(told, [(origin(150), code)]);
    }
    write(&mut *producer, &topic, 0, &[rec("k", "after")]);
    assert_eq!(values(&read(&log, &topic, 0, 0)), ["after"]);
}

#[test]
fn batches_keep_their_limits_and_nothing_is_skipped_between_them() {
    let log = kafka();
    let topic = create(&log, "limits", 1, &[]);
    let sent: Vec<Rec> =
        (0..50).map(|i| rec("k", &format!("{i}{}", "x".repeat(if i == 20 { 5_000 } else { 90 })))).collect();
    write(&mut *producer(&log, &unique("id")), &topic, 0, &sent);
    let mut reader = log.reader(&TopicPartition::new(&*topic, 0), 0).unwrap();
    let (mut seen, limit) = (Vec::new(), FetchLimit { records: 7, bytes: 1_000 });
    while !reader.at_end() {
        let mut batch = Batch::default();
        let count = reader.fetch(&mut batch, limit, Duration::from_millis(100)).unwrap();
        assert_eq!(count, batch.len());
        assert!(count <= 7 && (batch.bytes() <= 1_000 || count == 1));
        assert_eq!(batch.offsets, (seen.len() as i64..).take(count).collect::<Vec<_>>());
        assert_eq!(reader.position() as usize, seen.len() + count + usize::from(reader.at_end()));
        seen.extend(records(&batch));
    }
    assert_eq!(seen.into_iter().map(|(_, rec)| rec).collect::<Vec<_>>(), sent);
}

#[test]
fn a_seek_back_reads_the_same_again_and_nothing_stale() {
    let log = kafka();
    let topic = create(&log, "seeks", 1, &[]);
    let sent: Vec<Rec> = (0..2_000).map(|i| rec("k", &i.to_string())).collect();
    write(&mut *producer(&log, &unique("id")), &topic, 0, &sent);
    let mut reader = log.reader(&TopicPartition::new(&*topic, 0), 0).unwrap();
    for from in [0, 1_500, 3, 700, 1_999, 0] {
        seek(&mut *reader, from);
        let mut batch = Batch::default();
        let limit = FetchLimit { records: 40, bytes: 1 << 20 };
        until("records come", || {
            (reader.fetch(&mut batch, limit, Duration::from_millis(50)).unwrap() > 0).then_some(())
        });
        assert_eq!(batch.offsets, (from..).take(batch.len()).collect::<Vec<_>>());
    }
    seek(&mut *reader, 0);
    assert_eq!(drain(&mut *reader).len(), 2_000);
}

#[test]
fn a_deleted_offset_is_fatal_and_named() {
    let log = kafka();
    let topic = create(&log, "deleted", 1, &[]);
    let mut reader = log.reader(&TopicPartition::new(&*topic, 0), 1_000).unwrap();
    let fault =
        until("the fault is told", || reader.fetch(&mut Batch::default(), ALL, Duration::from_millis(100)).err());
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "offset-out-of-range"));
    assert!(fault.message.contains(&format!("{topic}/0 at 1000")), "{fault}");
}

#[test]
fn records_are_deleted_from_the_front_and_kept_where_the_policy_says_so() {
    let log = kafka();
    let topic = create(&log, "cut", 2, &[]);
    let mut producer = producer(&log, &unique("id"));
    write(&mut *producer, &topic, 1, &[rec("k", "a"), rec("k", "b"), rec("k", "c")]);
    let (untouched, cut) = (TopicPartition::new(&*topic, 0), TopicPartition::new(&*topic, 1));
    log.delete_records(&cut, 2).unwrap();
    // three records and the marker of their commit
    assert_eq!(log.ends(&cut).unwrap(), Ends { start: 2, stable: 4, end: 4 });
    assert_eq!(values(&read(&log, &topic, 1, 2)), ["c"]);
    log.delete_records(&cut, 4).unwrap();
    assert_eq!(log.ends(&cut).unwrap().start, 4);
    assert_eq!(log.ends(&untouched).unwrap().start, 0);
    let compacted = create(&log, "kept", 1, &[("cleanup.policy", "compact")]);
    write(&mut *producer, &compacted, 0, &[rec("k", "a")]);
    let fault = log.delete_records(&TopicPartition::new(&*compacted, 0), 1).unwrap_err();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "delete-refused"), "{fault}");
}

#[test]
fn a_settled_walk_waits_for_transactions_that_are_open() {
    let log = kafka();
    let topic = create(&log, "settled", 1, &[]);
    let (mut first, mut second) = (producer(&log, &unique("id")), producer(&log, &unique("id")));
    first.begin().unwrap();
    send(&mut *first, &topic, 0, &[rec("k", "open")]);
    first.flush().unwrap();
    write(&mut *second, &topic, 0, &[rec("k", "behind")]);
    let partition = TopicPartition::new(&*topic, 0);
    let ends = log.ends(&partition).unwrap();
    assert_eq!(ends.stable, 0, "what is behind an open transaction is not to be seen yet");
    let seen = |to, settled| {
        let stretch = Stretch { partition: partition.clone(), from: 0, to, settled };
        let mut seen = vec![];
        walk::<Fault>(&log, &stretch, &mut |batch, _| {
            let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap().to_vec()).unwrap();
            seen.extend(batch.iter().map(|(_, record)| text(record.value)));
            Ok(true)
        })
        .unwrap();
        seen
    };
    assert_eq!(seen(ends.end, false), [""; 0]);
    std::thread::scope(|scope| {
        let walking = scope.spawn(|| seen(ends.end, true));
        first.commit().unwrap();
        assert_eq!(walking.join().unwrap(), ["open", "behind"]);
    });
}

#[test]
fn a_transaction_that_outlives_its_time_fences_its_producer_and_a_new_one_goes_on() {
    let log = connect(&pelton::config::Kafka { transaction_timeout: Duration::from_secs(1), ..settings() });
    let topic = create(&log, "slow", 1, &[]);
    let (id, partition) = (unique("id"), TopicPartition::new(&*topic, 0));
    let mut slow = producer(&log, &id);
    slow.begin().unwrap();
    send(&mut *slow, &topic, 0, &[rec("k", "late")]);
    slow.flush().unwrap();
    until("the coordinator aborts", || (log.ends(&partition).unwrap().stable == 2).then_some(()));
    let fault = slow.commit().unwrap_err();
    assert_eq!(fault.verdict, Verdict::Fenced, "{fault}");
    let mut next = producer(&log, &id);
    write(&mut *next, &topic, 0, &[rec("k", "again")]);
    assert_eq!(values(&read(&log, &topic, 0, 0)), ["again"]);
}

#[test]
fn topics_are_described_and_created_once() {
    let log = kafka();
    assert_eq!(log.topic(&unique("nothing")).unwrap(), None);
    let properties =
        [("cleanup.policy", "compact,delete"), ("max.message.bytes", "12345"), ("delete.retention.ms", "77")];
    let name = create(&log, "described", 3, &properties);
    let info = log.topic(&name).unwrap().unwrap();
    let limits = &info.limits;
    assert_eq!((info.partitions, limits.max_message_bytes, limits.delete_retention_ms), (3, 12_345, 77));
    assert!(limits.compact && limits.delete);
    assert_eq!(limits.timestamp_after_ms, 3_600_000);
    assert_eq!(limits.timestamp_before_ms, i64::MAX);
    log.create_topic(&TopicSpec { name: name.clone(), partitions: 9, replication: None, properties: vec![] }).unwrap();
    assert_eq!(log.topic(&name).unwrap().unwrap(), info);
    assert_eq!(info.id.len(), 22, "{}", info.id);
    assert!(log.topics().unwrap().contains(&info));
    let missing = producer(&log, &unique("id")).topic(&unique("nothing")).unwrap_err();
    assert_eq!((missing.verdict, missing.code), (Verdict::Fatal, "topic-missing"));
    let bad = log.create_topic(&TopicSpec {
        name: unique("bad"),
        partitions: 1,
        replication: None,
        properties: vec![("no.such.setting".into(), "1".into())],
    });
    assert_eq!(bad.unwrap_err().code, "topic-refused");
}

#[test]
fn a_broker_that_is_away_is_told_soon_and_wrong_properties_at_once() {
    let away = pelton::config::Kafka { brokers: "127.0.0.1:1".into(), ..settings() };
    let fault = Kafka::connect(&away, Arc::new(SystemClock::default())).err().unwrap();
    assert_eq!((fault.verdict, fault.code), (Verdict::Transient, "broker-away"), "{fault}");
    let properties = [("linger.ms".to_owned(), "soon".to_owned())].into();
    let wrong = pelton::config::Kafka { properties, ..settings() };
    let log = Kafka::connect(&wrong, Arc::new(SystemClock::default()));
    let fault = log.and_then(|log| log.producer("id", Delivery::ExactlyOnce).map(drop)).unwrap_err();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "bad-property"));
    assert!(fault.message.contains("linger.ms"), "{fault}");
}

#[test]
fn a_source_wakes_its_owner() {
    let log = kafka();
    let topic = create(&log, "wakes", 1, &[]);
    let mut reader = log.reader(&TopicPartition::new(&*topic, 0), 0).unwrap();
    let woken = Arc::new(AtomicU32::new(0));
    reader.on_ready(Arc::new({
        let woken = Arc::clone(&woken);
        move || {
            woken.fetch_add(1, Ordering::SeqCst);
        }
    }));
    drain(&mut *reader);
    let before = woken.load(Ordering::SeqCst);
    write(&mut *producer(&log, &unique("id")), &topic, 0, &[rec("k", "v")]);
    until("the source wakes", || (woken.load(Ordering::SeqCst) > before).then_some(()));
}

#[test]
fn keys_land_where_kafkas_default_partitioner_puts_them() {
    let log = kafka();
    let topic = create(&log, "placed", 8, &[]);
    let mut producer = producer(&log, &unique("id"));
    producer.begin().unwrap();
    let to = producer.topic(&topic).unwrap();
    // From Kafka's own UtilsTest: murmur2 of these keys, made positive, modulo 8.
    let known = [("21", -973_932_308_i32), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536)];
    for (key, _) in known {
        rec(key, key).borrow(|record| producer.send(to, None, record, origin(0))).unwrap();
    }
    producer.flush().unwrap();
    producer.commit().unwrap();
    for (key, hash) in known {
        let found = read(&log, &topic, (hash & 0x7fff_ffff) % 8, 0);
        assert!(values(&found).iter().any(|value| value == key), "{key}");
    }
}

#[test]
fn the_price_of_a_transaction() {
    let log = kafka();
    let (input, output) = (create(&log, "in", 8, &[]), create(&log, "out", 8, &[]));
    let member = Membership::join(&log, spec(&unique("group"), &[&input], GroupProtocol::Classic, "one"));
    member.wait_for(8);
    let inputs: Vec<_> = (0..8).map(|p| TopicPartition::new(&*input, p)).collect();
    let group = Arc::clone(&member.group);
    let mut producer = producer(&log, &unique("id"));
    let to = producer.topic(&output).unwrap();
    let record = Rec { value: Some(vec![5; 100]), ..rec("twelve-bytes", "") };
    let mut took = Vec::new();
    for round in 1..=200_i64 {
        let start = Instant::now();
        producer.begin().unwrap();
        for i in 0..100 {
            record.borrow(|record| producer.send(to, Some(i % 8), record, origin(0))).unwrap();
        }
        assert_eq!(producer.flush().unwrap(), []);
        let flushed = start.elapsed();
        let offsets: Vec<_> = inputs
            .iter()
            .map(|p| OffsetCommit { partition: p.clone(), topic_id: "".into(), offset: round, metadata: String::new() })
            .collect();
        producer.send_offsets(&*group, &offsets).unwrap();
        let offsets = start.elapsed();
        producer.commit().unwrap();
        took.push((start.elapsed(), flushed, offsets));
    }
    took.sort();
    println!("a transaction of 100 records on 8 partitions: median {:?}, 95 % {:?}", took[100], took[190]);
    assert_eq!(group.committed(&inputs).unwrap()[7].offset, Some(200));
}

#[test]
fn the_ends_of_many_partitions_are_those_of_each() {
    let log = kafka();
    let (one, other) = (create(&log, "one", 40, &[]), create(&log, "other", 3, &[]));
    write(&mut *producer(&log, &unique("id")), &one, 7, &[rec("a", "1"), rec("b", "2")]);
    log.delete_records(&TopicPartition::new(&*one, 7), 1).unwrap();
    let mut open = producer(&log, &unique("id"));
    open.begin().unwrap();
    send(&mut *open, &other, 2, &[rec("a", "1")]);
    open.flush().unwrap();
    let of = |topic: &str, count| (0..count).map(|p| TopicPartition::new(topic, p)).collect::<Vec<_>>();
    let places = [of(&other, 3), of(&one, 40)].concat();
    let all = log.ends_of(&places).unwrap();
    assert_eq!(all, places.iter().map(|place| log.ends(place).unwrap()).collect::<Vec<_>>());
    assert_eq!(all[2], Ends { start: 0, stable: 0, end: 1 }, "readers of committed records do not see it yet");
    assert_eq!(all[10], Ends { start: 1, stable: 3, end: 3 });
    assert_eq!(log.ends_of(&[]).unwrap(), []);
    let missing = log.ends_of(&of(&unique("missing"), 1)).unwrap_err();
    assert!(
        ["topic-missing", "partition-missing", "broker-away", "kafka-error"].contains(&missing.code),
        "{missing:?}"
    );
}

#[test]
fn what_a_group_has_committed_is_asked_of_one_client_however_often() {
    let log = kafka();
    let input = create(&log, "in", 2, &[]);
    let group = unique("group");
    let places: Vec<TopicPartition> = (0..2).map(|p| TopicPartition::new(&*input, p)).collect();
    assert!(log.committed(&group, &places).unwrap().iter().all(|committed| committed.offset.is_none()));
    let member = Membership::join(&log, spec(&group, &[&input], GroupProtocol::Classic, "one"));
    member.wait_for(2);
    let mut producer = producer(&log, &unique("id"));
    for offset in 1..=20 {
        producer.begin().unwrap();
        let commit =
            OffsetCommit { partition: places[1].clone(), topic_id: "".into(), offset, metadata: String::new() };
        producer.send_offsets(&*member.group, &[commit]).unwrap();
        // an open transaction is not waited for
        let before = log.committed(&group, &places).unwrap();
        assert_eq!((before[0].offset, before[1].offset), (None, (offset > 1).then_some(offset - 1)));
        producer.commit().unwrap();
    }
    assert!(member.leave().is_none());
}
