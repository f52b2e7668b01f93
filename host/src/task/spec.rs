//! What a task is told of its processor, and the proof that it still owns its partition.

use super::{OutTopic, Versions, park};
use crate::config::{self, DeadLetters, Limits, Parking, Retry, Start};
use crate::delivery::{Failures, LetterGate, LetterNews, Mishap, News};
use crate::metrics::ProcessorMetrics;
use crate::model::log::Delivery;
use crate::model::manifest::StoreSpec;
use crate::plugin::Component;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A processor, resolved against its plugin and its topics.
pub struct ProcessorSpec {
    pub application: String,
    pub name: Arc<str>,
    /// In the order that batches index.
    pub inputs: Vec<InputSpec>,
    /// Name and topic, in the order that emits index.
    pub outputs: Vec<(String, Arc<str>)>,
    /// The plugin's.
    pub stores: Vec<StoreSpec>,
    /// One per store, in the same order; where records are or were parked by key, the park's behind them.
    pub changelogs: Vec<Arc<str>>,
    pub dead_letters: Arc<str>,
    pub partitions: i32,
    pub limits: Limits,
    pub delivery: Delivery,
    pub ordering: config::Ordering,
    pub retry: Retry,
    pub dead_letter: DeadLetters,
    pub parking: Parking,
    /// Counts dead letters where there is a limit; of all tasks in this process.
    pub letters: Option<Mutex<LetterGate>>,
    /// What is to be told of committed dead letters.
    pub news: Mutex<LetterNews>,
    /// The last failures of all its tasks in this process.
    pub failures: Mutex<Failures>,
    /// The settings table as JSON.
    pub settings: String,
    pub versions: Versions,
    pub metrics: ProcessorMetrics,
    /// Set once nothing may go on, as the plugin or policy says: every task of the processor stands still.
    pub stopped: AtomicBool,
}

impl ProcessorSpec {
    /// Whether tasks have a park: records wait by key, or did and may be left.
    pub fn has_park(&self) -> bool {
        self.changelogs.len() > self.stores.len()
    }

    /// The plugin's stores, and the park's behind them: what a task opens.
    pub fn all_stores(&self) -> Vec<StoreSpec> {
        let own = self.has_park().then(park::store);
        self.stores.iter().cloned().chain(own).collect()
    }

    /// The same as a version of the plugin wants them, in the same order.
    pub fn stores_of(&self, component: &Component) -> Vec<StoreSpec> {
        let wanted = |store: StoreSpec| {
            let own = component.manifest.stores.iter().find(|own| own.name == store.name);
            own.cloned().unwrap_or(store)
        };
        self.all_stores().into_iter().map(wanted).collect()
    }

    /// Counts records that are done, some of them dead letters, at `now` of the monotonic clock. False where that is more letters than
    /// the processor may have: then none of these may be written.
    pub fn admits(&self, now: Duration, records: u64, letters: u64) -> bool {
        let Some(gate) = &self.letters else { return true };
        gate.lock().unwrap_or_else(PoisonError::into_inner).admit(now, records, letters)
    }

    /// Takes back what was admitted and then aborted.
    pub fn take_back(&self, records: u64, letters: u64) {
        if let (Some(gate), true) = (&self.letters, records + letters > 0) {
            gate.lock().unwrap_or_else(PoisonError::into_inner).take_back(records, letters);
        }
    }

    /// Tells of dead letters that were committed, where that is due at `now` of the monotonic clock, or `last`.
    pub fn tell_letters(&self, now: Duration, last: bool) {
        let due = self.news.lock().unwrap_or_else(PoisonError::into_inner).due(now, last);
        for News { code, count, example } in due {
            let (processor, topic, first) = (&*self.name, &*self.dead_letters, example.place);
            tracing::warn!(processor, code, count, first, why = example.message, topic, "dead letters");
        }
    }

    /// Keeps a failure for whoever asks what went wrong.
    pub fn note(&self, mishap: Mishap) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).note(mishap);
    }

    /// The last failures, newest first.
    pub fn last_failures(&self) -> Vec<Mishap> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).latest()
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Stops every task of the processor. True for the first call.
    pub fn stop(&self) -> bool {
        self.metrics.stopped(true);
        !self.stopped.swap(true, Ordering::SeqCst)
    }
}

#[derive(Clone, Debug)]
pub struct InputSpec {
    pub name: String,
    pub topic: Arc<str>,
    pub start: Start,
}

/// A task's topics as its worker's outbox knows them.
#[derive(Clone, Debug)]
pub struct Routes {
    pub outputs: Vec<OutTopic>,
    pub changelogs: Vec<OutTopic>,
    pub dead_letters: OutTopic,
}

/// An ownership number: it holds until the partition is given to somebody else, here or elsewhere.
///
/// The broker does not check who owns a partition (kafka-rules), so this is looked at just before offsets are sent.
#[derive(Clone, Debug)]
pub struct Lease {
    number: u64,
    current: Arc<AtomicU64>,
}

impl Lease {
    /// A new ownership of the partition that `current` counts; every earlier one ends.
    pub fn take(current: &Arc<AtomicU64>) -> Lease {
        Lease { number: current.fetch_add(1, Ordering::SeqCst) + 1, current: current.clone() }
    }

    pub fn holds(&self) -> bool {
        self.current.load(Ordering::SeqCst) == self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_lease_ends_the_old_one() {
        let current: Arc<AtomicU64> = Arc::default();
        let first = Lease::take(&current);
        assert!(first.holds());
        let second = Lease::take(&current);
        assert!(!first.holds() && second.holds());
        current.fetch_add(1, Ordering::SeqCst);
        assert!(!second.holds());
    }
}
