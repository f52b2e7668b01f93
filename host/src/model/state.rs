//! The seam through which a running guest reads its task's state.

use super::{Column, Fault};

/// A task's stores as a guest sees them: what is committed with the effects of earlier calls on top.
pub trait StateView: Send {
    /// The values of `keys`, in their order; null where there is none.
    fn get_many(&mut self, store: u32, keys: &Column) -> Result<Column, Fault>;

    /// Entries with `start <= key < end` in key order (`reverse`: backwards), alternating key and value; true when more follow.
    fn scan(&mut self, store: u32, range: &ScanRange) -> Result<(Column, bool), Fault>;
}

/// Bounds of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanRange {
    pub start: Vec<u8>,
    /// Exclusive; `None` is the end of the store.
    pub end: Option<Vec<u8>>,
    pub reverse: bool,
    /// Most entries to return.
    pub limit: u32,
    /// Most bytes of keys and values to return; one entry is returned even when larger.
    pub max_bytes: u32,
}
