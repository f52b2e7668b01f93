//! Bringing a task's stores up to date with their changelogs, a batch at a time.

use super::plan::{Plan, Reason, plan};
use crate::model::log::{FetchLimit, Log, Source, TopicInfo};
use crate::model::{Batch, Clock, Fault, TopicPartition, Verdict, failpoint};
use crate::state::{StoreState, Stores};
use std::sync::Arc;
use std::time::Duration;

/// One write batch of a restore.
const BATCH: FetchLimit = FetchLimit { records: 10_000, bytes: 4 << 20 };

/// The restore of one task. Whoever owns the task calls [`Restore::step`] until it is done; between steps other work may run.
pub struct Restore {
    log: Arc<dyn Log>,
    clock: Arc<dyn Clock>,
    stores: Vec<StoreRestore>,
    batch: Batch,
    started: Duration,
    restored: u64,
}

struct StoreRestore {
    store: usize,
    place: TopicPartition,
    source: Box<dyn Source>,
    from: i64,
    /// The changelog's end as readers of uncommitted records saw it at the start.
    target: i64,
    /// When that was: the store has seen everything up to then once it is done.
    at_ms: i64,
    rebuilt: Option<Reason>,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again; so many records were applied. None while a transaction that holds up the changelog is open.
    More(usize),
    Done,
}

/// How far a restore is, over all stores of the task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Offsets passed and to pass; compacted gaps and markers count.
    pub done: u64,
    pub target: u64,
    /// Records applied.
    pub records: u64,
    pub records_per_second: f64,
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let left = self.target.saturating_sub(self.done);
        write!(f, "{} of {} offsets, {:.0} records/s", self.done, self.target, self.records_per_second)?;
        if self.records_per_second >= 1.0 && left > 0 {
            write!(f, ", {:.0} s left", left as f64 / self.records_per_second)?;
        }
        Ok(())
    }
}

impl Restore {
    /// Decides for every store how it gets up to date, and empties those that are rebuilt. `changelogs` in the stores' order; what
    /// stores of the names `new` hold may be lost.
    ///
    /// `Fatal`: `changelog-missing`, `changelog-recreated`, `changelog-truncated` (nothing has been changed then).
    pub fn start(
        log: Arc<dyn Log>,
        changelogs: &[TopicPartition],
        (stores, new): (&mut Stores, &[&str]),
        clock: Arc<dyn Clock>,
    ) -> Result<Restore, Fault> {
        let looks = changelogs.iter().enumerate();
        let now = clock.wall_ms();
        let looks: Vec<_> =
            looks.map(|(store, place)| look(&*log, (place, store), (stores, new), now)).collect::<Result<_, _>>()?;
        let restores =
            looks.into_iter().map(|look| begin(&*log, look, stores, clock.wall_ms())).collect::<Result<_, _>>()?;
        let started = clock.monotonic();
        Ok(Restore { log, clock, stores: restores, batch: Batch::default(), started, restored: 0 })
    }

    /// Applies one batch, waiting up to `wait` for its first record.
    ///
    /// `Transient` may pass: call again. After `Corrupt` and what the stores' faults say, start over.
    pub fn step(&mut self, stores: &mut Stores, wait: Duration) -> Result<Step, Fault> {
        let Some(at) = self.stores.iter().position(|store| !store.done) else { return Ok(Step::Done) };
        failpoint::hit("restore-batch");
        let restore = &mut self.stores[at];
        if restore.source.position() < restore.target {
            self.batch.clear();
            let count = restore.source.fetch(&mut self.batch, BATCH, wait).map_err(overtaken)?;
            if count > 0 {
                stores.restore(restore.store, &self.batch, restore.source.position())?;
                self.restored += count as u64;
            }
            if !restore.is_complete(&*self.log)? {
                return Ok(Step::More(count));
            }
        }
        restore.finish(stores)?;
        Ok(if self.stores.iter().all(|store| store.done) { Step::Done } else { Step::More(self.batch.len()) })
    }

