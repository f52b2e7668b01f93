//! Reading stores: by the worker that has the task, between two of its turns, a bounded piece at a time.

use super::state::{Answer, Entry, Get, Page, Scan, Value};
use super::{Control, Running};
use crate::model::manifest::{Scope, StoreSpec};
use crate::model::state::ScanRange;
use crate::model::{Fault, TaskId, partition_for_key};
use crate::runtime::assignment::{Assignment, Held};
use crate::state::CommittedPage;
use crate::task::{ProcessorSpec, Task};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a worker is waited for.
const WORKER: Duration = Duration::from_secs(2);
/// Most entries of a page, and most bytes of their keys and values: a task's turn waits for it.
const MOST_ENTRIES: u32 = 1000;
const MOST_BYTES: u32 = 256 << 10;

impl Control {
    /// The committed value of a key. Without a partition that is looked for where Kafka's default partitioner puts the key; in a store
    /// of the scope of a partition, whose keys say nothing of that, in all partitions of this host.
    ///
    /// `Fatal`: `processor-unknown`, `store-unknown`, `partition-unknown`. `Transient`: `state-not-here-yet`, `state-busy`.
    pub fn get(&self, ask: &Get) -> Result<Answer<Value>, Fault> {
        let reading = self.running()?.reading(&ask.processor, &ask.store, ask.partition)?;
        let home = partition_for_key(&ask.key, reading.spec().partitions);
        match (ask.partition, reading.store.scope) {
            (Some(partition), _) => reading.get(partition, &ask.key),
            (None, Scope::Key) => reading.get(home, &ask.key),
            (None, Scope::Partition) => reading.search(home, &ask.key),
        }
    }

    /// Committed entries, a page at a time. Faults as of [`Control::get`].
    pub fn scan(&self, ask: &Scan) -> Result<Answer<Page>, Fault> {
        let reading = self.running()?.reading(&ask.processor, &ask.store, ask.partition)?;
        if let Some(partition) = ask.partition.filter(|partition| !reading.here().contains(partition)) {
            return reading.elsewhere(partition);
        }
        reading.scan(ask).map(Answer::Here)
    }
}

impl Running {
    /// Finds what is to be read.
    fn reading(&self, processor: &str, store: &str, partition: Option<i32>) -> Result<Reading<'_>, Fault> {
        let known = self.assignments.iter().find(|assignment| *assignment.spec().name == *processor);
        let assignment = known.ok_or_else(|| {
            let names: Vec<&str> = self.assignments.iter().map(|assignment| &*assignment.spec().name).collect();
            Fault::fatal("processor-unknown", format!("processor {processor}: there is none of this name"))
                .hint(format!("there are: {}", names.join(", ")))
        })?;
        let spec = assignment.spec();
        let found = spec.stores.iter().find(|known| known.name == store).cloned();
        let store = found.ok_or_else(|| unknown_store(spec, store))?;
        if let Some(partition) = partition.filter(|partition| !(0..spec.partitions).contains(partition)) {
            let message = format!("processor {processor}: there is no partition {partition}");
            return Err(
                Fault::fatal("partition-unknown", message).hint(format!("it has {}, from 0 on", spec.partitions))
            );
        }
        Ok(Reading { running: self, assignment, store })
    }
}

fn unknown_store(spec: &ProcessorSpec, store: &str) -> Fault {
    let names: Vec<&str> = spec.stores.iter().map(|store| store.name.as_str()).collect();
    let hint = if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) };
    Fault::fatal("store-unknown", format!("processor {}: there is no store {store}", spec.name)).hint(hint)
}

/// A store of one processor being read.
struct Reading<'a> {
    running: &'a Running,
    assignment: &'a Assignment,
    store: StoreSpec,
}

