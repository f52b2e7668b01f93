//! One input partition of a task: where it is read, what was accepted, what is committed, and which record is being retried.

use super::retry::Retry;
use super::work::Moment;
use crate::delivery::{self, Attempts, Lineage};
use crate::model::log::{Committed, FetchLimit, OffsetCommit, Source};
use crate::model::{Batch, Clock, Fault, TopicPartition, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A source with the task's offsets beside it. `committed <= next <= fetched`.
pub struct Input {
    source: Box<dyn Source>,
    /// The next offset of the last commit.
    committed: i64,
    /// What the last commit said beside it.
    note: String,
    /// The topic's id, and what a commit says of the topics that it goes with; empty where it says nothing.
    topic_id: Arc<str>,
    lineage: Option<(Lineage, String)>,
    /// What is said beside an offset of which nothing else is to be said.
    plain: String,
    /// How many records the task has parked, as is said beside the offset of its first input.
    parked: usize,
    /// One past the last record that was accepted.
    next: i64,
    /// One past the last record that was taken from the source.
    fetched: i64,
    /// Set until a seek to `fetched` has succeeded.
    astray: bool,
    /// What is remembered of records that failed, by offset, until they are committed: what failed has failed, also after an abort.
    retries: BTreeMap<i64, Retry>,
}

impl Input {
    /// An input that begins at `offset`. `committed` is the group's offset, -1 for none.
    pub fn new(source: Box<dyn Source>, offset: i64, committed: i64) -> Input {
        let (note, lineage, plain) = (String::new(), None, String::new());
        let (topic_id, retries) = (Arc::from(""), BTreeMap::new());
        let (parked, next, fetched, astray) = (0, offset, offset, true);
        Input { source, committed, note, topic_id, lineage, plain, parked, next, fetched, astray, retries }
    }

    /// The same, whose offsets say with which topics they go, and are committed while the input is the one of this id.
    pub fn of(mut self, topic_id: &str, lineage: Lineage) -> Input {
        self.topic_id = topic_id.into();
        self.tell(lineage);
        self
    }

    /// The same, with what the metadata of the committed offset says of the record that is being retried there.
    pub fn recall(mut self, metadata: &str, clock: &dyn Clock) -> Input {
        metadata.clone_into(&mut self.note);
        self.parked = delivery::parked(metadata);
        if let Some(attempts) = Attempts::recall(metadata, self.next) {
            self.retries.insert(self.next, Retry::recalled(attempts, Moment::of(clock)));
        }
        self
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
            self.accept(self.source.position());
            self.fetched = self.next;
        }
    }

    pub fn at_end(&self) -> bool {
        !self.astray && self.source.at_end()
    }

    /// Whether a commit would move the offset, or what is said beside it.
    pub fn has_progress(&self) -> bool {
        self.next > self.committed || !self.is_noted()
    }

    /// What a commit sends for this input.
    pub fn offset(&self) -> OffsetCommit {
        let (partition, topic_id) = (self.partition().clone(), self.topic_id.clone());
        OffsetCommit { partition, topic_id, offset: self.next, metadata: self.metadata() }
    }

    /// Whether the group has for this input what [`Input::offset`] says.
    pub(super) fn is_at(&self, found: &Committed) -> bool {
        found.offset == Some(self.next) && found.metadata == self.metadata()
    }

    /// Whether the group has for this input what it had before.
    pub(super) fn is_behind(&self, found: &Committed) -> bool {
        found.offset.unwrap_or(-1) == self.committed && found.metadata == self.note
    }

    pub(super) fn committed(&self) -> i64 {
        self.committed
    }

    /// The commit of [`Input::offset`] succeeded.
    pub fn settle(&mut self) {
        self.committed = self.next;
        if !self.is_noted() {
            self.note = self.metadata();
        }
        if !self.retries.is_empty() {
            self.retries = self.retries.split_off(&self.committed);
        }
    }

    /// Goes back to the last commit, or to where the input began if there was none. The source follows at the next fetch.
    pub fn rewind(&mut self, start: i64) {
        self.next = if self.committed >= 0 { self.committed } else { start };
        self.fetched = self.next;
        self.astray = true;
        self.parked = delivery::parked(&self.note);
    }

    /// How many records the task has parked is said with the next commit.
    pub(super) fn tell_parked(&mut self, parked: usize) {
        self.parked = parked;
    }

    /// The next commit says that it was reached with this version of the plugin.
    pub(super) fn tell_version(&mut self, sequence: i64) {
        if let Some((lineage, _)) = self.lineage.take() {
            self.tell(Lineage { sequence, ..lineage });
        }
    }

    /// The next record to be accepted has failed and is tried again at `due` of the monotonic clock.
    pub(super) fn remember(&mut self, attempts: Attempts, due: Duration) {
        self.accept(attempts.offset);
        self.retries.insert(attempts.offset, Retry::new(attempts, due));
    }

    /// The next record that is tried again.
    pub(super) fn retry(&self) -> Option<&Retry> {
        self.retries.range(self.next..).next().map(|(_, retry)| retry)
    }

    /// What is remembered of the record at `offset`.
    pub(super) fn retried(&self, offset: i64) -> Option<Attempts> {
        self.retries.get(&offset).map(|retry| retry.attempts)
    }

    /// The first record behind `offset` of which something is remembered.
    pub(super) fn retry_after(&self, offset: i64) -> Option<i64> {
        self.retries.range(offset + 1..).next().map(|(&offset, _)| offset)
    }

    /// Until when the record at `head` waits; `head` is the next to be met, and everything before it is done, or not there.
    pub(super) fn meet(&mut self, head: i64, now: Duration) -> Option<Duration> {
        if self.retries.is_empty() {
            return None;
        }
        let due = self.retries.get(&head)?.due;
        self.accept(head);
        (now < due).then_some(due)
    }

    /// The next offset to accept.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// What a commit says beside the offset: of the record there, and of no other; how many are parked; and the lineage.
    fn metadata(&self) -> String {
        delivery::beside(self.retry_note(), self.parked, self.lineage_text())
    }

    fn lineage_text(&self) -> &str {
        self.lineage.as_ref().map_or("", |(_, text)| text)
    }

    fn tell(&mut self, lineage: Lineage) {
        let text = lineage.encode();
        self.plain = delivery::beside("", 0, &text);
        self.lineage = Some((lineage, text));
    }

    /// Whether that is what the last commit said. Nothing is allocated where nothing waits.
    fn is_noted(&self) -> bool {
        if self.parked == 0 && self.retries.is_empty() { self.plain == self.note } else { self.metadata() == self.note }
    }

    fn retry_note(&self) -> &str {
        self.retries.get(&self.next).map_or("", |retry| &retry.note)
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
