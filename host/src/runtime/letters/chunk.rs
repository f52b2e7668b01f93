//! What one transaction of a replay sends: letters, and the records that each becomes.

use crate::model::{Batch, Failure, Place, RecordRef};
use std::sync::Arc;

/// Most letters and bytes of one transaction.
const LETTERS: usize = 500;
const BYTES: usize = 8 << 20;

#[derive(Default)]
pub(super) struct Chunk {
    letters: Vec<Planned>,
    /// Offsets are indexes of letters.
    records: Batch,
    targets: Vec<Target>,
}

/// A letter that is to be replayed.
pub(super) struct Planned {
    pub(super) place: Place,
    /// For its mark.
    pub(super) to: Arc<str>,
    /// Why the log does not take its records. Then it stays as it is.
    pub(super) refused: Option<Failure>,
}

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Index into the topics that the way of this replay knows.
    pub(super) topic: usize,
    /// `None` leaves it to the key.
    pub(super) partition: Option<i32>,
}

impl Chunk {
    /// A letter; the records pushed from here on are its own.
    pub(super) fn add(&mut self, place: Place, to: Arc<str>) {
        self.letters.push(Planned { place, to, refused: None });
    }

    pub(super) fn push(&mut self, target: Target, record: RecordRef<'_>) {
        self.records.push(self.letters.len() as i64 - 1, record);
        self.targets.push(target);
    }

    /// Letters with their indexes, those left out that the log has refused.
    pub(super) fn letters(&self) -> impl Iterator<Item = (usize, &Planned)> {
        self.letters.iter().enumerate().filter(|(_, letter)| letter.refused.is_none())
    }

    /// Letter, target and record, in order; of letters that the log has not refused.
    pub(super) fn records(&self) -> impl Iterator<Item = (usize, Target, RecordRef<'_>)> {
        let all = self.records.iter().zip(&self.targets);
        all.map(|((letter, record), target)| (letter as usize, *target, record))
            .filter(|(letter, ..)| self.letters.get(*letter).is_some_and(|letter| letter.refused.is_none()))
    }

    pub(super) fn refuse(&mut self, letter: usize, failure: Failure) {
        if let Some(letter) = self.letters.get_mut(letter) {
            letter.refused = Some(failure);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.letters.len() >= LETTERS || self.records.bytes() >= BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Empties the chunk and gives its letters.
    pub(super) fn take(&mut self) -> Vec<Planned> {
        self.records.clear();
        self.targets.clear();
        std::mem::take(&mut self.letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeadersRef;

    #[test]
    fn a_refused_letter_takes_its_records_with_it() {
        let mut chunk = Chunk::default();
        let target = Target { topic: 0, partition: None };
        for (offset, count) in [(10, 1), (11, 2), (12, 0)] {
            chunk.add(Place { partition: 0, offset }, "t".into());
            for _ in 0..count {
                let record = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: offset };
                chunk.push(target, record);
            }
        }
        let seen = |chunk: &Chunk| chunk.records().map(|(letter, _, r)| (letter, r.timestamp)).collect::<Vec<_>>();
        assert_eq!(seen(&chunk), [(0, 10), (1, 11), (1, 11)]);
        chunk.refuse(1, Failure::new("output-too-large", "why"));
        assert_eq!(seen(&chunk), [(0, 10)]);
        assert_eq!(chunk.letters().map(|(_, letter)| letter.place.offset).collect::<Vec<_>>(), [10, 12]);
        assert_eq!(chunk.take().len(), 3);
        assert!(chunk.is_empty() && seen(&chunk).is_empty());
    }
}
