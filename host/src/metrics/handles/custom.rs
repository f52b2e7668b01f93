//! What plugins count and measure themselves: bounded in names and in what is kept, whatever a plugin hands over.

use super::{counter, histogram};
use crate::metrics::buckets::{CUSTOM, bucket};
use crate::metrics::names;
use metrics::{Counter, Histogram};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most names of one processor, counts and values together.
const NAMES: usize = 50;
/// Longest name, in bytes.
const NAME_BYTES: usize = 64;
/// What is above this is no measure of anything: it would drown the sum of all others.
const HUGEST: f64 = 1e15;

/// What calls have counted and measured, until their commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Custom {
    counts: BTreeMap<String, u64>,
    values: BTreeMap<String, Values>,
    dropped: u64,
}

/// Values by bucket: how many, and their sum.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    buckets: Box<[(u64, f64)]>,
}

/// Where a processor's own counts go. Clones add to the same numbers.
#[derive(Clone)]
pub struct CustomMetrics {
    processor: String,
    dropped: Counter,
    handles: Arc<Mutex<Handles>>,
}

#[derive(Default)]
struct Handles {
    counters: BTreeMap<String, Counter>,
    histograms: BTreeMap<String, Histogram>,
    /// Whether it was told that something is left out.
    told: bool,
}

impl Custom {
    /// Adds to a counter, or drops what is no name or no count.
    pub fn count(&mut self, name: &str, more: u64) {
        if more as f64 > HUGEST {
            self.dropped += 1;
        } else {
            self.add(name, more);
        }
    }

    /// Adds values to a histogram, or drops those that are no measures.
    pub fn observe(&mut self, name: &str, values: &[f64]) {
        let mut taken = Values::default();
        values.iter().filter(|value| (0.0..=HUGEST).contains(*value)).for_each(|value| taken.add(*value));
        self.dropped += values.len() as u64 - taken.count();
        if taken.count() > 0 {
            self.lay(name, taken);
        }
    }

    /// Adds what another call has counted.
    pub fn merge(&mut self, other: Custom) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.dropped += other.dropped;
        other.counts.into_iter().for_each(|(name, count)| self.add(&name, count));
        other.values.into_iter().for_each(|(name, values)| self.lay(&name, values));
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.values.is_empty() && self.dropped == 0
    }

    fn add(&mut self, name: &str, more: u64) {
        let takes = self.takes(name);
        match self.counts.get_mut(name) {
            Some(count) => *count = count.saturating_add(more),
            None if takes => drop(self.counts.insert(name.to_owned(), more)),
            None => self.dropped += 1,
        }
    }

    fn lay(&mut self, name: &str, more: Values) {
        let takes = self.takes(name);
        match self.values.get_mut(name) {
            Some(values) => values.merge(&more),
            None if takes => drop(self.values.insert(name.to_owned(), more)),
            None => self.dropped += more.count(),
        }
    }

    /// Whether a new name is one, and there is room for it.
    fn takes(&self, name: &str) -> bool {
        is_name(name) && self.counts.len() + self.values.len() < NAMES
    }
}

impl Default for Values {
    fn default() -> Self {
        Values { buckets: vec![(0, 0.0); CUSTOM.len() + 1].into_boxed_slice() }
    }
}

impl Values {
    fn add(&mut self, value: f64) {
        let (count, sum) = &mut self.buckets[bucket(CUSTOM, value)];
        (*count, *sum) = (*count + 1, *sum + value);
    }

    fn merge(&mut self, other: &Values) {
        for ((count, sum), (more, added)) in self.buckets.iter_mut().zip(&other.buckets) {
            (*count, *sum) = (*count + more, *sum + added);
        }
    }

    fn count(&self) -> u64 {
        self.buckets.iter().map(|(count, _)| count).sum()
    }

    /// One addition per bucket: of the bucket's mean, which lies in it.
    fn record(&self, histogram: &Histogram) {
        let bounds = CUSTOM.iter().copied().chain([f64::INFINITY]);
        for ((count, sum), bound) in self.buckets.iter().zip(bounds).filter(|((count, _), _)| *count > 0) {
            histogram.record_many((sum / *count as f64).min(bound), *count as usize);
        }
    }
}

impl CustomMetrics {
    pub fn new(processor: &str) -> Self {
        let dropped = counter(names::PLUGIN_CUSTOM_DROPPED, &[(names::PROCESSOR, processor)]);
        CustomMetrics { processor: processor.to_owned(), dropped, handles: Arc::default() }
    }

    /// Adds what a commit made visible. True the first time that anything is left out.
    pub fn committed(&self, custom: &Custom) -> bool {
        if custom.is_empty() {
            return false;
        }
        let (mut handles, mut dropped) = (self.handles(), custom.dropped);
        for (name, count) in &custom.counts {
            match self.counter(&mut handles, name) {
                Some(counter) => counter.increment(*count),
                None => dropped += 1,
            }
        }
        for (name, values) in &custom.values {
            match self.histogram(&mut handles, name) {
                Some(histogram) => values.record(histogram),
                None => dropped += values.count(),
            }
        }
        self.dropped.increment(dropped);
        dropped > 0 && !std::mem::replace(&mut handles.told, true)
    }

    fn counter<'a>(&self, handles: &'a mut Handles, name: &str) -> Option<&'a Counter> {
        if !handles.counters.contains_key(name) && handles.has_room() {
            handles.counters.insert(name.to_owned(), counter(names::PLUGIN_CUSTOM, &self.labels(name)));
        }
        handles.counters.get(name)
    }

    fn histogram<'a>(&self, handles: &'a mut Handles, name: &str) -> Option<&'a Histogram> {
        if !handles.histograms.contains_key(name) && handles.has_room() {
            handles.histograms.insert(name.to_owned(), histogram(names::PLUGIN_CUSTOM_VALUES, &self.labels(name)));
        }
        handles.histograms.get(name)
    }

    fn labels<'a>(&'a self, name: &'a str) -> [(&'static str, &'a str); 2] {
        [(names::PROCESSOR, &self.processor), (names::NAME, name)]
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handles {
    fn has_room(&self) -> bool {
        self.counters.len() + self.histograms.len() < NAMES
    }
}

/// `[a-z0-9_]{1,64}`
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
