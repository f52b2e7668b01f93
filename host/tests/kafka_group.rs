//! Groups on a real broker: who gets what, the barrier before a partition goes, offsets as others see them.

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
use pelton::model::log::{Delivery, Group, GroupProtocol, Log, OffsetCommit, Producer};
use pelton::model::{Batch, TopicPartition, Verdict};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const BOTH: [GroupProtocol; 2] = [GroupProtocol::Classic, GroupProtocol::Consumer];

#[test]
fn a_source_reads_nothing_before_its_first_seek_and_then_from_there() {
    let log = kafka();
    for protocol in BOTH {
        let topic = filled(&log, 1);
        let member = Membership::join(&log, spec(&unique("group"), &[&topic], protocol, &unique("m")));
        member.wait_for(1);
        let mut sources = member.held.sources.lock().unwrap();
        let source = sources.values_mut().next().unwrap();
        let mut batch = Batch::default();
        for _ in 0..5 {
            assert_eq!(source.fetch(&mut batch, ALL, Duration::from_millis(50)).unwrap(), 0);
        }
        for from in [60, 10, 0] {
            seek(&mut **source, from);
            let read = drain(&mut **source);
            assert_eq!(read.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), (from..100).collect::<Vec<_>>());
            assert_eq!(source.position(), 101);
        }
        drop(sources);
        assert!(member.leave().is_none());
    }
}

#[test]
fn a_partition_leaves_only_after_its_owner_has_let_go() {
    let log = kafka();
    for protocol in BOTH {
        let topic = filled(&log, 4);
        let group = unique("group");
        let first = Membership::join(&log, spec(&group, &[&topic], protocol, &unique("a")));
        first.wait_for(4);
        *first.held.closed.lock().unwrap() = true;
        let second = Membership::join(&log, spec(&group, &[&topic], protocol, &unique("b")));
        until("the first is asked for partitions", || first.held.revoking.load(Ordering::SeqCst).then_some(()));
        // It holds them for two heartbeats of the new member, which must get none of them.
        for _ in 0..20 {
            second.group.committed(&[TopicPartition::new(&*topic, 0)]).unwrap();
            assert!(second.held.partitions().is_empty(), "given away while held");
        }
        first.held.open();
        until("both have a half", || {
            (first.held.partitions().len() == 2 && second.held.partitions().len() == 2).then_some(())
        });
        let mut all = [first.held.partitions(), second.held.partitions()].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
        assert!(first.held.told.lock().unwrap().iter().all(|(what, _)| *what != "lost"));
        assert!(second.leave().is_none() && first.leave().is_none());
    }
}

