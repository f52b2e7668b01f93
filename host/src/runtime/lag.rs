//! How far groups are behind the ends of their inputs, over all hosts: asked for every few seconds, and sooner where somebody wants to
//! know. Offsets that hold no records (transaction markers, what was aborted, what compaction took) are no lag once nothing else is left.

use super::Shared;
use super::assignment::Assignment;
use super::thread;
use crate::config::Start;
use crate::delivery;
use crate::model::log::{Committed, Ends, FetchLimit, Log};
use crate::model::{Batch, Clock, Fault, SystemClock, TopicPartition, ids};
use crate::task::ProcessorSpec;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Between two looks that nobody asked for.
const PACE: Duration = Duration::from_secs(5);
/// Between two looks, whoever asks.
const LEAST: Duration = Duration::from_millis(100);
/// How soon the thread sees that the host ends.
const LOOK_AROUND: Duration = Duration::from_millis(200);
/// What is older is no answer any more.
const STALE: Duration = Duration::from_secs(30);
/// So few offsets may well be markers only.
const FEW: i64 = 100;
/// Partitions that are read in one look, to see whether records are left; each takes a client of its own.
const PROBES: usize = 8;
/// How long one of them may take.
const PROBE: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_millis(100);

/// How far a group is behind in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionLag {
    pub place: TopicPartition,
    /// The group's committed offset; `None` where it has none, or could not be asked.
    pub committed: Option<i64>,
    /// The end as readers of committed records see it; `None` where the cluster could not be asked.
    pub end: Option<i64>,
    /// Offsets between the two, from the first record on; `None` where that is not known.
    pub lag: Option<i64>,
    /// Records that wait by key: the committed offset is past them.
    pub parked: u64,
}

/// What is known of a processor's partitions.
pub type ProcessorLag = (Arc<str>, Vec<PartitionLag>);

/// What was seen last.
#[derive(Default)]
pub struct Lags {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    processors: Arc<Vec<ProcessorLag>>,
    /// Looks so far, and when the last one began on the monotonic clock.
    looks: u64,
    seen: Duration,
    wanted: bool,
    looking: bool,
}

impl Lags {
    /// What was seen last, where that is not too old: every processor in the file's order.
    pub fn read(&self, now: Duration) -> Arc<Vec<ProcessorLag>> {
        let state = self.lock();
        if now.saturating_sub(state.seen) > STALE { Arc::default() } else { state.processors.clone() }
    }

