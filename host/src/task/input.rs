//! One input partition of a task: where it is read, what was accepted, what is committed.

use crate::model::log::{FetchLimit, OffsetCommit, Source};
use crate::model::{Batch, Fault, TopicPartition, Verdict};
use std::sync::Arc;
use std::time::Duration;

/// A source with the task's offsets beside it. `committed <= next <= fetched`.
pub struct Input {
    source: Box<dyn Source>,
    /// The next offset of the last commit.
    committed: i64,
    /// One past the last record that was accepted.
    next: i64,
    /// One past the last record that was taken from the source.
    fetched: i64,
    /// Set until a seek to `fetched` has succeeded.
    astray: bool,
}

impl Input {
    /// An input that begins at `offset`. `committed` is the group's offset, -1 for none.
    pub fn new(source: Box<dyn Source>, offset: i64, committed: i64) -> Input {
        Input { source, committed, next: offset, fetched: offset, astray: true }
    }

    pub fn partition(&self) -> &TopicPartition {
        self.source.partition()
    }

    pub fn into_source(self) -> Box<dyn Source> {
        self.source
    }

    pub fn on_ready(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.source.on_ready(wake);
    }

    /// Appends to `batch` what is there. Nothing while the source cannot be positioned yet.
    pub fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit) -> Result<usize, Fault> {
        if self.astray && !self.seek()? {
            return Ok(0);
        }
        let taken = self.source.fetch(batch, limit, Duration::ZERO)?;
        if let Some(last) = batch.offsets.last() {
            self.fetched = last + 1;
        }
        Ok(taken)
    }

    /// Takes note that every record before `offset` has been accepted.
    pub fn accept(&mut self, offset: i64) {
        self.next = self.next.max(offset);
    }

    /// Moves past transaction markers and compacted gaps at the end of the partition, when every fetched record was accepted.
    pub fn pass_gaps(&mut self) {
        if !self.astray && self.next >= self.fetched && self.source.at_end() {
            self.next = self.next.max(self.source.position());
            self.fetched = self.next;
        }
    }

    pub fn at_end(&self) -> bool {
        !self.astray && self.source.at_end()
    }

    pub fn has_progress(&self) -> bool {
        self.next > self.committed
    }

    /// What a commit sends for this input.
    pub fn offset(&self) -> OffsetCommit {
        OffsetCommit { partition: self.partition().clone(), offset: self.next, metadata: String::new() }
    }

    pub fn committed(&self) -> i64 {
        self.committed
    }

    /// The commit of [`Input::offset`] succeeded.
    pub fn settle(&mut self) {
        self.committed = self.next;
    }

    /// Goes back to the last commit, or to where the input began if there was none. The source follows at the next fetch.
    pub fn rewind(&mut self, start: i64) {
        self.next = if self.committed >= 0 { self.committed } else { start };
        self.fetched = self.next;
        self.astray = true;
    }

    fn seek(&mut self) -> Result<bool, Fault> {
        match self.source.seek(self.fetched) {
            Ok(()) => self.astray = false,
            // a client that is not ready for it yet: asked again at the next fetch
            Err(fault) if fault.verdict == Verdict::Transient => {}
            Err(fault) => return Err(fault),
        }
        Ok(!self.astray)
    }
}
