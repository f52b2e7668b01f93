//! Emits of a call as columns, and the builder of one emit.

use std::fmt::{self, Display, Write as _};

use pelton_bindings_transform::pelton::plugin::types::{Batch, Emits, Headers};
use serde::Serialize;

use crate::column;
use crate::error::Error;

/// Something that can be a key or a value: bytes, text, or null.
pub trait Field<'a> {
    /// The bytes; `None` is null.
    fn field(self) -> Option<&'a [u8]>;
}

/// Null, where a key or a value is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Null;

impl<'a, T: AsRef<[u8]> + ?Sized> Field<'a> for &'a T {
    #[inline]
    fn field(self) -> Option<&'a [u8]> {
        Some(self.as_ref())
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    #[inline]
    fn field(self) -> Option<&'a [u8]> {
        self.and_then(T::field)
    }
}

impl<'a> Field<'a> for Null {
    fn field(self) -> Option<&'a [u8]> {
        None
    }
}

/// One emit in the making; what gives it a value ([`Emit::value`], [`Emit::json`], …) emits it.
///
/// Unless told otherwise it has the key and the timestamp of the input record, and no headers.
#[must_use = "an emit without a value is not emitted"]
pub struct Emit<'a> {
    pub(crate) log: &'a mut EmitLog,
    pub(crate) entry: u32,
    pub(crate) output: u32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) timestamp: i64,
    pub(crate) headers: u32,
}

impl<'a> Emit<'a> {
    /// Sets the key, in place of the input record's.
    #[inline]
    pub fn key(mut self, key: impl Field<'a>) -> Self {
        self.key = key.field();
        self
    }

    /// Sets the timestamp in milliseconds since the epoch, in place of the input record's.
    #[inline]
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = milliseconds;
        self
    }

    /// Adds a header; names may repeat.
    #[inline]
    pub fn header<'b>(mut self, name: &(impl AsRef<[u8]> + ?Sized), value: impl Field<'b>) -> Self {
        column::push(&mut self.log.emits.headers.names, Some(name.as_ref()));
        column::push(&mut self.log.emits.headers.values, value.field());
        self.log.unfinished = true;
        self.headers += 1;
        self
    }

    /// Adds headers, such as all of a record's.
    #[inline]
    pub fn headers<'b>(self, headers: impl IntoIterator<Item = crate::record::Header<'b>>) -> Self {
        headers.into_iter().fold(self, |emit, header| emit.header(header.name, header.value))
    }

    /// Emits with these bytes, or this text, as value.
    #[inline]
    pub fn value<'b>(self, value: impl Field<'b>) {
        column::push(&mut self.log.emits.values, value.field());
        self.seal();
    }

    /// Emits with a null value: a compacted topic forgets the key.
    #[inline]
    pub fn tombstone(self) {
        self.value(Null);
    }

    /// Emits with the value written as text.
    #[inline]
    pub fn text(self, value: impl Display) -> Result<(), Error> {
        self.written(|bytes| write!(Text(bytes), "{value}").map_err(Error::from))
    }

    /// Emits with the value written as JSON; what cannot be written rejects the record with `invalid-json`.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.written(|bytes| serde_json::to_writer(bytes, value).map_err(unwritable))
    }

    /// Emits with the value that `write` appends.
    fn written(self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
        column::push_with(&mut self.log.emits.values, write)?;
        self.seal();
        Ok(())
    }

    #[inline]
    fn seal(self) {
        let emits = &mut self.log.emits;
        column::push(&mut emits.keys, self.key);
        emits.entries.push(self.entry);
        emits.outputs.push(self.output);
        emits.timestamps.push(self.timestamp);
        emits.headers.counts.push(self.headers);
        self.log.headers += self.headers as usize;
        self.log.unfinished = false;
    }
}

/// The emits of a call so far.
pub(crate) struct EmitLog {
    emits: Emits,
    /// How many headers the finished emits have.
    headers: usize,
    /// Headers may lie behind those of the last finished emit: an emit is being made, or was dropped without a value.
    unfinished: bool,
    expected: Expected,
}

/// How much the last call emitted: what the next one makes room for.
#[derive(Clone, Copy, Default)]
struct Expected {
    entries: usize,
    keys: usize,
    values: usize,
}

impl EmitLog {
    pub(crate) fn new() -> Self {
        Self { emits: empty(Expected::default()), headers: 0, unfinished: false, expected: Expected::default() }
    }

    /// Starts a call. The columns of the last one were given away, so room is made here, once.
    pub(crate) fn begin(&mut self, batch: &Batch) {
        let mut room = self.expected;
        room.entries = room.entries.min(2 * batch.offsets.len());
        self.emits = empty(room);
        self.headers = 0;
        self.unfinished = false;
    }

    /// Starts one emit: whatever an unfinished one left is dropped.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.unfinished {
            self.cut(self.len());
        }
    }

    /// How many emits there are: what to cut back to when a record is undone.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.emits.entries.len()
    }

    /// Drops all emits but the first `count`, and the headers of an unfinished one.
    #[cold]
    pub(crate) fn cut(&mut self, count: usize) {
        let emits = &mut self.emits;
        emits.entries.truncate(count);
        emits.outputs.truncate(count);
        emits.timestamps.truncate(count);
        self.headers -= emits.headers.counts.drain(count..).map(|count| count as usize).sum::<usize>();
        column::truncate(&mut emits.keys, count);
        column::truncate(&mut emits.values, count);
        column::truncate(&mut emits.headers.names, self.headers);
        column::truncate(&mut emits.headers.values, self.headers);
        self.unfinished = false;
    }

    /// Ends the call.
    pub(crate) fn take(&mut self) -> Emits {
        self.tidy();
        let emits = std::mem::replace(&mut self.emits, empty(Expected::default()));
        self.expected =
            Expected { entries: emits.entries.len(), keys: emits.keys.bytes.len(), values: emits.values.bytes.len() };
        emits
    }
}

/// Text appended to bytes: half the cost of going through `io::Write`.
struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn empty(room: Expected) -> Emits {
    Emits {
        entries: Vec::with_capacity(room.entries),
        outputs: Vec::with_capacity(room.entries),
        timestamps: Vec::with_capacity(room.entries),
        keys: column::with_capacity(room.entries, room.keys),
        values: column::with_capacity(room.entries, room.values),
        headers: Headers {
            counts: Vec::with_capacity(room.entries),
            names: column::with_capacity(0, 0),
            values: column::with_capacity(0, 0),
        },
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::reject("invalid-json", format!("value for an emit cannot be written as JSON: {error}"))
}
