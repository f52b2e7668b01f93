//! Which of an input's next records go to the plugin: those whose keys have nothing parked.

use crate::model::limits::batch_size;
use crate::model::{Batch, RecordRef};

/// What a parked record has more than the record, at most: its place with the longest topic, and what is remembered of its failures.
const OVERHEAD: u64 = 512;

/// The next records of an input, parted. Each part is in offset order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::task) struct Formed {
    /// For the plugin.
    pub(in crate::task) call: Batch,
    /// Records whose keys wait: they are parked when what is called before them is accepted.
    pub(in crate::task) aside: Batch,
    /// What there is no room to set aside, and all that follows.
    pub(in crate::task) rest: Batch,
}

/// What may still be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::task) struct Room {
    pub(in crate::task) records: usize,
    /// Bytes of keys, values and headers.
    pub(in crate::task) bytes: u64,
    /// The largest record that the park's changelog takes, as [`batch_size`] counts it.
    pub(in crate::task) largest: u64,
}

impl Formed {
    /// Nothing waits.
    pub(in crate::task) fn whole(batch: Batch) -> Formed {
        Formed { call: batch, ..Formed::default() }
    }
}

impl Room {
    /// Whether the record fits.
    pub(in crate::task) fn takes(&self, record: &RecordRef<'_>) -> bool {
        self.records > 0 && size(record) <= self.bytes && logged(record) <= self.largest
    }

    /// Takes the record's room, where it fits.
    fn take(&mut self, record: &RecordRef<'_>) -> bool {
        let fits = self.takes(record);
        if fits {
            self.records -= 1;
            self.bytes -= size(record);
        }
        fits
    }
}

/// Parts `batch`; `waits` tells of a key whether it has something parked.
pub(in crate::task) fn form(batch: Batch, mut room: Room, waits: impl Fn(&[u8]) -> bool) -> Formed {
    if !batch.keys.iter().flatten().any(&waits) {
        return Formed::whole(batch);
    }
    let (mut call, mut aside, mut rest) = (batch.slice(0..0), batch.slice(0..0), batch.slice(0..0));
    for (offset, record) in batch.iter() {
        let waits = record.key.is_some_and(&waits);
        let part = match waits {
            _ if !rest.is_empty() => &mut rest,
            true if !room.take(&record) => &mut rest,
            true => &mut aside,
            false => &mut call,
        };
        part.push(offset, record);
    }
    // the attempt is the first record's alone
    let first = batch.offsets.first();
    call.attempt = if call.offsets.first() == first { batch.attempt } else { 0 };
    (aside.attempt, rest.attempt) = (0, 0);
    Formed { call, aside, rest }
}

/// What the parked record is in the changelog, at most, as [`batch_size`] counts it.
pub(super) fn logged(record: &RecordRef<'_>) -> u64 {
    batch_size(record) + OVERHEAD + record.headers.len() as u64
}

/// Bytes of key, value and headers.
pub(super) fn size(record: &RecordRef<'_>) -> u64 {
    let size = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + size(value)).sum();
    (size(record.key) + size(record.value) + headers) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeadersRef;
    use proptest::prelude::*;

    const WIDE: Room = Room { records: usize::MAX, bytes: u64::MAX, largest: u64::MAX };

    /// Records of these keys at offsets 0, 10, 20 and so on; `""` is null.
    fn batch(keys: &[&str]) -> Batch {
        let mut batch = Batch { input: 1, partition: 2, now: 3, attempt: 4, ..Batch::default() };
        for (at, key) in keys.iter().enumerate() {
            let key = (!key.is_empty()).then_some(key.as_bytes());
            let record = RecordRef { key, value: Some(b"vvv"), headers: HeadersRef::default(), timestamp: 5 };
            batch.push(at as i64 * 10, record);
        }
        batch
    }

    fn offsets(formed: &Formed) -> [Vec<i64>; 3] {
        [&formed.call, &formed.aside, &formed.rest].map(|part| part.offsets.clone())
    }

    #[test]
    fn nothing_is_copied_where_nothing_waits() {
        let all = batch(&["a", "", "b"]);
        let address = all.keys.bytes.as_ptr();
        let formed = form(all, WIDE, |key| key == b"z");
        assert_eq!((offsets(&formed), formed.call.attempt), ([vec![0, 10, 20], vec![], vec![]], 4));
        assert_eq!(formed.call.keys.bytes.as_ptr(), address);
    }

    #[test]
    fn records_of_waiting_keys_are_set_aside_and_null_keys_are_not() {
        let formed = form(batch(&["a", "b", "", "a"]), WIDE, |key| key == b"a");
        assert_eq!(offsets(&formed), [vec![10, 20], vec![0, 30], vec![]]);
        assert_eq!(
            [&formed.call, &formed.aside].map(|part| (part.input, part.partition, part.now, part.attempt)),
            [(1, 2, 3, 0); 2]
        );
        let formed = form(batch(&["b", "a"]), WIDE, |key| key == b"a");
        assert_eq!(formed.call.attempt, 4, "the first entry keeps its attempt");
    }

    #[test]
    fn what_there_is_no_room_for_ends_the_stretch() {
        let waits = |key: &[u8]| key == b"a";
        let keys = ["a", "b", "a", "b", "a"];
        let none = Room { records: 0, ..WIDE };
        assert_eq!(offsets(&form(batch(&keys), none, waits)), [vec![], vec![], vec![0, 10, 20, 30, 40]]);
        let one = Room { records: 1, ..WIDE };
        assert_eq!(offsets(&form(batch(&keys), one, waits)), [vec![10], vec![0], vec![20, 30, 40]]);
        let bytes = |bytes| offsets(&form(batch(&keys), Room { bytes, ..WIDE }, waits));
        assert_eq!(bytes(8), [vec![10, 30], vec![0, 20], vec![40]], "of four bytes each, exactly two");
        assert_eq!(bytes(7), [vec![10], vec![0], vec![20, 30, 40]]);
        let small = Room { largest: 80, ..WIDE };
        assert_eq!(offsets(&form(batch(&keys), small, waits))[2].len(), 5, "the changelog would refuse it");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_record_overtakes_its_key(
            keys in prop::collection::vec(prop::sample::select(vec!["a", "b", "c", ""]), 0..20), records in 0usize..8
        ) {
            let all = batch(&keys);
            let formed = form(all.clone(), Room { records, ..WIDE }, |key| key == b"a" || key == b"c");
            let mut together = offsets(&formed).concat();
            together.sort_unstable();
            prop_assert_eq!(&together, &all.offsets);
            prop_assert!(formed.aside.len() <= records);
            let end = formed.rest.offsets.first().copied().unwrap_or(i64::MAX);
            prop_assert!(formed.call.offsets.iter().chain(&formed.aside.offsets).all(|&offset| offset < end));
            prop_assert!(formed.call.keys.iter().all(|key| key != Some(b"a") && key != Some(b"c")));
            prop_assert!(formed.aside.keys.iter().all(|key| key == Some(b"a") || key == Some(b"c")));
        }
    }
}
