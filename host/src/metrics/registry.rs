//! The numbers of this process: one value that the summary, the metrics page and tests read.

use super::buckets::Distribution;
use super::names::Metric;
use super::{process, text};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recorder that keeps every number where it can be read. Clones share them.
///
/// A gauge that was set to NaN is not shown, and forgotten once nobody holds a handle of it: so a series goes when what it tells of is
/// gone.
#[derive(Clone, Default)]
pub struct Registry {
    shared: Arc<Mutex<Numbers>>,
}

#[derive(Default)]
struct Numbers {
    counters: BTreeMap<Key, Arc<AtomicU64>>,
    /// Bits of floats.
    gauges: BTreeMap<Key, Arc<AtomicU64>>,
    histograms: BTreeMap<Key, Arc<Distribution>>,
    /// What is kept elsewhere and only read here.
    readers: Vec<(Metric, Reader)>,
}

type Reader = Arc<dyn Fn() -> f64 + Send + Sync>;

impl Registry {
    /// Makes this the process's recorder. False where there is one already.
    pub fn install(&self) -> bool {
        metrics::set_global_recorder(self.clone()).is_ok()
    }

    /// Makes this the recorder of what `act` does on this thread.
    #[cfg(test)]
    pub(crate) fn during<T>(&self, act: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(self, act)
    }

    /// A number without labels that is kept elsewhere: `read` is called whenever the page is made.
    pub fn read_from(&self, metric: Metric, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.numbers().readers.push((metric, Arc::new(read)));
    }

    /// Everything as text, in the exposition format of Prometheus ([`super::CONTENT_TYPE`]).
    pub fn render(&self) -> String {
        let mut families = text::Families::default();
        self.collect(&mut families);
        let readers = self.numbers().readers.clone();
        readers.iter().for_each(|(metric, read)| families.number(&Key::from_name(metric.name), read()));
        process::read().into_iter().for_each(|(metric, value)| families.number(&Key::from_name(metric.name), value));
        families.render()
    }

    /// A counter summed over all its labels.
    pub fn total(&self, metric: Metric) -> u64 {
        let numbers = self.numbers();
        let own = numbers.counters.iter().filter(|(key, _)| key.name() == metric.name);
        own.map(|(_, number)| number.load(Ordering::Relaxed)).sum()
    }

    /// A counter's numbers by one of its labels, added up over the others.
    pub fn by_label(&self, metric: Metric, label: &str) -> BTreeMap<String, u64> {
        self.sums(metric, |key| labelled(key, label).to_owned())
    }

    /// A counter's numbers by two of its labels.
    pub fn by_labels(&self, metric: Metric, (outer, inner): (&str, &str)) -> BTreeMap<(String, String), u64> {
        self.sums(metric, |key| (labelled(key, outer).to_owned(), labelled(key, inner).to_owned()))
    }

    fn sums<K: Ord>(&self, metric: Metric, by: impl Fn(&Key) -> K) -> BTreeMap<K, u64> {
        let mut sums = BTreeMap::new();
        for (key, number) in self.numbers().counters.iter().filter(|(key, _)| key.name() == metric.name) {
            *sums.entry(by(key)).or_default() += number.load(Ordering::Relaxed);
        }
        sums
    }

    /// Count and sum of a histogram over all its labels.
    pub fn distribution(&self, metric: Metric) -> (u64, f64) {
        let numbers = self.numbers();
        let own = numbers.histograms.iter().filter(|(key, _)| key.name() == metric.name);
        let drawn = own.map(|(_, distribution)| distribution.draw());
        drawn.fold((0, 0.0), |(count, sum), drawn| (count + drawn.count(), sum + drawn.sum))
    }

    /// Reads every number that is kept here, and forgets the gauges that are gone.
    fn collect(&self, families: &mut text::Families) {
        let mut numbers = self.numbers();
        numbers.forget();
        numbers.counters.iter().for_each(|(key, number)| families.count(key, number.load(Ordering::Relaxed)));
        numbers.gauges.iter().for_each(|(key, bits)| families.number(key, value(bits)));
        numbers.histograms.iter().for_each(|(key, distribution)| families.distribution(key, distribution.draw()));
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Numbers {
    /// Whoever makes a handle meanwhile waits for the lock, so a gauge that nobody holds is nobody's.
    fn forget(&mut self) {
        self.gauges.retain(|_, bits| Arc::strong_count(bits) > 1 || !value(bits).is_nan());
    }
}

impl Recorder for Registry {
    // Descriptions stand in `names`; the page is made from there.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.numbers().counters.entry(key.clone()).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut numbers = self.numbers();
        numbers.forget();
        Gauge::from_arc(numbers.gauges.entry(key.clone()).or_default().clone())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let bounds = Metric::find(key.name()).map_or(&[][..], Metric::bounds);
        let new = || Arc::new(Distribution::new(bounds));
        Histogram::from_arc(self.numbers().histograms.entry(key.clone()).or_insert_with(new).clone())
    }
}

fn value(bits: &AtomicU64) -> f64 {
    f64::from_bits(bits.load(Ordering::Relaxed))
}

fn labelled<'a>(key: &'a Key, label: &str) -> &'a str {
    key.labels().find(|l| l.key() == label).map_or("", |l| l.value())
}
