//! One input record, borrowed from the columns of its batch; and the walk that yields them.

use std::fmt;

use pelton_bindings_transform::pelton::plugin::types::Batch;
use serde::Deserialize;

use crate::column::{self, Column};
use crate::declaration::Input;
use crate::error::Error;

/// One input record. Null is its own case everywhere: an empty key or value is `Some(&[])`.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) input: Input,
    pub(crate) entry: usize,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

/// A record's headers, in order; names may repeat.
#[derive(Clone, Copy)]
pub struct Headers<'a> {
    names: &'a Column,
    values: &'a Column,
    index: usize,
    end: usize,
    name_at: usize,
    value_at: usize,
}

/// One header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Kafka asks for UTF-8 here, but no broker checks it.
    pub name: &'a [u8],
    /// The value; null is not the same as empty.
    pub value: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// The key's bytes.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The value's bytes; `None` is a tombstone.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// The headers, in order.
    #[inline]
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }

    /// The value of the last header of that name: as Kafka's own `lastHeader`, the newest one wins.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.filter(|header| header.name == name.as_bytes()).last()?.value
    }

    /// Milliseconds since the epoch; `None` where the record has no timestamp.
    #[inline]
    pub fn timestamp(&self) -> Option<i64> {
        let timestamp = self.batch.timestamps[self.entry];
        (timestamp != -1).then_some(timestamp)
    }

    /// The offset in its partition.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.batch.offsets[self.entry]
    }

    /// The number of its partition.
    #[inline]
    pub fn partition(&self) -> u32 {
        self.batch.partition
    }

    /// The input that it came from, as declared.
    #[inline]
    pub fn input(&self) -> Input {
        self.input
    }

    /// The value as UTF-8. Rejected with `null-value` or `invalid-utf8`.
    pub fn text(&self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.required()?)
            .map_err(|error| Error::reject("invalid-utf8", format!("value is no UTF-8 text: {error}")))
    }

    /// The value as JSON. Rejected with `null-value` or `invalid-json`.
    pub fn json<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        serde_json::from_slice(self.required()?)
            .map_err(|error| Error::reject("invalid-json", format!("value is not the expected JSON: {error}")))
    }

    /// The value, which must not be null. Rejected with `null-value`.
    pub fn required(&self) -> Result<&'a [u8], Error> {
        self.value.ok_or_else(|| Error::reject("null-value", "value is null; this plugin needs one"))
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = (self.partition(), self.offset());
        f.debug_struct("Record")
            .field("position", &position)
            .field("key", &self.key)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    #[inline]
    fn next(&mut self) -> Option<Header<'a>> {
        if self.index == self.end {
            return None;
        }
        let name = column::read(self.names, self.index, &mut self.name_at).unwrap_or_default();
        let value = column::read(self.values, self.index, &mut self.value_at);
        self.index += 1;
        Some(Header { name, value })
    }
}

/// Walks a batch: yields its records in offset order.
pub(crate) struct Records<'a> {
    batch: &'a Batch,
    input: Input,
    entry: usize,
    key_at: usize,
    value_at: usize,
    headers: Headers<'a>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(batch: &'a Batch, input: Input) -> Self {
        let (names, values) = (&batch.headers.names, &batch.headers.values);
        let headers = Headers { names, values, index: 0, end: 0, name_at: 0, value_at: 0 };
        Self { batch, input, entry: 0, key_at: 0, value_at: 0, headers }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let (batch, entry) = (self.batch, self.entry);
        if entry == batch.offsets.len() {
            return None;
        }
        let key = column::read(&batch.keys, entry, &mut self.key_at);
        let value = column::read(&batch.values, entry, &mut self.value_at);
        let count = batch.headers.counts[entry] as usize;
        let headers = Headers { end: self.headers.index + count, ..self.headers };
        if count > 0 {
            self.headers.end = headers.end;
            self.headers.by_ref().for_each(drop);
        }
        self.entry += 1;
        Some(Record { batch, input: self.input, entry, key, value, headers })
    }
}
