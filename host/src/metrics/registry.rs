//! The numbers of this process, kept where its own summary and its tests can read them.

use super::names::{ALL, Kind, Metric};
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recorder that keeps counters and gauges as numbers and histograms as count and sum. Clones share them.
#[derive(Clone, Default)]
pub struct Registry {
    shared: Arc<Mutex<Numbers>>,
}

#[derive(Default)]
struct Numbers {
    counters: BTreeMap<Key, Arc<AtomicU64>>,
    gauges: BTreeMap<Key, Arc<AtomicU64>>,
    histograms: BTreeMap<Key, Arc<Sum>>,
}

/// Count and sum; a distribution comes with an exporter.
#[derive(Default)]
struct Sum {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Registry {
    /// Makes this the process's recorder and describes every metric. False where there is one already.
    pub fn install(&self) -> bool {
        let installed = metrics::set_global_recorder(self.clone()).is_ok();
        if installed {
            metrics::with_recorder(|recorder| ALL.iter().for_each(|metric| describe(recorder, metric)));
        }
        installed
    }

    /// Makes this the recorder of what `act` does on this thread.
    #[cfg(test)]
    pub(crate) fn during(&self, act: impl FnOnce()) {
        metrics::with_local_recorder(self, act);
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

    /// Count and summed seconds of a histogram over all its labels.
    pub fn seconds(&self, metric: Metric) -> (u64, f64) {
        let numbers = self.numbers();
        let own = numbers.histograms.iter().filter(|(key, _)| key.name() == metric.name);
        own.fold((0, 0.0), |(count, seconds), (_, sum)| {
            let nanos = sum.nanos.load(Ordering::Relaxed);
            (count + sum.count.load(Ordering::Relaxed), seconds + nanos as f64 / 1e9)
        })
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Registry {
    // Descriptions stand in `names`; an exporter that wants them reads them there.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.numbers().counters.entry(key.clone()).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.numbers().gauges.entry(key.clone()).or_default().clone())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.numbers().histograms.entry(key.clone()).or_default().clone())
    }
}

impl HistogramFn for Sum {
    fn record(&self, seconds: f64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add((seconds * 1e9) as u64, Ordering::Relaxed);
    }
}

fn labelled<'a>(key: &'a Key, label: &str) -> &'a str {
    key.labels().find(|l| l.key() == label).map_or("", |l| l.value())
}

fn describe(recorder: &dyn Recorder, metric: &Metric) {
    let (name, help) = (KeyName::from(metric.name), SharedString::from(metric.help));
    match metric.kind {
        Kind::Counter => recorder.describe_counter(name, None, help),
        Kind::Gauge => recorder.describe_gauge(name, None, help),
        Kind::Histogram => recorder.describe_histogram(name, Some(Unit::Seconds), help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{CommitMetrics, ProcessorMetrics, Traffic, names};
    use std::time::Duration;

    #[test]
    fn what_handles_count_can_be_read() {
        let registry = Registry::default();
        metrics::with_local_recorder(&registry, || {
            let (a, b) = (ProcessorMetrics::new("a"), ProcessorMetrics::new("b"));
            a.committed(Traffic { records_in: 5, records_out: 3, ..Traffic::default() });
            a.committed(Traffic { records_in: 1, ..Traffic::default() });
            b.committed(Traffic { records_in: 10, ..Traffic::default() });
            a.dead_letters("plugin", 2);
            b.dead_letters("plugin", 1);
            b.dead_letters("trap", 1);
            CommitMetrics::default().phase("flush", Duration::from_millis(1500));
        });
        assert_eq!((registry.total(names::TASK_RECORDS_IN), registry.total(names::TASK_RECORDS_OUT)), (16, 3));
        assert_eq!(registry.by_label(names::TASK_RECORDS_IN, names::PROCESSOR)["a"], 6);
        assert_eq!(registry.by_label(names::DELIVERY_DEAD_LETTERS, names::CODE)["plugin"], 3);
        let letters = registry.by_labels(names::DELIVERY_DEAD_LETTERS, (names::PROCESSOR, names::CODE));
        assert_eq!(letters.into_values().collect::<Vec<_>>(), [2, 1, 1], "a plugin, b plugin, b trap");
        assert_eq!(registry.seconds(names::COMMIT_SECONDS), (1, 1.5));
    }
}
