//! The buckets of each histogram, and the histogram itself: one atomic addition for the bucket and one for the sum, whatever it is
//! given, and a size that never grows.

use metrics::HistogramFn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Seconds, from a call over a few records to one that is about to miss its deadline.
pub(super) const PLUGIN_CALL: &[f64] =
    &[1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Seconds of a commit's parts.
pub(super) const COMMIT: &[f64] = &[1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Seconds; the interval itself is 100 ms by default.
pub(super) const LATENESS: &[f64] = &[1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Seconds; what is promised is 50 ms.
pub(super) const PAUSE: &[f64] = &[1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Records.
pub(super) const BATCH: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// Nobody knows what a plugin measures: seven decades, three steps each.
pub(super) const CUSTOM: &[f64] = &[
    1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3,
    2.5e3, 5e3, 1e4,
];

/// How values are distributed over buckets.
pub(super) struct Distribution {
    bounds: &'static [f64],
    /// One more than there are bounds: the last one is for what is above them all.
    counts: Box<[AtomicU64]>,
    /// Bits of a float.
    sum: AtomicU64,
}

/// A distribution at one moment.
pub(super) struct Drawn {
    /// How many values lie at or below each bound, and last of all how many there are.
    pub(super) cumulative: Vec<u64>,
    pub(super) sum: f64,
}

impl Distribution {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Distribution { bounds, counts, sum: AtomicU64::new(0f64.to_bits()) }
    }

    pub(super) fn draw(&self) -> Drawn {
        let mut count = 0;
        let add = |bucket: &AtomicU64| {
            count += bucket.load(Relaxed);
            count
        };
        Drawn { cumulative: self.counts.iter().map(add).collect(), sum: f64::from_bits(self.sum.load(Relaxed)) }
    }
}

impl Drawn {
    pub(super) fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or_default()
    }
}

impl HistogramFn for Distribution {
    fn record(&self, value: f64) {
        self.record_many(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.counts[bucket(self.bounds, value)].fetch_add(count as u64, Relaxed);
        let add = |bits| Some((f64::from_bits(bits) + value * count as f64).to_bits());
        // never refused, as `add` never does
        let _ = self.sum.fetch_update(Relaxed, Relaxed, add);
    }
}

/// The first bucket whose bound is not below `value`.
pub(super) fn bucket(bounds: &[f64], value: f64) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_at_a_bound_belongs_to_it_and_one_above_all_to_the_last() {
        let distribution = Distribution::new(&[1.0, 2.0]);
        [0.0, 1.0, 1.5, 2.0, 3.0].into_iter().for_each(|value| distribution.record(value));
        distribution.record_many(2.0, 10);
        let Drawn { cumulative, sum } = distribution.draw();
        assert_eq!((cumulative, sum), (vec![2, 14, 15], 27.5));
    }

    #[test]
    fn bounds_ascend() {
        for bounds in [PLUGIN_CALL, COMMIT, LATENESS, PAUSE, BATCH, CUSTOM] {
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
        }
    }
}
