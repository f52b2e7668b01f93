//! What is parked, in memory: a queue for each record key, and which key is due next. The records themselves are in the store.

use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A record key that has something parked.
pub(in crate::task) type Key = Arc<[u8]>;

/// The queues of a task's parked keys.
///
/// Keys come from records, so their hash is seeded: nobody outside can aim at one bucket.
#[derive(Debug, Default)]
pub(super) struct Index {
    queues: HashMap<Key, Queue, RandomState>,
    /// Heads by the moment they are due, each once.
    due: BTreeSet<(Duration, Key)>,
    records: usize,
    bytes: u64,
    /// Keys whose queue has become empty since the last commit.
    emptied: Vec<Key>,
}

#[derive(Debug, Default)]
struct Queue {
    slots: VecDeque<Slot>,
    /// As it stands in [`Index::due`].
    due: Option<Duration>,
}

/// A parked record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::task) struct Slot {
    pub(in crate::task) input: u32,
    pub(in crate::task) offset: i64,
    /// Bytes of key, value and headers.
    pub(in crate::task) bytes: u64,
    /// On the monotonic clock.
    pub(in crate::task) due: Duration,
}

impl Index {
    /// Whether no key waits. One whose queue was worked off waits until that is committed.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn waits(&self, key: &[u8]) -> bool {
        self.queues.contains_key(key)
    }

    /// Whether this record is parked already.
    pub(super) fn has(&self, key: &[u8], input: u32, offset: i64) -> bool {
        let Some(queue) = self.queues.get(key) else { return false };
        let own = queue.slots.iter().rev().filter(|slot| slot.input == input);
        own.take_while(|slot| slot.offset >= offset).any(|slot| slot.offset == offset)
    }

    pub(super) fn records(&self) -> usize {
        self.records
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the next head is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The head that has been due for longest.
    pub(super) fn head(&self, now: Duration) -> Option<(Key, Slot)> {
        let (due, key) = self.due.first()?;
        let slot = self.queues.get(key)?.slots.front()?;
        (*due <= now).then(|| (key.clone(), *slot))
    }

    /// Adds a record at its key's end, but before later ones of its own input: those were parked in an earlier life that had to read
    /// this one again.
    pub(super) fn push(&mut self, key: &[u8], slot: Slot) {
        let key = match self.queues.get_key_value(key) {
            Some((key, _)) => key.clone(),
            None => Key::from(key),
        };
        let queue = self.queues.entry(key.clone()).or_default();
        queue.insert(slot);
        self.records += 1;
        self.bytes += slot.bytes;
        self.place(&key);
    }

    /// The records of one key as the store has them, by input and offset; `tried` is the input of the one that has failed before, which
    /// was the head.
    pub(super) fn load(&mut self, key: &[u8], mut slots: Vec<Slot>, tried: Option<u32>) {
        slots.sort_by_key(|slot| tried.is_some_and(|tried| slot.input != tried));
        slots.into_iter().for_each(|slot| self.push(key, slot));
    }

    /// The head of a key is done; the next one follows at once, behind those that have been due before.
    pub(super) fn done(&mut self, key: &Key, now: Duration) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        if let Some(slot) = queue.slots.pop_front() {
            self.records -= 1;
            self.bytes -= slot.bytes;
        }
        match queue.slots.front_mut() {
            Some(next) => next.due = next.due.max(now),
            None => self.emptied.push(key.clone()),
        }
        self.place(key);
    }

    /// The head of a key is tried again at `due`.
    pub(super) fn again(&mut self, key: &Key, due: Duration) {
        if let Some(head) = self.queues.get_mut(key).and_then(|queue| queue.slots.front_mut()) {
            head.due = due;
        }
        self.place(key);
    }

    /// What was done is committed: keys without records wait no more.
    pub(super) fn settle(&mut self) {
        for key in self.emptied.drain(..) {
            if self.queues.get(&key).is_some_and(|queue| queue.slots.is_empty()) {
                self.queues.remove(&key);
            }
        }
    }

    /// Puts a key where its head belongs.
    fn place(&mut self, key: &Key) {
        let Some(queue) = self.queues.get_mut(key) else { return };
        let due = queue.slots.front().map(|slot| slot.due);
        let old = std::mem::replace(&mut queue.due, due);
        if old == due {
            return;
        }
        if let Some(old) = old {
            self.due.remove(&(old, key.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, key.clone()));
        }
    }
}

