//! Records on their way into one transaction.

use crate::model::{Batch, Column, HeadersRef, RecordRef};

/// Records of one transaction, unless all are to go in one.
const RECORDS: usize = 10_000;
const BYTES: usize = 8 << 20;

/// Records with where each stood in the input. Kept until committed, so that an aborted transaction can be done again.
#[derive(Default)]
pub(in crate::cli) struct Chunk {
    /// Its offsets are line numbers of the input.
    batch: Batch,
    /// Explicit partitions; `None` leaves it to the key.
    partitions: Vec<Option<i32>>,
}

impl Chunk {
    pub(super) fn push(&mut self, line: u64, partition: Option<i32>, record: RecordRef<'_>) {
        self.batch.push(line as i64, record);
        self.partitions.push(partition);
    }

    /// A record without headers.
    pub(super) fn push_plain(&mut self, line: u64, key: Option<&[u8]>, value: Option<&[u8]>, timestamp: i64) {
        self.push(line, None, RecordRef { key, value, headers: HeadersRef::default(), timestamp });
    }

    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= RECORDS || self.batch.bytes() >= BYTES
    }

    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.partitions.clear();
    }

    /// Line, partition and record, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, Option<i32>, RecordRef<'_>)> {
        self.batch.iter().zip(&self.partitions).map(|((line, record), partition)| (line, *partition, record))
    }

    /// Refuses partitions that the topic does not have, before anything is sent.
    pub(super) fn check_partitions(&self, count: i32) -> anyhow::Result<()> {
        let wrong = self
            .iter()
            .find_map(|(line, partition, _)| Some((line, partition?)).filter(|(_, p)| !(0..count).contains(p)));
        match wrong {
            Some((line, partition)) => {
                anyhow::bail!("line {line}: there is no partition {partition}: the topic has {count}")
            }
            None => Ok(()),
        }
    }
}

/// Byte strings as a column, for headers.
pub(super) fn column<'a>(items: impl Iterator<Item = Option<&'a [u8]>>) -> Column {
    items.collect()
}
