//! Where hosts can be asked for what they hold: each tells the others in a compacted topic when it opens a task, on a thread of its
//! own, and reads there on demand. What cannot be told is told later, and holds up nobody.

use super::Shared;
use super::thread;
use crate::model::log::{Delivery, FetchLimit, Log, Origin, TopicSpec};
use crate::model::{Batch, Clock, Fault, HeadersRef, RecordRef, SystemClock, TaskId, TopicPartition, ids};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon the thread sees that the host ends.
const LOOK_AROUND: Duration = Duration::from_millis(200);
/// How long reading the topic may take.
const READ: Duration = Duration::from_secs(3);
const FETCH: FetchLimit = FetchLimit { records: 5_000, bytes: 4 << 20 };
/// How many of these pass before something that failed is tried again.
const PAUSES: usize = 25;

/// What this host has to tell of itself.
#[derive(Default)]
pub struct Hosts {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Where this host can be asked; nothing is told before that is known.
    address: Option<String>,
    open: BTreeSet<TaskId>,
    /// What was not told yet.
    due: BTreeSet<TaskId>,
}

/// Who has a task, and where to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) instance: String,
    pub(super) address: String,
    /// When it was told, in milliseconds since the epoch.
    pub(super) time_ms: i64,
}

/// What was read of the topic so far.
#[derive(Default)]
pub(super) struct Directory {
    /// Of the topic that was read.
    topic_id: String,
    next: i64,
    holders: HashMap<Vec<u8>, Holder>,
}

/// The topic: one small record per task.
pub(super) fn topic(application: &str) -> TopicSpec {
    let properties = vec![("cleanup.policy".to_owned(), "compact".to_owned())];
    TopicSpec { name: ids::hosts_topic(application), partitions: 1, replication: None, properties }
}

impl Hosts {
    /// This host can be asked at `address`, or at another one than before.
    pub fn listens_at(&self, address: String) {
        let mut state = self.lock();
        if state.address.as_ref() != Some(&address) {
            state.address = Some(address);
            state.due = state.open.clone();
            self.changed.notify_all();
        }
    }

    /// This host has a task.
    pub fn opened(&self, task: &TaskId) {
        let mut state = self.lock();
        state.open.insert(task.clone());
        state.due.insert(task.clone());
        self.changed.notify_all();
    }

    /// This host has a task no more. Whoever has it next will say so.
    pub fn closed(&self, task: &TaskId) {
        let mut state = self.lock();
        state.open.remove(task);
        state.due.remove(task);
    }

    /// What is to be told now, and as of when it is taken for told. Waits a moment for it.
    fn due(&self) -> Option<(String, BTreeSet<TaskId>)> {
        let quiet = |state: &mut State| state.address.is_none() || state.due.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), LOOK_AROUND, quiet);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let address = state.address.clone().filter(|_| !state.due.is_empty())?;
        Some((address, std::mem::take(&mut state.due)))
    }

    /// What could not be told is due again, as far as it still holds.
    fn put_back(&self, tasks: BTreeSet<TaskId>) {
        let mut state = self.lock();
        let still: Vec<TaskId> = tasks.into_iter().filter(|task| state.open.contains(task)).collect();
        state.due.extend(still);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory {
    /// Who has said last that it has the task. Reads what is new in the topic; nothing where there is no such topic.
    pub(super) fn find(&mut self, log: &dyn Log, application: &str, task: &TaskId) -> Result<Option<Holder>, Fault> {
        let name = ids::hosts_topic(application);
        let Some(info) = log.topic(&name)? else { return Ok(None) };
        if info.id != self.topic_id {
            *self = Directory { topic_id: info.id, ..Directory::default() };
        }
        let partition = TopicPartition::new(name, 0);
        let ends = log.ends(&partition)?;
        if self.next.max(ends.start) < ends.stable {
            self.read(log, &partition, (self.next.max(ends.start), ends.stable))?;
        }
        Ok(self.holders.get(task.to_string().as_bytes()).cloned())
    }

    fn read(&mut self, log: &dyn Log, partition: &TopicPartition, (from, to): (i64, i64)) -> Result<(), Fault> {
        let (clock, mut batch) = (SystemClock::default(), Batch::default());
        let mut source = log.reader(partition, from)?;
        while source.position() < to && !source.at_end() {
            if clock.monotonic() > READ {
                return Err(Fault::transient("read-silent", format!("reading {partition}: no answer in time")));
            }
            batch.clear();
            source.fetch(&mut batch, FETCH, LOOK_AROUND)?;
            batch.iter().for_each(|(_, record)| self.take(record));
            self.next = source.position();
        }
        Ok(())
    }

    /// What cannot be read tells of nobody.
    fn take(&mut self, record: RecordRef<'_>) {
        let Some(key) = record.key else { return };
        match record.value.and_then(|value| serde_json::from_slice(value).ok()) {
            Some(holder) => drop(self.holders.insert(key.to_vec(), holder)),
            None => drop(self.holders.remove(key)),
        }
    }
}

/// Tells of this host's tasks until it ends.
pub(super) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, Fault> {
    let tell = move || {
        let mut failing = false;
        while !shared.ending.is_stopping() {
            let Some((address, tasks)) = shared.hosts.due() else { continue };
            match write(&shared, &address, &tasks) {
                Ok(()) => failing = false,
                Err(fault) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%fault, "other hosts cannot be told where this one is; trying again");
                    }
                    shared.hosts.put_back(tasks);
                    (0..PAUSES)
                        .take_while(|_| !shared.ending.is_stopping())
                        .for_each(|_| std::thread::park_timeout(LOOK_AROUND));
                }
            }
        }
    };
    thread::start("hosts", "the thread that tells of this host", tell)
}

/// With a producer of its own each time: it is needed seldom, and one that is idle for days is one more thing that may break.
fn write(shared: &Shared, address: &str, tasks: &BTreeSet<TaskId>) -> Result<(), Fault> {
    let application = &shared.application.id;
    let id = ids::hosts_id(application, &shared.instance);
    let mut producer = shared.log.producer(&id, Delivery::AtLeastOnce)?;
    let topic = producer.topic(&ids::hosts_topic(application))?;
    producer.begin()?;
    for task in tasks {
        let (key, holder) = (
            task.to_string(),
            Holder { instance: shared.instance.clone(), address: address.to_owned(), time_ms: shared.clock.wall_ms() },
        );
        let value = serde_json::to_vec(&holder).unwrap_or_default();
        let (key, value, headers) = (Some(key.as_bytes()), Some(&*value), HeadersRef::default());
        let record = RecordRef { key, value, headers, timestamp: holder.time_ms };
        producer.send(topic, Some(0), record, Origin { slot: 0, input: 0, offset: 0 })?;
    }
    let refused = producer.flush()?;
    match refused.into_iter().next() {
        None => producer.commit(),
        Some(refusal) => {
            Err(Fault::transient("hosts-refused", format!("telling where this host is: {}", refusal.message)))
        }
    }
}
