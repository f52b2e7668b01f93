//! What a plugin's call asks for. Everything here is checked where it enters the host, so the rooms above may trust it.

use super::RecordRef;
use super::record::{Column, Headers, HeadersRef};

/// Records to produce, as columns. `entries[i]` is the batch entry that made emit i.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emits {
    pub entries: Vec<u32>,
    /// Index into the processor's outputs.
    pub outputs: Vec<u32>,
    /// Milliseconds since the epoch; -1 stands for the input record's.
    pub timestamps: Vec<i64>,
    pub keys: Column,
    pub values: Column,
    pub headers: Headers,
}

/// State writes, as columns. A null value deletes the key; a key appears once, with its last writer as entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    pub entries: Vec<u32>,
    pub stores: Vec<u32>,
    pub keys: Column,
    pub values: Column,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    pub emits: Emits,
    pub writes: Writes,
}

/// Why a record failed, in its plugin's words or in ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    pub details: Vec<(String, String)>,
}

/// An entry that will never work. It has no effects; the call went on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub entry: u32,
    pub failure: Failure,
}

/// How a call ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    Complete,
    /// Entry `done` could not be done now: something outside may recover.
    Retry(Failure),
    /// Nothing may go on, from entry `done` on, before a person has looked.
    Stop(Failure),
}

/// The first `done` entries are done or rejected; `effects` is theirs alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub done: u32,
    pub effects: Effects,
    /// In entry order.
    pub rejected: Vec<Rejection>,
    pub ending: Ending,
}

/// One emit, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct EmitRef<'a> {
    pub entry: u32,
    pub output: u32,
    pub record: RecordRef<'a>,
}

/// One state write, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct WriteRef<'a> {
    pub store: u32,
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl Failure {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Failure { code: code.to_owned(), message: message.into(), ..Failure::default() }
    }
}

impl Emits {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = EmitRef<'_>> {
        let heads = self.entries.iter().zip(&self.outputs).zip(&self.timestamps);
        let fields = self.keys.iter().zip(self.values.iter()).zip(self.headers.iter());
        heads.zip(fields).map(|(((&entry, &output), &timestamp), ((key, value), headers))| EmitRef {
            entry,
            output,
            record: RecordRef { key, value, headers, timestamp },
        })
    }

    pub fn push(&mut self, entry: u32, output: u32, record: RecordRef<'_>) {
        self.entries.push(entry);
        self.outputs.push(output);
        self.timestamps.push(record.timestamp);
        self.keys.push(record.key);
        self.values.push(record.value);
        self.headers.push(HeadersRef::clone(&record.headers));
    }
}

impl Writes {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = WriteRef<'_>> {
        let fields = self.keys.iter().zip(self.values.iter());
        self.stores.iter().zip(fields).map(|(&store, (key, value))| WriteRef {
            store,
            key: key.unwrap_or_default(),
            value,
        })
    }
}
