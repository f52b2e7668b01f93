//! Moving runs of records between batches without touching the records one by one.

use crate::model::log::FetchLimit;
use crate::model::{Batch, Column};

/// A place in a batch: how many entries of each column, and bytes of each, lie before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) entry: usize,
    pub(super) header: usize,
    pub(super) key: usize,
    pub(super) value: usize,
    pub(super) name: usize,
    pub(super) text: usize,
}

impl Cursor {
    /// One entry further.
    fn step(self, batch: &Batch) -> Cursor {
        let headers = self.header..self.header + batch.headers.counts[self.entry] as usize;
        Cursor {
            entry: self.entry + 1,
            header: headers.end,
            key: self.key + size(batch.keys.lengths[self.entry]),
            value: self.value + size(batch.values.lengths[self.entry]),
            name: self.name + batch.headers.names.lengths[headers.clone()].iter().map(|&n| size(n)).sum::<usize>(),
            text: self.text + batch.headers.values.lengths[headers].iter().map(|&n| size(n)).sum::<usize>(),
        }
    }

    fn bytes(self) -> usize {
        self.key + self.value + self.name + self.text
    }

    /// The end of the run that starts here, within the limit and before the entry `until`; at least one entry where the limit
    /// allows any record at all.
    pub(super) fn run(self, batch: &Batch, limit: FetchLimit, until: usize) -> Cursor {
        let last = until.min(self.entry.saturating_add(limit.records));
        let mut at = self;
        while at.entry < last {
            let next = at.step(batch);
            if at.entry > self.entry && next.bytes() - self.bytes() > limit.bytes {
                break;
            }
            at = next;
        }
        at
    }

    /// The first entry whose offset is `offset` or more.
    pub(super) fn skip_to(self, batch: &Batch, offset: i64) -> Cursor {
        let mut at = self;
        while batch.offsets.get(at.entry).is_some_and(|&own| own < offset) {
            at = at.step(batch);
        }
        at
    }

    /// Bytes of keys, values and headers from `start` to here.
    pub(super) fn bytes_since(self, start: Cursor) -> usize {
        self.bytes() - start.bytes()
    }
}

/// Appends the entries from `start` to `end` of one batch to another.
pub(super) fn append(from: &Batch, start: Cursor, end: Cursor, to: &mut Batch) {
    let entries = start.entry..end.entry;
    to.offsets.extend_from_slice(&from.offsets[entries.clone()]);
    to.timestamps.extend_from_slice(&from.timestamps[entries.clone()]);
    to.headers.counts.extend_from_slice(&from.headers.counts[entries.clone()]);
    append_column(&from.keys, entries.clone(), start.key..end.key, &mut to.keys);
    append_column(&from.values, entries, start.value..end.value, &mut to.values);
    let headers = start.header..end.header;
    append_column(&from.headers.names, headers.clone(), start.name..end.name, &mut to.headers.names);
    append_column(&from.headers.values, headers, start.text..end.text, &mut to.headers.values);
}

fn append_column(from: &Column, entries: std::ops::Range<usize>, bytes: std::ops::Range<usize>, to: &mut Column) {
    to.lengths.extend_from_slice(&from.lengths[entries]);
    to.bytes.extend_from_slice(&from.bytes[bytes]);
}

fn size(length: i32) -> usize {
    length.max(0) as usize
}
