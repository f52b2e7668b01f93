//! Rebuilding one store: its data goes, and its place in the changelog with it, in an order that a crash cannot turn into a lie.

use super::applied::Position;
use super::faults;
use super::stores::Stores;
use crate::model::Fault;
use rocksdb::WriteBatch;

impl Stores {
    /// Empties a store and ties it to the start of a changelog: from here on it is filled by [`Stores::restore`].
    ///
    /// Without a write-ahead log, dropping data is durable at once and a position is not. So the position goes first, flushed;
    /// a crash then leaves data without a position, which nobody uses, and never a position without its data.
    pub fn rebuild(&mut self, store: usize, topic_id: &str, start: i64, now_ms: i64) -> Result<(), Fault> {
        if let Some(recent) = self.recent.get_mut(store) {
            recent.clear();
        }
        if !self.is_empty(store)? {
            self.forget_position(store)?;
            self.drop_data(store)?;
        }
        self.current[store] = false;
        let mut state = self.state.clone();
        let at = self.store_state(&mut state, store)?;
        at.changelog = Some(Position { topic_id: topic_id.to_owned(), offset: start });
        at.seen_ms = now_ms;
        self.write(WriteBatch::default(), state)
    }

    fn forget_position(&mut self, store: usize) -> Result<(), Fault> {
        let mut state = self.state.clone();
        self.store_state(&mut state, store)?.changelog = None;
        self.write(WriteBatch::default(), state)?;
        self.flush(true)
    }

    fn drop_data(&mut self, store: usize) -> Result<(), Fault> {
        let name = self.families.get(store).ok_or_else(|| faults::unknown_store(store))?;
        self.db
            .drop_cf(name)
            .and_then(|()| self.db.create_cf(name, &self.column_options))
            .map_err(|error| faults::rocks("emptying a store", &error))
    }
}
