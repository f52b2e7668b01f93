//! From inputs to the next batch: what was put back comes first, then what the sources hold; records that failed already are met alone,
//! and one that is being retried is met first in its batch, at its time.

use super::Input;
use super::merge::merge;
use super::work::Moment;
use crate::delivery::Attempts;
use crate::model::log::{Committed, FetchLimit, OffsetCommit, Source};
use crate::model::{Batch, Failure, Fault, TopicPartition};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

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
    /// Stretches in which a record may have killed the host: met one by one.
    suspects: Vec<RangeInclusive<i64>>,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    Nothing,
    /// The next record waits for its retry until this moment of the monotonic clock, and everything behind it.
    Wait(Duration),
    Call(Batch),
    /// One record that failed already: it is not shown to the plugin again.
    Failed(Batch, Failure),
}

impl Intake {
    pub(super) fn new(inputs: Vec<Input>) -> Intake {
        let lane = |input: Input| Lane {
            start: input.next(),
            input,
            pending: None,
            excluded: BTreeMap::new(),
            suspects: Vec::new(),
        };
        Intake { inputs: inputs.into_iter().map(lane).collect(), turn: 0, spare: Batch::default() }
    }

    /// How many inputs there are.
    pub(super) fn len(&self) -> usize {
        self.inputs.len()
    }

    pub(super) fn on_ready(&mut self, wake: &Arc<dyn Fn() + Send + Sync>) {
        self.inputs.iter_mut().for_each(|lane| lane.input.on_ready(wake.clone()));
    }

    /// The next records of one input. One that is being retried comes before all others.
    pub(super) fn next(&mut self, limit: FetchLimit, now: Moment) -> Result<Next, Fault> {
        let first = self.inputs.iter().position(|lane| lane.input.retry().is_some()).unwrap_or(self.turn);
        for step in 0..self.inputs.len() {
            let index = (first + step) % self.inputs.len();
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
            lane.input.accept(batch.offsets[done - 1] + 1);
        }
        if done < batch.len() {
            lane.put_back(batch.slice(done..batch.len()));
        }
        batch.clear();
        self.spare = batch;
    }

    /// Nothing of `batch` was accepted: it is met again.
    pub(super) fn put_back(&mut self, batch: Batch) {
        if !batch.is_empty() {
            self.inputs[batch.input as usize].put_back(batch);
        }
    }

    /// Marks a record as failed. False where it was marked already.
    pub(super) fn exclude(&mut self, input: usize, offset: i64, failure: Failure) -> bool {
        self.inputs.get_mut(input).is_none_or(|lane| lane.excluded.insert(offset, failure).is_none())
    }

    /// Records of an input that are met one by one.
    pub(super) fn suspect(&mut self, input: usize, offsets: RangeInclusive<i64>) {
        self.inputs.iter_mut().skip(input).take(1).for_each(|lane| lane.suspects.push(offsets.clone()));
    }

    /// Every record of an input before `offset` is accepted.
    pub(super) fn pass(&mut self, input: u32, offset: i64) {
        self.inputs[input as usize].input.accept(offset);
    }

    /// The record, the next one of its input to be accepted, is tried again at `due` of the monotonic clock.
    pub(super) fn remember(&mut self, input: u32, attempts: Attempts, due: Duration) {
        self.inputs[input as usize].input.remember(attempts, due);
    }

    /// What is remembered of a record that failed before.
    pub(super) fn retried(&self, input: u32, offset: i64) -> Option<Attempts> {
        self.inputs.get(input as usize)?.input.retried(offset)
    }

    /// The record for whose retry the task waits, first of all.
    pub(super) fn retrying(&self) -> Option<Attempts> {
        self.inputs.iter().find_map(|lane| lane.input.retry()).map(|retry| retry.attempts)
    }

    pub(super) fn topic(&self, input: u32) -> &str {
        &self.inputs[input as usize].input.partition().topic
    }

    /// Every offset says which version of the plugin it was reached with.
    pub(super) fn tell_version(&mut self, sequence: i64) {
        self.inputs.iter_mut().for_each(|lane| lane.input.tell_version(sequence));
    }

    /// The first input's offset says how many records are parked.
    pub(super) fn tell_parked(&mut self, parked: usize) {
        self.inputs.iter_mut().take(1).for_each(|lane| lane.input.tell_parked(parked));
    }

    pub(super) fn has_progress(&self) -> bool {
        self.inputs.iter().any(|lane| lane.input.has_progress())
    }

    pub(super) fn at_end(&self) -> bool {
        self.inputs.iter().all(|lane| lane.pending.is_none() && lane.input.retry().is_none() && lane.input.at_end())
    }

