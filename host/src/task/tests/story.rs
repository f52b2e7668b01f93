//! Random stories of a task whose records wait by key: failures of every kind, commits, aborts, lost answers, restarts on stores of
//! every age. Whatever happens, at each commit every record before the committed offset is done, dead or parked, once; and at the
//! end each key has had its records once and in order.

use super::recorder::Loss;
use super::rig::{INPUTS, Restart, Rig, actor, by_key, input};
use crate::model::log::TopicInfo;
use crate::task::{CommitError, ProcessorSpec, Step};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A record, by its input and offset.
type Id = (String, i64);

#[derive(Clone, Debug)]
enum Op {
    Feed(usize, Vec<(&'static str, &'static str)>),
    Steps(usize),
    Pass(u64),
    Commit,
    Abort,
    Lose(bool),
    Restart(Restart),
    Keep,
}

/// Keys and what their records do: work, retry for some calls or for good, are rejected, trap, make what the log refuses.
fn records() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let key = prop::sample::select(vec!["k", "k", "l", "m", ""]);
    let verb = prop::sample::select(vec!["a", "a", "a", "a", "R2", "R3", "R7", "R~", "No", "Trap", "Big"]);
    prop::collection::vec((key, verb), 1..6)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0usize..2, records()).prop_map(|(input, records)| Op::Feed(input, records)),
        6 => (1usize..12).prop_map(Op::Steps),
        4 => (1u64..400).prop_map(Op::Pass),
        4 => Just(Op::Commit),
        2 => Just(Op::Abort),
        1 => any::<bool>().prop_map(Op::Lose),
        2 => prop::sample::select(vec![Restart::Closed, Restart::Lost, Restart::Older]).prop_map(Op::Restart),
        1 => Just(Op::Keep),
    ]
}

struct Story {
    rig: Rig,
    /// How many records each input has, and the key of each.
    fed: [Vec<&'static str>; 2],
}

impl Story {
    fn new(records: usize, stale: bool) -> Story {
        let settings = |spec: &mut ProcessorSpec| {
            by_key(spec);
            spec.inputs.push(input("side", INPUTS[1]));
            spec.parking.records = records;
            spec.retry.max_attempts = 3;
        };
        let believed = |info: &mut TopicInfo| {
            if stale && info.name == "out" {
                info.limits.max_message_bytes = 1 << 20;
            }
        };
        Story { rig: Rig::made(&[], actor(), believed, settings), fed: [Vec::new(), Vec::new()] }
    }

    fn tell(&mut self, op: Op) {
        match op {
            Op::Feed(input, records) => self.feed(input, &records),
            Op::Steps(count) => (0..count).for_each(|_| {
                self.rig.step();
            }),
            Op::Pass(ms) => self.rig.clock.pass(Duration::from_millis(ms)),
            Op::Commit => self.commit(),
            Op::Abort => self.rig.abort(),
            Op::Lose(committed) => self.lose(committed),
            Op::Restart(how) => self.rig.restart(how),
            Op::Keep => self.rig.keep_stores(),
        }
    }

    /// Values name their records: what follows the verb is the input and the offset.
    fn feed(&mut self, input: usize, records: &[(&'static str, &'static str)]) {
        let named: Vec<(&str, String)> = records
            .iter()
            .enumerate()
            .map(|(at, (key, verb))| (*key, format!("{verb}#{}#{}#", INPUTS[input], self.fed[input].len() + at)))
            .collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.rig.feed(INPUTS[input], &named);
        self.fed[input].extend(records.iter().map(|(key, _)| *key));
    }

    fn commit(&mut self) {
        match self.rig.commit() {
            Ok(()) => self.check(),
            Err(CommitError::Refused(refusals)) => self.rig.refuse(refusals),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn lose(&mut self, committed: bool) {
        *self.rig.loss.lock().unwrap() = Some(Loss { committed });
        match self.rig.commit() {
            Err(CommitError::Unknown(_)) => {
                self.rig.resolve();
            }
            Err(CommitError::Refused(refusals)) => self.rig.refuse(refusals),
            other => panic!("{other:?}"),
        }
        *self.rig.loss.lock().unwrap() = None;
    }

    /// Every record before the committed offsets is in one place, and nothing else is anywhere.
    fn check(&mut self) {
        let mut places: BTreeMap<Id, usize> = BTreeMap::new();
        let parked = self.rig.parked_ids();
        let ended = self.ended("out").into_iter().chain(self.ended("dead")).map(|(id, _)| id);
        ended.chain(parked).for_each(|id| *places.entry(id).or_default() += 1);
        let expected: BTreeMap<Id, usize> = INPUTS
            .iter()
            .flat_map(|topic| {
                let committed = self.rig.committed_of(topic).offset.unwrap_or(0);
                (0..committed).map(|offset| (((*topic).to_owned(), offset), 1))
            })
            .collect();
        assert_eq!(places, expected);
    }

    /// Records in a topic, each with what follows its name: the count of its key.
    fn ended(&self, topic: &str) -> Vec<(Id, Option<u8>)> {
        let parse = |value: String| {
            let mut parts = value.split('#').skip(1);
            let id = (parts.next().unwrap().to_owned(), parts.next().unwrap().parse().unwrap());
            (id, parts.next().unwrap().bytes().next().map(|count| count - b'0'))
        };
        self.rig.values(topic).into_iter().map(parse).collect()
    }

    fn finish(&mut self) {
        for _ in 0..200 {
            self.rig.wait_out();
            self.commit();
            if self.rig.task().is_idle() {
                break;
            }
        }
        assert!(self.rig.task().is_idle(), "it never comes to an end");
        self.check();
        assert_eq!((self.rig.parked(), self.rig.parked_in_changelog()), (0, 0));
        for (topic, fed) in INPUTS.iter().zip(&self.fed) {
            assert_eq!(self.rig.committed_of(topic).offset.unwrap_or(0), fed.len() as i64);
        }
        self.in_order();
    }

    /// Of each key the counts are those of a task that was left alone, and records of one input are in its order.
    fn in_order(&mut self) {
        let mut counts: BTreeMap<&str, u8> = BTreeMap::new();
        let mut last: BTreeMap<(&str, String), i64> = BTreeMap::new();
        for ((topic, offset), count) in self.ended("out") {
            let input = INPUTS.iter().position(|input| **input == *topic).unwrap();
            let key = self.fed[input][offset as usize];
            *counts.entry(key).or_default() += 1;
            assert_eq!(count, Some(counts[key]), "key {key}: {topic} {offset}");
            assert!(last.insert((key, topic.clone()), offset).is_none_or(|before| before < offset), "key {key}");
        }
        let stored = self.rig.counts();
        assert_eq!(stored, counts.into_iter().map(|(key, count)| (key.to_owned(), count)).collect());
        let ids: BTreeSet<Id> = self.ended("dead").into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), self.rig.letters().len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_record_ends_once_and_each_key_in_order(
        bound in 1usize..6, stale: bool, ops in prop::collection::vec(op(), 5..50)
    ) {
        let mut story = Story::new(bound, stale);
        ops.into_iter().for_each(|op| story.tell(op));
        story.finish();
    }
}

#[test]
fn a_task_left_alone_comes_to_an_end() {
    let mut story = Story::new(3, false);
    story.feed(0, &[("k", "R2"), ("k", "a"), ("l", "No"), ("m", "Trap"), ("k", "R~"), ("", "a")]);
    story.feed(1, &[("k", "a"), ("m", "a")]);
    assert_ne!(story.rig.work(), Step::Idle);
    story.finish();
}