#[test]
fn kept_partitions_go_on_reading_through_a_rebalance_without_gap_or_repeat() {
    let log = kafka();
    for protocol in BOTH {
        let topic = create(&log, "kept", 4, &[]);
        let group = unique("group");
        let first = Membership::join(&log, spec(&group, &[&topic], protocol, &unique("a")));
        first.wait_for(4);
        let mut producer = producer(&log, &unique("id"));
        let mut seen = vec![Vec::new(); 4];
        first.held.sources.lock().unwrap().values_mut().for_each(|source| seek(&mut **source, 0));
        let mut second = None;
        for round in 0..150 {
            for partition in 0..4 {
                write(&mut *producer, &topic, partition, &[rec("k", &round.to_string())]);
            }
            read_some(&first, &mut seen);
            if round == 20 {
                second = Some(Membership::join(&log, spec(&group, &[&topic], protocol, &unique("b"))));
            }
            if round > 20 && round < 100 && first.held.partitions().len() == 4 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        until("a partition moves", || (first.held.partitions().len() == 2).then_some(()));
        let kept = first.held.numbers(&topic);
        until("all records of the kept partitions are read", || {
            read_some(&first, &mut seen);
            kept.iter().all(|&p| seen[p as usize].len() >= 150).then_some(())
        });
        for partition in kept {
            let wanted: Vec<String> = (0..150).map(|round| round.to_string()).collect();
            assert_eq!(seen[partition as usize], wanted);
        }
        assert!(second.unwrap().leave().is_none() && first.leave().is_none());
    }
}

#[test]
fn two_topics_keep_equal_partitions_together() {
    let log = kafka();
    for protocol in BOTH {
        let topics = [create(&log, "left", 4, &[]), create(&log, "right", 4, &[])];
        let names = [&*topics[0], &*topics[1]];
        let group = unique("group");
        let members = ["a", "b"].map(|m| Membership::join(&log, spec(&group, &names, protocol, &unique(m))));
        until("both have a half", || members.iter().all(|m| m.held.partitions().len() == 4).then_some(()));
        for member in &members {
            assert_eq!(member.held.numbers(names[0]), member.held.numbers(names[1]));
        }
        members.into_iter().for_each(|member| assert!(member.leave().is_none()));
    }
}

#[test]
fn a_static_member_that_comes_back_has_its_partitions_at_once_and_others_notice_nothing() {
    let log = kafka();
    let topic = create(&log, "static", 4, &[]);
    let (group, one, two) = (unique("group"), unique("one"), unique("two"));
    let join = |instance: &str| Membership::join(&log, spec(&group, &[&topic], GroupProtocol::Classic, instance));
    let (first, second) = (join(&one), join(&two));
    until("both have a half", || [&first, &second].iter().all(|m| m.held.partitions().len() == 2).then_some(()));
    let (before, told) = (first.held.partitions(), second.held.told.lock().unwrap().len());
    assert!(first.leave().is_none());
    let start = Instant::now();
    let again = join(&one);
    again.wait_for(2);
    println!("a static member is back after {:?}", start.elapsed());
    assert_eq!(again.held.partitions(), before);
    assert_eq!(second.held.told.lock().unwrap().len(), told);
    // The same identity a second time ends the first, with the reason.
    let thief = join(&one);
    let fault = again.ended().unwrap();
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "identity-in-use"), "{fault}");
    assert!(thief.leave().is_none() && second.leave().is_none());
}

#[test]
fn offsets_of_an_open_transaction_are_transient_and_then_told() {
    let log = kafka();
    for protocol in BOTH {
        let topic = filled(&log, 1);
        let member = Membership::join(&log, spec(&unique("group"), &[&topic], protocol, &unique("m")));
        member.wait_for(1);
        let partition = TopicPartition::new(&*topic, 0);
        assert_eq!(committed(&member, &partition).unwrap(), None);
        let mut foreign = producer(&log, &unique("foreign"));
        foreign.begin().unwrap();
        offsets(&mut *foreign, &*member.group, &partition, 42);
        let start = Instant::now();
        let fault = committed(&member, &partition).unwrap_err();
        assert_eq!((fault.verdict, fault.code), (Verdict::Transient, "offsets-unstable"), "{fault}");
        assert!(start.elapsed() < Duration::from_secs(10));
        foreign.commit().unwrap();
        let told = until("the offset is told", || committed(&member, &partition).ok());
        assert_eq!(told, Some(42));
        foreign.begin().unwrap();
        offsets(&mut *foreign, &*member.group, &partition, 77);
        foreign.abort().unwrap();
        assert_eq!(until("the offset is told", || committed(&member, &partition).ok()), Some(42));
        assert!(member.leave().is_none());
    }
}

#[test]
fn at_least_once_commits_offsets_after_the_outputs_and_forgets_them_at_an_abort() {
    let log = kafka();
    let (topic, output) = (filled(&log, 1), create(&log, "plain", 1, &[]));
    let member = Membership::join(&log, spec(&unique("group"), &[&topic], GroupProtocol::Classic, &unique("m")));
    member.wait_for(1);
    let partition = TopicPartition::new(&*topic, 0);
    let mut producer = log.producer(&unique("id"), Delivery::AtLeastOnce).unwrap();
    producer.begin().unwrap();
    send(&mut *producer, &output, 0, &[rec("k", "1")]);
    offsets(&mut *producer, &*member.group, &partition, 5);
    producer.abort().unwrap();
    assert_eq!(committed(&member, &partition).unwrap(), None);
    producer.begin().unwrap();
    send(&mut *producer, &output, 0, &[rec("k", "2")]);
    assert_eq!(producer.flush().unwrap(), []);
    offsets(&mut *producer, &*member.group, &partition, 6);
    producer.commit().unwrap();
    assert_eq!(committed(&member, &partition).unwrap(), Some(6));
    assert_eq!(values(&read(&log, &output, 0, 0)), ["1", "2"]);
    assert!(member.leave().is_none());
}