    /// What a look sees that begins after this call; nothing where none ends within `patience`.
    pub fn fresh(&self, clock: &dyn Clock, patience: Duration) -> Arc<Vec<ProcessorLag>> {
        let mut state = self.lock();
        let end = clock.monotonic() + patience;
        // one that is under way may have asked already
        let goal = state.looks + 1 + u64::from(state.looking);
        state.wanted = true;
        self.changed.notify_all();
        while state.looks < goal && clock.monotonic() < end {
            let left = end.saturating_sub(clock.monotonic());
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.looks < goal { Arc::default() } else { state.processors.clone() }
    }

    fn renew(&self, processors: Vec<ProcessorLag>, seen: Duration) {
        let mut state = self.lock();
        (state.processors, state.seen, state.looks) = (Arc::new(processors), seen, state.looks + 1);
        state.looking = false;
        self.changed.notify_all();
    }

    /// Whether a look is due at `now`; if not, waits a moment.
    fn begin(&self, now: Duration) -> bool {
        let mut state = self.lock();
        let since = now.saturating_sub(state.seen);
        let due = state.looks == 0 || since >= PACE || state.wanted && since >= LEAST;
        if due {
            (state.wanted, state.looking) = (false, true);
            return true;
        }
        let nap = if state.wanted { LEAST.saturating_sub(since).min(LOOK_AROUND) } else { LOOK_AROUND };
        drop(self.changed.wait_timeout(state, nap));
        false
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at its pace until the host ends.
pub(super) fn start(shared: Arc<Shared>, assignments: Vec<Arc<Assignment>>) -> Result<JoinHandle<()>, Fault> {
    let look = move || {
        let mut probes = Probes::default();
        while !shared.ending.is_stopping() {
            let now = shared.clock.monotonic();
            if shared.lags.begin(now) {
                let found = look_at_all(&shared, &assignments, &mut probes);
                shared.lags.renew(found, now);
            }
        }
    };
    thread::start("lag", "the thread that asks for lags", look)
}

fn look_at_all(shared: &Shared, assignments: &[Arc<Assignment>], probes: &mut Probes) -> Vec<ProcessorLag> {
    let mut answers = true;
    probes.left = PROBES;
    let look = |assignment: &Arc<Assignment>| {
        let (spec, ours) = (assignment.spec(), assignment.partitions().into_iter().collect());
        let watched = Watched::of(&shared.application.id, spec);
        // one question without an answer is enough: the others would only wait as long
        answers = answers && !shared.ending.is_stopping();
        let found = answers.then(|| watched.look(&*shared.log, &ours, probes).ok()).flatten();
        answers = found.is_some();
        (spec.name.clone(), found.unwrap_or_else(|| watched.unknown()))
    };
    assignments.iter().map(look).collect()
}

/// A group and what it reads.
struct Watched {
    group: String,
    places: Vec<(TopicPartition, Start)>,
}

impl Watched {
    fn of(application: &str, spec: &ProcessorSpec) -> Watched {
        let all =
            |topic: &Arc<str>| (0..spec.partitions).map(|p| TopicPartition::new(topic.clone(), p)).collect::<Vec<_>>();
        let places =
            spec.inputs.iter().flat_map(|input| all(&input.topic).into_iter().map(|place| (place, input.start)));
        Watched { group: ids::group(application, &spec.name), places: places.collect() }
    }

    /// `ours`: the partitions that this host works on; those get past markers by themselves.
    fn look(&self, log: &dyn Log, ours: &BTreeSet<i32>, probes: &mut Probes) -> Result<Vec<PartitionLag>, Fault> {
        let places: Vec<TopicPartition> = self.places.iter().map(|(place, _)| place.clone()).collect();
        let committed = log.committed(&self.group, &places)?;
        let ends = log.ends_of(&places)?;
        let all = self.places.iter().zip(committed).zip(ends);
        Ok(all
            .map(|(((place, start), committed), ends)| {
                let next = next(*start, &committed, &ends);
                let first = probes.first(log, place, (next, ends.stable), ours.contains(&place.partition));
                PartitionLag {
                    place: place.clone(),
                    committed: committed.offset,
                    end: Some(ends.stable),
                    lag: Some((ends.stable - first).max(0)),
                    parked: delivery::parked(&committed.metadata) as u64,
                }
            })
            .collect())
    }

    fn unknown(&self) -> Vec<PartitionLag> {
        let unknown = |(place, _): &(TopicPartition, Start)| PartitionLag {
            place: place.clone(),
            committed: None,
            end: None,
            lag: None,
            parked: 0,
        };
        self.places.iter().map(unknown).collect()
    }
}

/// The next offset that the group reads.
fn next(start: Start, committed: &Committed, ends: &Ends) -> i64 {
    let otherwise = match start {
        Start::Earliest => ends.start,
        Start::Latest => ends.stable,
    };
    committed.offset.unwrap_or(otherwise).max(ends.start)
}

/// What is known of offsets that may hold no records.
#[derive(Default)]
struct Probes {
    known: HashMap<TopicPartition, Probe>,
    /// Next offset and end at the last look.
    before: HashMap<TopicPartition, (i64, i64)>,
    /// Partitions that may still be read in this look.
    left: usize,
}

/// From `next` to `first` there are no records.
#[derive(Clone, Copy)]
struct Probe {
    next: i64,
    first: i64,
    /// Whether there is one at `first`.
    record: bool,
}

impl Probes {
    /// The first offset from `next` on that may hold a record; the end where none does. What moves is not looked at closely.
    fn first(&mut self, log: &dyn Log, place: &TopicPartition, (next, end): (i64, i64), ours: bool) -> i64 {
        if next >= end {
            return end;
        }
        let same = self.before.insert(place.clone(), (next, end)) == Some((next, end));
        let known = self.known.get(place).copied().filter(|known| known.next == next);
        let from = known.map_or(next, |known| known.first);
        let settled = from >= end || known.is_some_and(|known| known.record);
        let worth = same || !ours && end - from <= FEW;
        if settled || !worth || self.left == 0 {
            return from;
        }
        self.left -= 1;
        let Ok((first, record)) = probe(log, place, (from, end)) else { return from };
        self.known.insert(place.clone(), Probe { next, first, record });
        first
    }
}

/// The first record between two offsets and true, or how far there is none.
fn probe(log: &dyn Log, place: &TopicPartition, (from, end): (i64, i64)) -> Result<(i64, bool), Fault> {
    let clock = SystemClock::default();
    let (mut source, mut batch) = (log.reader(place, from)?, Batch::default());
    let one = FetchLimit { records: 1, bytes: 1 };
    while source.position() < end && clock.monotonic() < PROBE {
        source.fetch(&mut batch, one, WAIT)?;
        if let Some(&offset) = batch.offsets.first() {
            return Ok((offset.min(end), offset < end));
        }
        if source.at_end() {
            return Ok((end, false));
        }
    }
    Ok((source.position().clamp(from, end), false))
}
