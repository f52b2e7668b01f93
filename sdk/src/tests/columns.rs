//! Columns and batches are read as they were written, whatever is in them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::batch::{Entry, batch};
use crate::column::{Column, fields, push, push_with, truncate, with_capacity};
use crate::declaration::Input;
use crate::record::Records;

type Field = Option<Vec<u8>>;
type Owned = (Field, Field, Vec<(Vec<u8>, Field)>);
type Pair<'a> = (&'a [u8], Option<&'a [u8]>);

fn field() -> impl Strategy<Value = Field> {
    option::weighted(0.8, vec(any::<u8>(), 0..6))
}

fn records() -> impl Strategy<Value = Vec<Owned>> {
    vec((field(), field(), vec((vec(any::<u8>(), 0..4), field()), 0..3)), 0..8)
}

proptest! {
    #[test]
    fn a_column_reads_back_and_can_be_cut(written in vec(field(), 0..20), keep in 0usize..25) {
        let mut column = with_capacity(0, 0);
        written.iter().for_each(|field| push(&mut column, field.as_deref()));
        let failed: Result<(), ()> = push_with(&mut column, |bytes| {
            bytes.extend_from_slice(b"half");
            Err(())
        });
        prop_assert!(failed.is_err());
        let read = |column: &Column| fields(column).map(|field| field.map(<[u8]>::to_vec)).collect::<Vec<_>>();
        prop_assert_eq!(&read(&column), &written);
        truncate(&mut column, keep);
        prop_assert_eq!(read(&column), &written[..keep.min(written.len())]);
        prop_assert_eq!(column.bytes.len(), written.iter().take(keep).flatten().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn a_batch_is_walked_record_by_record(written in records()) {
        let headers: Vec<Vec<Pair<'_>>> = written.iter()
            .map(|(_, _, headers)| headers.iter().map(|(name, value)| (&name[..], value.as_deref())).collect())
            .collect();
        let entries: Vec<Entry<'_>> = written.iter().zip(&headers)
            .map(|((key, value, _), headers)| (key.as_deref(), value.as_deref(), &headers[..]))
            .collect();
        let batch = batch(&entries);
        let mut count = 0;
        for (record, (key, value, headers)) in Records::new(&batch, Input(0)).zip(&entries) {
            prop_assert_eq!((record.key(), record.value(), record.offset()), (*key, *value, 100 + count));
            let read: Vec<Pair<'_>> = record.headers().map(|header| (header.name, header.value)).collect();
            prop_assert_eq!(&read[..], *headers);
            count += 1;
        }
        prop_assert_eq!(count as usize, entries.len());
    }
}
