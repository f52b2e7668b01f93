//! The bodies of answers that are not the runtime's own types, as both sides see them.

use crate::model::bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A key's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueReply {
    pub partition: i32,
    pub key: Bytes<'static>,
    /// Null: the store has no such key.
    pub value: Option<Bytes<'static>>,
}

/// Some entries of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageReply {
    pub entries: Vec<EntryReply>,
    /// Of which the page is; others may be on other hosts.
    pub partitions: Vec<i32>,
    /// For the next page; null where this was the last.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryReply {
    pub partition: i32,
    pub key: Bytes<'static>,
    pub value: Bytes<'static>,
}

/// What became of a pause, or of the end of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseReply {
    pub processor: String,
    pub paused: bool,
    /// False where it was so already.
    pub changed: bool,
}

/// Why nothing came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ErrorReply {
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}