    /// What a commit sends: of the inputs that moved, or of all where none did, so that the group has its say on every commit.
    pub(super) fn commits(&self) -> Vec<OffsetCommit> {
        let moved: Vec<OffsetCommit> = self.offsets().collect();
        if moved.is_empty() { self.inputs.iter().map(|lane| lane.input.offset()).collect() } else { moved }
    }

    pub(super) fn offsets(&self) -> impl Iterator<Item = OffsetCommit> {
        self.inputs.iter().filter(|lane| lane.input.has_progress()).map(|lane| lane.input.offset())
    }

    /// Every input's next offset, moved or not, with its topic.
    pub(super) fn positions(&self) -> Vec<(Arc<str>, i64)> {
        self.inputs.iter().map(|lane| (lane.input.partition().topic.clone(), lane.input.next())).collect()
    }

    /// Every input's topic, with the next offset of its last commit; `None` before the first.
    pub(super) fn committed(&self) -> Vec<(Arc<str>, Option<i64>)> {
        let committed = |input: &Input| (input.committed() >= 0).then(|| input.committed());
        self.inputs.iter().map(|lane| (lane.input.partition().topic.clone(), committed(&lane.input))).collect()
    }

    pub(super) fn partitions(&self) -> Vec<TopicPartition> {
        self.inputs.iter().map(|lane| lane.input.partition().clone()).collect()
    }

    /// What became of a commit whose outcome is unknown, from the group's committed offsets in the order of [`Intake::partitions`]:
    /// `Some(true)` committed, `Some(false)` aborted, `None` neither, or nothing was sent that would tell, so that nothing here can
    /// be believed.
    pub(super) fn resolve(&self, committed: &[Committed]) -> Option<bool> {
        let pairs =
            || self.inputs.iter().map(|lane| &lane.input).zip(committed).filter(|(input, _)| input.has_progress());
        pairs().next()?;
        if pairs().all(|(input, found)| input.is_at(found)) {
            return Some(true);
        }
        pairs().all(|(input, found)| input.is_behind(found)).then_some(false)
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
    fn next(&mut self, index: usize, limit: FetchLimit, fresh: (Batch, Moment)) -> Result<(Next, Batch), Fault> {
        let (mut batch, now) = fresh;
        if let Some(due) = self.input.meet(self.head(), now.monotonic) {
            return Ok((Next::Wait(due), batch));
        }
        let batch = match self.pending.take() {
            Some(pending) => pending,
            None => {
                batch.clear();
                (batch.input, batch.partition, batch.now) =
                    (index as u32, self.input.partition().partition as u32, now.wall_ms);
                self.input.fetch(&mut batch, limit)?;
                batch
            }
        };
        let Some(&head) = batch.offsets.first() else {
            self.input.pass_gaps();
            return Ok((Next::Nothing, batch));
        };
        if let Some(due) = self.input.meet(head, now.monotonic) {
            self.pending = Some(batch);
            return Ok((Next::Wait(due), Batch::default()));
        }
        Ok((self.cut(batch, limit.records), Batch::default()))
    }

    /// The next record, as far as one can know before it is fetched.
    fn head(&self) -> i64 {
        self.pending.as_ref().and_then(|batch| batch.offsets.first().copied()).unwrap_or_else(|| self.input.next())
    }

    /// The head of `batch`. The rest stays pending.
    fn cut(&mut self, batch: Batch, most: usize) -> Next {
        let take = self.reach(&batch.offsets, most);
        let mut head = if take < batch.len() {
            self.pending = Some(batch.slice(take..batch.len()));
            batch.slice(0..take)
        } else {
            batch
        };
        let first = head.offsets[0];
        head.attempt = self.input.retried(first).map_or(0, |attempts| attempts.count);
        match self.excluded.get(&first) {
            Some(failure) => Next::Failed(head, failure.clone()),
            None => Next::Call(head),
        }
    }

    /// How many records go together: no more than `most`; one that failed already or is under suspicion goes alone, and one that is
    /// being retried goes first.
    fn reach(&self, offsets: &[i64], most: usize) -> usize {
        let first = offsets[0];
        if self.excluded.contains_key(&first) || self.suspects.iter().any(|suspects| suspects.contains(&first)) {
            return 1;
        }
        let excluded = self.excluded.range(first..).next().map(|(&offset, _)| offset);
        let retried = self.input.retry_after(first);
        let suspects = self.suspects.iter().map(|suspects| *suspects.start());
        let before = |end: i64| offsets.partition_point(|&offset| offset < end);
        let ends = excluded.into_iter().chain(retried).chain(suspects).filter(|&end| end > first);
        ends.map(before).fold(offsets.len().min(most), usize::min)
    }

    fn put_back(&mut self, batch: Batch) {
        self.pending = Some(match self.pending.take() {
            Some(later) => merge(batch, later),
            None => batch,
        });
    }
}