#[test]
fn who_is_no_member_commits_no_offsets() {
    let log = kafka();
    let topic = filled(&log, 1);
    let partition = TopicPartition::new(&*topic, 0);
    let member = Membership::join(&log, spec(&unique("group"), &[&topic], GroupProtocol::Consumer, &unique("m")));
    member.wait_for(1);
    let group = member.group.clone();
    assert!(member.leave().is_none());
    let mut producer = producer(&log, &unique("id"));
    producer.begin().unwrap();
    let commit = OffsetCommit { partition, topic_id: "".into(), offset: 1, metadata: String::new() };
    let fault = producer.send_offsets(&*group, &[commit]).unwrap_err();
    assert_eq!((fault.verdict, fault.code), (Verdict::Transient, "not-a-member"), "{fault}");
    producer.abort().unwrap();
}

#[test]
fn leaving_with_unread_queues_ends_in_bounded_time() {
    let log = kafka();
    for protocol in BOTH {
        let topic = filled(&log, 4);
        let member = Membership::join(&log, spec(&unique("group"), &[&topic], protocol, &unique("m")));
        member.wait_for(4);
        let mut batch = Batch::default();
        for source in member.held.sources.lock().unwrap().values_mut() {
            seek(&mut **source, 0);
            let one = pelton::model::log::FetchLimit { records: 1, bytes: 1 << 20 };
            until("one record is read", || {
                (source.fetch(&mut batch, one, Duration::from_millis(50)).unwrap() == 1).then_some(())
            });
        }
        // One source outlives its member, as a stuck worker's would.
        let held = member.held.clone();
        let survivor = held.sources.lock().unwrap().pop_first();
        let start = Instant::now();
        assert!(member.leave().is_none());
        assert!(start.elapsed() < Duration::from_secs(10), "leaving took {:?}", start.elapsed());
        let (_, mut survivor) = survivor.unwrap();
        assert_eq!(survivor.fetch(&mut batch, ALL, Duration::ZERO).unwrap_err().code, "partition-gone");
        assert_eq!(survivor.seek(0).unwrap_err().code, "partition-gone");
    }
}

/// A topic with 100 records in partition 0, and a marker.
fn filled(log: &Kafka, partitions: i32) -> String {
    let topic = create(log, "filled", partitions, &[]);
    let mut producer = producer(log, &unique("id"));
    let records: Vec<Rec> = (0..100).map(|i| rec("k", &i.to_string())).collect();
    (0..partitions).for_each(|partition| write(&mut *producer, &topic, partition, &records));
    topic
}

fn offsets(producer: &mut dyn Producer, group: &dyn Group, partition: &TopicPartition, offset: i64) {
    let commit = OffsetCommit { partition: partition.clone(), topic_id: "".into(), offset, metadata: String::new() };
    producer.send_offsets(group, &[commit]).unwrap();
}

fn committed(member: &Membership, partition: &TopicPartition) -> Result<Option<i64>, pelton::model::Fault> {
    Ok(member.group.committed(std::slice::from_ref(partition))?[0].offset)
}

fn read_some(member: &Membership, seen: &mut [Vec<String>]) {
    for (partition, source) in member.held.sources.lock().unwrap().iter_mut() {
        let mut batch = Batch::default();
        if source.fetch(&mut batch, ALL, Duration::from_millis(1)).is_ok() {
            seen[partition.partition as usize].extend(values(&records(&batch)));
        }
    }
}
