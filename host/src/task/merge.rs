//! Two parts of one input's records as one.

use crate::model::Batch;

/// The records of both, in offset order. Both are of the same input and in order themselves; the first gives the rest.
pub(super) fn merge(mut first: Batch, later: Batch) -> Batch {
    match (first.offsets.last(), later.offsets.first()) {
        (None, _) => return later,
        (_, None) => return first,
        (Some(last), Some(next)) if last < next => {
            later.iter().for_each(|(offset, record)| first.push(offset, record));
            return first;
        }
        _ => {}
    }
    let mut merged = first.slice(0..0);
    let (mut left, mut right) = (first.iter().peekable(), later.iter().peekable());
    loop {
        let from_left = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a < b,
            (a, b) if a.is_none() && b.is_none() => break,
            (a, _) => a.is_some(),
        };
        let next = if from_left { left.next() } else { right.next() };
        next.into_iter().for_each(|(offset, record)| merged.push(offset, record));
    }
    merged.attempt = 0;
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HeadersRef, RecordRef};
    use proptest::prelude::*;

    fn batch(offsets: &[i64]) -> Batch {
        let mut batch = Batch { input: 1, partition: 2, now: 3, ..Batch::default() };
        for &offset in offsets {
            let value = offset.to_le_bytes();
            let record = RecordRef { key: None, value: Some(&value), headers: HeadersRef::default(), timestamp: 5 };
            batch.push(offset, record);
        }
        batch
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_is_in_order(parts in prop::collection::btree_map(0i64..50, any::<bool>(), 0..20)) {
            let part = |left| parts.iter().filter(|(_, l)| **l == left).map(|(&offset, _)| offset).collect::<Vec<_>>();
            let all: Vec<i64> = parts.keys().copied().collect();
            prop_assert_eq!(merge(batch(&part(true)), batch(&part(false))), batch(&all));
        }
    }
}
