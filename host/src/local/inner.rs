//! What all handles of one embedded log share: its database, its topics in memory, its locks.
//!
//! Two locks, taken in this order: `commit` (held over a write, so that offsets are given out in the order of the log) and
//! `state` (held briefly; waiting readers sleep on it).

use super::clean::Cleaner;
use super::storage::Storage;
use super::topic::{self, Topic, TopicRecord};
use crate::model::folder::{FolderError, FolderLock};
use crate::model::log::TopicSpec;
use crate::model::{Clock, Fault};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The database within the log's folder.
pub(super) const DATABASE: &str = "db";

pub(super) struct Inner {
    pub(super) storage: Storage,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) commit: Mutex<Cleaner>,
    state: Mutex<State>,
    /// Records have come, or a group has become free.
    changed: Condvar,
    numbers: AtomicU64,
    // Last, so that the folder is given free when the database is closed.
    _lock: FolderLock,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) topics: HashMap<String, Arc<Topic>>,
    next_number: u32,
    /// Producer id and the number of its last owner.
    pub(super) producers: HashMap<String, u64>,
    /// Group and the member that has its partitions.
    pub(super) groups: HashMap<String, u64>,
}

/// The logs that this process has open, by folder: handles share them.
static OPEN: Mutex<Vec<(PathBuf, Weak<Inner>)>> = Mutex::new(Vec::new());

impl Inner {
    pub(super) fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Arc<Inner>, Fault> {
        let mut open = lock(&OPEN);
        open.retain(|(_, log)| log.strong_count() > 0);
        let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        if let Some(log) = open.iter().find(|(known, _)| *known == path).and_then(|(_, log)| log.upgrade()) {
            return Ok(log);
        }
        let log = Arc::new(Inner::load(dir, clock)?);
        let path = dir.canonicalize().unwrap_or(path);
        open.push((path, Arc::downgrade(&log)));
        Ok(log)
    }

    fn load(dir: &Path, clock: Arc<dyn Clock>) -> Result<Inner, Fault> {
        let folder = FolderLock::take(dir).map_err(|error| refused(dir, error))?;
        let storage = Storage::open(&dir.join(DATABASE))?;
        let topics = storage.topics()?.into_iter().map(|topic| (topic.name.to_string(), Arc::new(topic))).collect();
        let state = State { topics, next_number: storage.next_number()?, ..State::default() };
        Ok(Inner {
            storage,
            clock,
            commit: Mutex::new(Cleaner::default()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            numbers: AtomicU64::new(1),
            _lock: folder,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A number that nobody else has: of a producer, a member or a reader.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn topic(&self, name: &str) -> Option<Arc<Topic>> {
        self.state().topics.get(name).cloned()
    }

    pub(super) fn existing(&self, name: &str) -> Result<Arc<Topic>, Fault> {
        self.topic(name).ok_or_else(|| topic::missing(name))
    }

    pub(super) fn create(&self, spec: &TopicSpec) -> Result<(), Fault> {
        let _commit = lock(&self.commit);
        let mut state = self.state();
        if state.topics.contains_key(&spec.name) {
            return Ok(());
        }
        check_spec(spec)?;
        let record = TopicRecord::new(state.next_number, spec);
        let partitions = (0..spec.partitions).map(|_| topic::Partition::default()).collect();
        let topic = Topic::new(&spec.name, record, partitions)?;
        self.storage.create(&spec.name, &topic.record)?;
        state.next_number += 1;
        state.topics.insert(spec.name.clone(), Arc::new(topic));
        Ok(())
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), Fault> {
        let mut cleaner = lock(&self.commit);
        let topic = self.existing(name)?;
        self.storage.delete(&topic)?;
        topic.deleted.store(true, Ordering::Release);
        cleaner.forget(&topic);
        self.state().topics.remove(name);
        self.notify();
        Ok(())
    }

    /// Wakes those who wait in [`Inner::wait_while`]. What they wait for must have been stored before.
    pub(super) fn notify(&self) {
        drop(self.state());
        self.changed.notify_all();
    }

    /// Sleeps for at most `wait`, as long as `nothing` holds.
    pub(super) fn wait_while(&self, wait: Duration, nothing: impl Fn(&State) -> bool) {
        if !wait.is_zero() {
            let wake = self.changed.wait_timeout_while(self.state(), wait, |state| nothing(state));
            drop(wake.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// A panic elsewhere leaves our maps whole: each change is one step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kafka's rules for names.
fn check_spec(spec: &TopicSpec) -> Result<(), Fault> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = &spec.name;
    if name.is_empty() || name.len() > 249 || !name.chars().all(legal) || [".", ".."].contains(&name.as_str()) {
        return Err(Fault::fatal("topic-name", format!("{name:?} cannot be the name of a topic"))
            .hint("use up to 249 letters, digits, dots, dashes and underscores"));
    }
    if spec.partitions < 1 {
        let message = format!("topic {name} cannot have {} partitions", spec.partitions);
        return Err(Fault::fatal("topic-property", message).hint("give it one or more"));
    }
    Ok(())
}

fn refused(dir: &Path, error: FolderError) -> Fault {
    let dir = dir.display();
    match error {
        FolderError::Held(holder) => {
            Fault::fatal("log-in-use", format!("the embedded log in {dir} is in use by {holder}"))
                .hint("stop that process; the embedded log is for one process at a time")
        }
        FolderError::Io(error) => {
            Fault::fatal("log-not-writable", format!("the embedded log in {dir} cannot be used: {error}"))
                .hint("make it a folder that this user can write, or name another as dir under [log]")
        }
    }
}
