//! From inputs to the next batch: what was put back comes first, then what the sources hold; records that failed already are met alone.

use super::Input;
use crate::model::log::{Committed, FetchLimit, OffsetCommit, Source};
use crate::model::{Batch, Failure, Fault, TopicPartition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The inputs of a task with the records between fetching and acceptance.
pub(super) struct Intake {
    inputs: Vec<Lane>,
    /// The input to look at first, so that none starves.
    turn: usize,
    /// A batch whose buffers are used again.
    spare: Batch,
}

struct Lane {
    input: Input,
    start: i64,
    /// Records fetched but not accepted, of one input in offset order.
    pending: Option<Batch>,
    /// Offsets that failed outside the plugin, with the reason: dead letters when they are met.
    excluded: BTreeMap<i64, Failure>,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    Call(Batch),
    /// One record that failed already: it is not shown to the plugin again.
    Failed(Batch, Failure),
}

impl Intake {
    pub(super) fn new(inputs: Vec<Input>) -> Intake {
        let lane =
            |input: Input| Lane { start: input.offset().offset, input, pending: None, excluded: BTreeMap::new() };
        Intake { inputs: inputs.into_iter().map(lane).collect(), turn: 0, spare: Batch::default() }
    }

    pub(super) fn on_ready(&mut self, wake: &Arc<dyn Fn() + Send + Sync>) {
        self.inputs.iter_mut().for_each(|lane| lane.input.on_ready(wake.clone()));
    }

    /// The next records of one input, `now` in wall-clock milliseconds.
    pub(super) fn next(&mut self, limit: FetchLimit, now: i64) -> Result<Next, Fault> {
        for step in 0..self.inputs.len() {
            let index = (self.turn + step) % self.inputs.len();
            let spare = std::mem::take(&mut self.spare);
            match self.inputs[index].next(index, limit, (spare, now))? {
                (Next::Nothing, spare) => self.spare = spare,
                (next, _) => {
                    self.turn = index + 1;
                    return Ok(next);
                }
            }
        }
        Ok(Next::Nothing)
    }

    /// The first `done` records of `batch` are accepted; the rest is put back.
    pub(super) fn accept(&mut self, mut batch: Batch, done: usize) {
        let lane = &mut self.inputs[batch.input as usize];
        if done > 0 {
            let next = batch.offsets[done - 1] + 1;
            lane.input.accept(next);
        }
        if done < batch.len() {
            lane.put_back(batch.slice(done..batch.len()));
        }
        batch.clear();
        self.spare = batch;
    }

    /// Nothing of `batch` was accepted: it is met again.
    pub(super) fn put_back(&mut self, batch: Batch) {
        self.inputs[batch.input as usize].put_back(batch);
    }

    /// Marks a record as failed. False where it was marked already.
    pub(super) fn exclude(&mut self, input: usize, offset: i64, failure: Failure) -> bool {
        self.inputs.get_mut(input).is_none_or(|lane| lane.excluded.insert(offset, failure).is_none())
    }

    pub(super) fn topic(&self, input: u32) -> &str {
        &self.inputs[input as usize].input.partition().topic
    }

    pub(super) fn has_progress(&self) -> bool {
        self.inputs.iter().any(|lane| lane.input.has_progress())
    }

    pub(super) fn at_end(&self) -> bool {
        self.inputs.iter().all(|lane| lane.pending.is_none() && lane.input.at_end())
    }

    pub(super) fn offsets(&self) -> impl Iterator<Item = OffsetCommit> {
        self.inputs.iter().filter(|lane| lane.input.has_progress()).map(|lane| lane.input.offset())
    }

    /// Every input's next offset, moved or not, with its topic.
    pub(super) fn positions(&self) -> Vec<(Arc<str>, i64)> {
        let position = |lane: &Lane| (lane.input.partition().topic.clone(), lane.input.offset().offset);
        self.inputs.iter().map(position).collect()
    }

    pub(super) fn partitions(&self) -> Vec<TopicPartition> {
        self.inputs.iter().map(|lane| lane.input.partition().clone()).collect()
    }

    /// What became of a commit whose outcome is unknown, from the group's committed offsets in the order of [`Intake::partitions`]:
    /// `Some(true)` committed, `Some(false)` aborted, `None` neither, so that nothing here can be believed.
    pub(super) fn resolve(&self, committed: &[Committed]) -> Option<bool> {
        let pairs =
            || self.inputs.iter().map(|lane| &lane.input).zip(committed).filter(|(input, _)| input.has_progress());
        let now = |found: &Committed| found.offset.unwrap_or(-1);
        if pairs().all(|(input, found)| now(found) == input.offset().offset) {
            return Some(true);
        }
        pairs().all(|(input, found)| now(found) == input.committed()).then_some(false)
    }

    pub(super) fn into_sources(self) -> Vec<Box<dyn Source>> {
        self.inputs.into_iter().map(|lane| lane.input.into_source()).collect()
    }

    pub(super) fn settle(&mut self) {
        for lane in &mut self.inputs {
            lane.input.settle();
            lane.excluded = lane.excluded.split_off(&lane.input.committed());
        }
    }

    pub(super) fn rewind(&mut self) {
        for lane in &mut self.inputs {
            lane.pending = None;
            lane.input.rewind(lane.start);
        }
    }
}

impl Lane {
    fn next(&mut self, index: usize, limit: FetchLimit, fresh: (Batch, i64)) -> Result<(Next, Batch), Fault> {
        let (mut batch, now) = fresh;
        let batch = match self.pending.take() {
            Some(pending) => pending,
            None => {
                batch.clear();
                (batch.input, batch.partition, batch.now) =
                    (index as u32, self.input.partition().partition as u32, now);
                self.input.fetch(&mut batch, limit)?;
                batch
            }
        };
        if batch.is_empty() {
            self.input.pass_gaps();
            return Ok((Next::Nothing, batch));
        }
        Ok((self.cut(batch, limit.records), Batch::default()))
    }

    /// The head of `batch`: no more than `most`, and ending before a record that failed already. The rest stays pending.
    fn cut(&mut self, batch: Batch, most: usize) -> Next {
        let failed = self.first_failed(&batch);
        let take = match failed {
            Some(0) => 1,
            Some(at) => at.min(most),
            None => batch.len().min(most),
        };
        let failure = failed.filter(|&at| at == 0).and_then(|_| self.excluded.get(&batch.offsets[0]).cloned());
        let head = if take < batch.len() {
            self.pending = Some(batch.slice(take..batch.len()));
            batch.slice(0..take)
        } else {
            batch
        };
        match failure {
            Some(failure) => Next::Failed(head, failure),
            None => Next::Call(head),
        }
    }

    fn first_failed(&self, batch: &Batch) -> Option<usize> {
        if self.excluded.is_empty() {
            return None;
        }
        batch.offsets.iter().position(|offset| self.excluded.contains_key(offset))
    }

    fn put_back(&mut self, mut batch: Batch) {
        if let Some(later) = self.pending.take() {
            later.iter().for_each(|(offset, record)| batch.push(offset, record));
        }
        self.pending = Some(batch);
    }
}
