//! How records lie on disk: a run of them as columns, in one value. Little-endian, versioned by its first byte.

use super::columns::Cursor;
use crate::model::log::FetchLimit;
use crate::model::{Batch, Column};

/// Where an appended run is split, unless one record alone is larger.
pub(super) const CHUNK_LIMIT: FetchLimit = FetchLimit { records: 512, bytes: 1 << 20 };
/// The horizon of a chunk whose tombstones no cleaning has seen yet.
pub(super) const NO_HORIZON: i64 = -1;
const VERSION: u8 = 1;

/// Encodes the entries from `start` to `end`. From `horizon` on (milliseconds since the epoch), its tombstones may be removed.
pub(super) fn encode(batch: &Batch, start: Cursor, end: Cursor, horizon: i64) -> Vec<u8> {
    let (entries, headers) = (start.entry..end.entry, start.header..end.header);
    let base = batch.offsets[start.entry];
    let count = entries.len() as u32;
    let mut out = Vec::with_capacity(64 + 24 * entries.len() + 8 * headers.len() + end.bytes_since(start));
    out.push(VERSION);
    out.extend_from_slice(&horizon.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&(headers.len() as u32).to_le_bytes());
    put(&mut out, batch.offsets[entries.clone()].iter().map(|offset| ((offset - base) as u32).to_le_bytes()));
    put(&mut out, batch.timestamps[entries.clone()].iter().map(|n| n.to_le_bytes()));
    put(&mut out, batch.headers.counts[entries.clone()].iter().map(|n| n.to_le_bytes()));
    put_column(&mut out, &batch.keys, entries.clone(), start.key..end.key);
    put_column(&mut out, &batch.values, entries, start.value..end.value);
    put_column(&mut out, &batch.headers.names, headers.clone(), start.name..end.name);
    put_column(&mut out, &batch.headers.values, headers, start.text..end.text);
    out
}

/// Fills `batch` (emptied first) from a chunk that starts at `base`, and returns its horizon; `None` where it is damaged.
pub(super) fn decode(bytes: &[u8], base: i64, batch: &mut Batch) -> Option<i64> {
    batch.clear();
    let mut rest = bytes;
    let [version] = array(&mut rest)?;
    let horizon = i64::from_le_bytes(array(&mut rest)?);
    let count = u32::from_le_bytes(array(&mut rest)?) as usize;
    let headers = u32::from_le_bytes(array(&mut rest)?) as usize;
    let offsets = arrays::<4>(&mut rest, count)?;
    batch.offsets.extend(offsets.map(|n| base + i64::from(u32::from_le_bytes(n))));
    batch.timestamps.extend(arrays::<8>(&mut rest, count)?.map(i64::from_le_bytes));
    batch.headers.counts.extend(arrays::<4>(&mut rest, count)?.map(u32::from_le_bytes));
    take_column(&mut rest, count, &mut batch.keys)?;
    take_column(&mut rest, count, &mut batch.values)?;
    take_column(&mut rest, headers, &mut batch.headers.names)?;
    take_column(&mut rest, headers, &mut batch.headers.values)?;
    (version == VERSION && count > 0 && rest.is_empty() && batch.headers.check()).then_some(horizon)
}

fn put<const N: usize>(out: &mut Vec<u8>, items: impl Iterator<Item = [u8; N]>) {
    items.for_each(|item| out.extend_from_slice(&item));
}

fn put_column(out: &mut Vec<u8>, column: &Column, entries: std::ops::Range<usize>, bytes: std::ops::Range<usize>) {
    put(out, column.lengths[entries].iter().map(|n| n.to_le_bytes()));
    out.extend_from_slice(&column.bytes[bytes]);
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn arrays<'a, const N: usize>(rest: &mut &'a [u8], count: usize) -> Option<impl Iterator<Item = [u8; N]> + use<'a, N>> {
    let (head, tail) = rest.split_at_checked(count.checked_mul(N)?)?;
    *rest = tail;
    let (items, _) = head.as_chunks::<N>();
    Some(items.iter().copied())
}

fn take_column(rest: &mut &[u8], count: usize, column: &mut Column) -> Option<()> {
    column.lengths.extend(arrays::<4>(rest, count)?.map(i32::from_le_bytes));
    let size = column.lengths.iter().map(|&n| n.max(0) as usize).sum();
    let (head, tail) = rest.split_at_checked(size)?;
    *rest = tail;
    column.bytes.extend_from_slice(head);
    column.check().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HeadersRef, RecordRef};

    fn sample() -> Batch {
        let mut batch = Batch::default();
        for i in 0..5i64 {
            let names: Column = (0..i).map(|_| Some(&b"name"[..])).collect();
            let values: Column = (0..i).map(|n| (n != 1).then_some(&b"text"[..])).collect();
            let headers = HeadersRef::new(names.view(), values.view());
            let (key, value) = ((i != 2).then_some(&b"key"[..]), (i != 3).then_some(&b""[..]));
            batch.push(100 + 3 * i, RecordRef { key, value, headers, timestamp: i - 1 });
        }
        batch
    }

    #[test]
    fn any_run_comes_back_as_it_was() {
        let batch = sample();
        for first in 0..5 {
            for last in first + 1..=5 {
                let start = Cursor::default().skip_to(&batch, 100 + 3 * first);
                let end = start.skip_to(&batch, 100 + 3 * last);
                let bytes = encode(&batch, start, end, 77);
                let mut read = Batch::default();
                assert_eq!(decode(&bytes, 100 + 3 * first, &mut read), Some(77));
                assert_eq!(read, batch.slice(first as usize..last as usize));
            }
        }
    }

    #[test]
    fn damage_is_seen() {
        let batch = sample();
        let bytes = encode(&batch, Cursor::default(), Cursor::default().skip_to(&batch, i64::MAX), NO_HORIZON);
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut], 0, &mut Batch::default()), None, "cut at {cut}");
        }
        let other_version = [&[9], &bytes[1..]].concat();
        assert_eq!(decode(&other_version, 0, &mut Batch::default()), None);
    }

    #[test]
    fn runs_keep_to_their_limits() {
        let batch = sample();
        let run = |records, bytes| Cursor::default().run(&batch, FetchLimit { records, bytes }, 5).entry;
        assert_eq!([run(0, 100), run(1, 0), run(2, 1000), run(9, 1000)], [0, 1, 2, 5]);
        assert_eq!(run(9, 3), 1, "the second has headers");
        assert_eq!(run(9, 14), 2);
    }
}