impl Reading<'_> {
    fn spec(&self) -> &Arc<ProcessorSpec> {
        self.assignment.spec()
    }

    /// Partitions that this host has, in order.
    fn here(&self) -> Vec<i32> {
        self.assignment.held().into_keys().collect()
    }

    fn get(&self, partition: i32, key: &[u8]) -> Result<Answer<Value>, Fault> {
        let (store, key) = (self.store.name.clone(), key.to_vec());
        match self.ask(partition, move |task| task.committed_value(&store, &key))? {
            Some(value) => Ok(Answer::Here(Value { partition, value })),
            None => self.elsewhere(partition),
        }
    }

    /// The first partition of this host that has the key. Where none has it, `home` is said to lack it, unless others may have it.
    fn search(&self, home: i32, key: &[u8]) -> Result<Answer<Value>, Fault> {
        let here = self.here();
        for &partition in &here {
            let found = self.get(partition, key)?;
            if matches!(&found, Answer::Here(Value { value: Some(_), .. })) {
                return Ok(found);
            }
        }
        match (0..self.spec().partitions).find(|partition| !here.contains(partition)) {
            Some(missing) => self.elsewhere(missing),
            None => Ok(Answer::Here(Value { partition: home, value: None })),
        }
    }

    fn scan(&self, ask: &Scan) -> Result<Page, Fault> {
        let mut page = Page::default();
        let mut left = most(&ask.range);
        let first = ask.from.as_ref().map_or(0, |(partition, _)| *partition);
        let wanted = |partition: &i32| *partition >= first && ask.partition.is_none_or(|only| only == *partition);
        for partition in self.here().into_iter().filter(wanted) {
            let from = ask.from.as_ref().filter(|(at, _)| *at == partition).map(|(_, key)| &**key);
            let range = going_on(&left, from);
            let store = self.store.name.clone();
            let Some(found) = self.ask(partition, move |task| task.committed_page(&store, &range))? else { continue };
            if let Some(next) = page.take(partition, found, &mut left) {
                page.next = Some((partition, next));
                break;
            }
        }
        Ok(page)
    }

    /// Lets the worker that has the partition look into it. `None` where this host does not have it.
    fn ask<T: Send + 'static>(
        &self,
        partition: i32,
        look: impl FnOnce(&Task) -> Result<Option<T>, Fault> + Send + 'static,
    ) -> Result<Option<T>, Fault> {
        let id = TaskId { processor: self.spec().name.clone(), partition };
        let worker = match self.assignment.held_at(partition) {
            None => return Ok(None),
            Some(Held::Working(worker)) => worker,
            Some(Held::Opening | Held::InPart) => return Err(self.not_yet(&id)),
        };
        let of = id.clone();
        let answer = worker.ask(move |tasks| tasks.iter().find(|task| task.id == of).map(look));
        match answer.recv_timeout(WORKER) {
            Ok(Some(found)) => found?.map(Some).ok_or_else(|| unknown_store(self.spec(), &self.store.name)),
            Ok(None) => Err(self.not_yet(&id)),
            Err(_) => {
                let message = format!("task {id}: its worker does not answer just now");
                Err(Fault::transient("state-busy", message)
                    .hint("ask again; status tells for how long it has been silent"))
            }
        }
    }

    fn not_yet(&self, id: &TaskId) -> Fault {
        let reason = self.running.shared.health.reason(&format!("task {id}"));
        let reason = reason.unwrap_or_else(|| "it is being opened".to_owned());
        Fault::transient("state-not-here-yet", format!("task {id}: {reason}")).hint("ask again once it runs")
    }

    /// Who has a partition that this host does not have.
    fn elsewhere<T>(&self, partition: i32) -> Result<Answer<T>, Fault> {
        let shared = &self.running.shared;
        let id = TaskId { processor: self.spec().name.clone(), partition };
        let mut directory = self.running.directory.lock().unwrap_or_else(PoisonError::into_inner);
        let found = directory.find(&*shared.log, &shared.application.id, &id);
        drop(directory);
        let holder = found.unwrap_or_else(|fault| {
            tracing::debug!(task = %id, %fault, "looking up who has it");
            None
        });
        // what this host said when it had it says nothing of who has it now
        match holder.filter(|holder| holder.instance != shared.instance) {
            Some(holder) => {
                let (instance, address) = (Some(holder.instance), Some(holder.address));
                Ok(Answer::Elsewhere { partition, instance, address })
            }
            None if self.assignment.partitions().is_empty() => {
                let message = format!("task {id}: this host has no partitions yet: it waits for its consumer group");
                Err(Fault::transient("state-not-here-yet", message).hint("ask again once it has some"))
            }
            None => Ok(Answer::Elsewhere { partition, instance: None, address: None }),
        }
    }
}

impl Page {
    /// Takes what was found in a partition. The first key that has no room.
    fn take(&mut self, partition: i32, found: CommittedPage, left: &mut ScanRange) -> Option<Vec<u8>> {
        let begun = !self.entries.is_empty();
        self.partitions.push(partition);
        let mut fields = found.entries.iter().map(|field| field.unwrap_or_default().to_vec());
        while let (Some(key), Some(value)) = (fields.next(), fields.next()) {
            let bytes = u32::try_from(key.len() + value.len()).unwrap_or(u32::MAX);
            // one entry is taken however large, and not one of each partition
            if begun && bytes > left.max_bytes {
                return Some(key);
            }
            (left.limit, left.max_bytes) = (left.limit.saturating_sub(1), left.max_bytes.saturating_sub(bytes));
            self.entries.push(Entry { partition, key, value });
        }
        found.next
    }
}

/// A range within what a page may be.
fn most(range: &ScanRange) -> ScanRange {
    let within = |wanted: u32, most: u32| if wanted == 0 { most } else { wanted.min(most) };
    ScanRange {
        limit: within(range.limit, MOST_ENTRIES),
        max_bytes: within(range.max_bytes, MOST_BYTES),
        ..range.clone()
    }
}

/// The range from a key on, in its direction.
fn going_on(range: &ScanRange, from: Option<&[u8]>) -> ScanRange {
    let mut range = range.clone();
    match from {
        Some(key) if range.reverse => {
            let behind = [key, &[0]].concat();
            range.end = Some(match range.end {
                Some(end) => end.min(behind),
                None => behind,
            });
        }
        Some(key) => range.start = range.start.max(key.to_vec()),
        None => {}
    }
    range
}