impl Queue {
    fn insert(&mut self, slot: Slot) {
        let later = |other: &Slot| other.input == slot.input && other.offset > slot.offset;
        let last = self.slots.iter().rfind(|other| other.input == slot.input);
        match last.filter(|last| later(last)).and_then(|_| self.slots.iter().position(later)) {
            Some(at) => self.slots.insert(at, slot),
            None => self.slots.push_back(slot),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn slot(input: u32, offset: i64, due: u64) -> Slot {
        Slot { input, offset, bytes: 10, due: at(due) }
    }

    /// Works off everything that is due, in order: key, input and offset.
    fn drain(index: &mut Index, now: u64) -> Vec<(String, u32, i64)> {
        let mut done = Vec::new();
        while let Some((key, slot)) = index.head(at(now)) {
            index.done(&key, at(now));
            done.push((String::from_utf8_lossy(&key).into_owned(), slot.input, slot.offset));
        }
        done
    }

    fn of(all: &[(&str, u32, i64)]) -> Vec<(String, u32, i64)> {
        all.iter().map(|(key, input, offset)| ((*key).to_owned(), *input, *offset)).collect()
    }

    #[test]
    fn a_head_waits_for_its_time_and_its_followers_for_it() {
        let mut index = Index::default();
        index.push(b"a", slot(0, 1, 50));
        index.push(b"a", slot(0, 2, 0));
        index.push(b"b", slot(0, 3, 20));
        assert_eq!((index.next_due(), index.head(at(19))), (Some(at(20)), None));
        assert_eq!(drain(&mut index, 20), of(&[("b", 0, 3)]));
        assert_eq!(index.next_due(), Some(at(50)));
        assert_eq!(drain(&mut index, 60), of(&[("a", 0, 1), ("a", 0, 2)]));
        assert_eq!((index.next_due(), index.records(), index.bytes()), (None, 0, 0));
    }

    #[test]
    fn a_key_waits_until_its_last_record_is_committed() {
        let mut index = Index::default();
        index.push(b"a", slot(0, 1, 0));
        drain(&mut index, 0);
        assert!(index.waits(b"a") && !index.is_empty());
        index.push(b"a", slot(0, 2, 0));
        index.settle();
        assert!(index.waits(b"a"), "filled again before the commit");
        drain(&mut index, 0);
        index.settle();
        assert!(!index.waits(b"a") && index.is_empty());
    }

    #[test]
    fn a_long_queue_does_not_keep_other_keys_waiting() {
        let mut index = Index::default();
        (0..3).for_each(|offset| index.push(b"a", slot(0, offset, 0)));
        index.push(b"b", slot(0, 7, 5));
        let mut done = Vec::new();
        for now in 6.. {
            let Some((key, slot)) = index.head(at(now)) else { break };
            index.done(&key, at(now));
            done.push(slot.offset);
        }
        assert_eq!(done, [0, 7, 1, 2], "b was due before a's second became the head");
    }

    #[test]
    fn what_is_tried_again_keeps_its_place_in_the_queue() {
        let mut index = Index::default();
        index.push(b"a", slot(0, 1, 0));
        index.push(b"a", slot(0, 2, 0));
        let (key, _) = index.head(at(0)).unwrap();
        index.again(&key, at(9));
        assert_eq!((index.head(at(8)), index.records()), (None, 2));
        assert_eq!(drain(&mut index, 9), of(&[("a", 0, 1), ("a", 0, 2)]));
    }

    #[test]
    fn a_record_read_again_stands_before_later_ones_of_its_input() {
        let mut index = Index::default();
        for (input, offset) in [(1, 4), (0, 10), (1, 2), (0, 8), (0, 12)] {
            assert!(!index.has(b"a", input, offset));
            index.push(b"a", slot(input, offset, 0));
            assert!(index.has(b"a", input, offset));
        }
        assert!(!index.has(b"a", 0, 9) && !index.has(b"b", 0, 8));
        assert_eq!(drain(&mut index, 0), of(&[("a", 1, 2), ("a", 1, 4), ("a", 0, 8), ("a", 0, 10), ("a", 0, 12)]));
    }

    #[test]
    fn the_one_that_has_failed_is_the_head_again() {
        let mut index = Index::default();
        index.load(b"a", vec![slot(0, 5, 0), slot(0, 6, 0), slot(1, 3, 90), slot(1, 4, 0)], Some(1));
        assert_eq!(index.head(at(50)), None);
        assert_eq!(drain(&mut index, 90), of(&[("a", 1, 3), ("a", 1, 4), ("a", 0, 5), ("a", 0, 6)]));
    }

    proptest! {
        /// Pushes, retries and work in any order: every record once, those of a key in order, the counts right.
        #[test]
        fn nothing_is_lost_and_order_holds(script in prop::collection::vec((0u8..4, 0usize..3, 0u64..20), 1..80)) {
            let (mut index, mut now, mut next, mut done) = (Index::default(), 0, 0, Vec::new());
            let keys = [&b"a"[..], b"b", b"c"];
            for (verb, key, time) in script {
                now += time;
                match (verb, index.head(at(now))) {
                    (0 | 1, _) => {
                        index.push(keys[key], slot(0, next, now + time));
                        next += 1;
                    }
                    (2, Some((key, _))) => index.again(&key, at(now + time)),
                    (3, Some((key, slot))) => {
                        index.done(&key, at(now));
                        done.push((key, slot.offset));
                    }
                    _ => index.settle(),
                }
                prop_assert_eq!(index.records(), next as usize - done.len());
                prop_assert_eq!(index.bytes(), 10 * index.records() as u64);
                prop_assert_eq!(index.next_due().is_some(), index.records() > 0);
            }
            while let Some((key, slot)) = index.head(Duration::MAX) {
                index.done(&key, at(now));
                done.push((key, slot.offset));
            }
            index.settle();
            prop_assert!(index.is_empty());
            prop_assert_eq!(done.len(), next as usize);
            for key in keys {
                let own: Vec<i64> = done.iter().filter(|(k, _)| **k == *key).map(|(_, offset)| *offset).collect();
                prop_assert!(own.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", own);
            }
        }
    }
}
