//! What the SDK needs of the host to serve state: the `state` import, or a table in memory for native tests.

use crate::column::Column;

/// Reads of the task's stores: what is committed, with the effects of earlier calls on top.
pub(crate) trait Host {
    /// The values of `keys`, in their order; null where there is none.
    fn get_many(&self, store: u32, keys: &Column) -> Column;
    /// Alternating keys and values of `start <= key < end` in the order asked for; the flag says that more follow.
    fn scan(&self, request: &ScanRequest<'_>) -> (Column, bool);
}

/// One page of a scan.
#[derive(Clone, Debug)]
pub(crate) struct ScanRequest<'a> {
    pub(crate) store: u32,
    pub(crate) start: &'a [u8],
    pub(crate) end: Option<&'a [u8]>,
    pub(crate) reverse: bool,
    pub(crate) limit: u32,
    pub(crate) max_bytes: u32,
}

/// The host of a transform: it has no state, and its component imports none.
pub(crate) struct NoState;

impl Host for NoState {
    fn get_many(&self, _store: u32, keys: &Column) -> Column {
        Column { bytes: Vec::new(), lengths: vec![-1; keys.lengths.len()] }
    }

    fn scan(&self, _request: &ScanRequest<'_>) -> (Column, bool) {
        (Column { bytes: Vec::new(), lengths: Vec::new() }, false)
    }
}