    /// Runs to the end in one go, telling `progress` after each batch.
    pub fn run(
        &mut self,
        stores: &mut Stores,
        wait: Duration,
        mut progress: impl FnMut(Progress),
    ) -> Result<(), Fault> {
        while self.step(stores, wait)? != Step::Done {
            progress(self.progress());
        }
        progress(self.progress());
        Ok(())
    }

    pub fn progress(&self) -> Progress {
        let seconds = self.clock.monotonic().saturating_sub(self.started).as_secs_f64();
        let sum = |part: fn(&StoreRestore) -> i64| self.stores.iter().map(|store| part(store).max(0) as u64).sum();
        Progress {
            done: sum(|store| store.reached().min(store.target) - store.from),
            target: sum(|store| store.target - store.from),
            records: self.restored,
            records_per_second: if seconds > 0.0 { self.restored as f64 / seconds } else { 0.0 },
        }
    }

    /// The stores that were emptied first, by number, and why.
    pub fn rebuilt(&self) -> impl Iterator<Item = (usize, Reason)> + '_ {
        self.stores.iter().filter_map(|store| Some((store.store, store.rebuilt?)))
    }
}

impl StoreRestore {
    /// By position, so that markers, aborted records and a tail emptied by compaction end it too.
    fn is_complete(&self, log: &dyn Log) -> Result<bool, Fault> {
        if self.source.position() >= self.target {
            return Ok(true);
        }
        Ok(self.source.at_end() && log.ends(&self.place)?.stable >= self.target)
    }

    fn finish(&mut self, stores: &mut Stores) -> Result<(), Fault> {
        stores.caught_up(self.store, self.source.position().max(self.target), self.at_ms)?;
        self.done = true;
        Ok(())
    }

    fn reached(&self) -> i64 {
        if self.done { self.target } else { self.source.position() }
    }
}

/// A store beside its changelog, and what follows from that.
struct Look {
    store: usize,
    place: TopicPartition,
    topic_id: String,
    start: i64,
    target: i64,
    plan: Plan,
}

fn look(
    log: &dyn Log,
    (place, store): (&TopicPartition, usize),
    (stores, new): (&Stores, &[&str]),
    now_ms: i64,
) -> Result<Look, Fault> {
    let info: TopicInfo = log.topic(&place.topic)?.ok_or_else(|| missing(place))?;
    let ends = log.ends(place)?;
    let unknown = StoreState::default();
    let name = stores.specs().get(store).map(|spec| spec.name.as_str()).unwrap_or_default();
    let known = stores.applied().stores.get(name).unwrap_or(&unknown);
    let expendable = stores.is_empty(store)? || new.contains(&name);
    let plan = plan(known, expendable, (place, &info), ends, now_ms)?;
    Ok(Look { store, place: place.clone(), topic_id: info.id, start: ends.start, target: ends.end, plan })
}

fn begin(log: &dyn Log, look: Look, stores: &mut Stores, now_ms: i64) -> Result<StoreRestore, Fault> {
    let (from, rebuilt) = match look.plan {
        Plan::Resume(offset) => (offset, None),
        Plan::Rebuild(reason) => {
            tell(&look.place, reason);
            stores.rebuild(look.store, &look.topic_id, look.start, now_ms)?;
            (look.start, Some(reason))
        }
    };
    let source = log.reader(&look.place, from)?;
    let Look { store, place, target, .. } = look;
    Ok(StoreRestore { store, place, source, from, target, at_ms: now_ms, rebuilt, done: false })
}

fn tell(place: &TopicPartition, reason: Reason) {
    match reason {
        Reason::New => tracing::debug!(changelog = %place, %reason, "restoring a store"),
        _ => tracing::warn!(changelog = %place, %reason, "rebuilding a store from its changelog"),
    }
}

/// Cleaning may overtake a restore: the store is then rebuilt from what is there.
fn overtaken(fault: Fault) -> Fault {
    match fault.code {
        "offset-out-of-range" => Fault { verdict: Verdict::Corrupt, ..fault },
        _ => fault,
    }
}

fn missing(place: &TopicPartition) -> Fault {
    Fault::fatal("changelog-missing", format!("changelog topic {} does not exist", place.topic))
        .hint("it is created at start; if it was deleted, restart")
}
