//! The versions of a processor's plugin in this process: the one that tasks are to run, and whether they are to run at all. Set by
//! whoever follows the application's versions, looked at by every task between two calls.

use crate::delivery::Plugin;
use crate::model::manifest::Manifest;
use crate::plugin::Component;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One version of a processor's plugin.
#[derive(Debug)]
pub struct Version {
    /// Grows with every version of the processor, on all hosts alike; 0 before any is known.
    pub sequence: i64,
    pub component: Arc<Component>,
    /// The version before it, where this one is on probation.
    pub former: Option<Arc<Component>>,
    /// Until when, in milliseconds since the epoch.
    pub probation_until_ms: i64,
}

/// A version that failed within its probation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub sequence: i64,
    pub reason: String,
}

/// What the tasks of a processor are to run.
pub struct Versions {
    sequence: AtomicI64,
    paused: AtomicBool,
    current: Mutex<Arc<Version>>,
    failed: Mutex<Option<Failed>>,
    /// What the tasks of this process run, by partition.
    running: Mutex<BTreeMap<i32, i64>>,
}

impl Version {
    /// What dead letters say of the plugin.
    pub fn plugin(&self) -> Plugin<'_> {
        let Manifest { name, version, .. } = &self.component.manifest;
        Plugin { name, version, digest: &self.component.digest }
    }

    /// Whether a failure at `now_ms` of the wall clock takes it back.
    pub fn is_on_probation(&self, now_ms: i64) -> bool {
        self.former.is_some() && now_ms < self.probation_until_ms
    }
}

impl Versions {
    pub fn new(component: Arc<Component>) -> Versions {
        let first = Version { sequence: 0, component, former: None, probation_until_ms: 0 };
        Versions {
            sequence: AtomicI64::new(0),
            paused: AtomicBool::new(false),
            current: Mutex::new(Arc::new(first)),
            failed: Mutex::default(),
            running: Mutex::default(),
        }
    }

    pub fn current(&self) -> Arc<Version> {
        lock(&self.current).clone()
    }

    /// The sequence of the current version, without a lock.
    pub fn sequence(&self) -> i64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Tasks change to `version` at their next batch.
    pub fn set(&self, version: Version) {
        let mut current = lock(&self.current);
        self.sequence.store(version.sequence, Ordering::Release);
        *current = Arc::new(version);
    }

    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Says whether that is new.
    pub fn pause(&self, paused: bool) -> bool {
        self.paused.swap(paused, Ordering::AcqRel) != paused
    }

    /// A task could not go on with a version that is on probation. The first failure counts.
    pub fn fail(&self, sequence: i64, reason: String) {
        let mut failed = lock(&self.failed);
        if failed.as_ref().is_none_or(|known| known.sequence < sequence) {
            *failed = Some(Failed { sequence, reason });
        }
    }

    /// The current version's failure, where it has one.
    pub fn failed(&self) -> Option<Failed> {
        self.last_failure(self.sequence())
    }

    /// A version's failure, if it was the last one to have one.
    pub fn last_failure(&self, sequence: i64) -> Option<Failed> {
        lock(&self.failed).clone().filter(|failed| failed.sequence == sequence)
    }

    /// Whether every task of this process runs a version, or a later one.
    pub fn is_everywhere(&self, sequence: i64) -> bool {
        lock(&self.running).values().all(|running| *running >= sequence)
    }

    /// What the task of a partition runs; `None` where it runs nothing any more.
    pub(super) fn runs(&self, partition: i32, sequence: Option<i64>) {
        let mut running = lock(&self.running);
        match sequence {
            Some(sequence) => drop(running.insert(partition, sequence)),
            None => drop(running.remove(&partition)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
