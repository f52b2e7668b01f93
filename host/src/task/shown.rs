//! What metrics show of a task: the levels of its overlay, its guest, its stores and its state, brought up to date after each turn and
//! taken back when the task ends.

use super::{ProcessorSpec, State, Task};
use crate::metrics::{StoreMetrics, StoreSize};
use crate::model::Clock;
use std::time::Duration;

/// Between two looks at how large the stores are.
const MEASURE: Duration = Duration::from_secs(5);

/// What was shown last.
pub(super) struct Shown {
    overlay: u64,
    memory: u64,
    backing_off: bool,
    halted: bool,
    stores: Vec<(StoreMetrics, StoreSize)>,
    /// When the stores were looked at last, on the monotonic clock.
    measured: Option<Duration>,
}

impl Shown {
    pub(super) fn new(spec: &ProcessorSpec) -> Shown {
        let stores = spec.all_stores();
        let stores = stores.iter().map(|store| (StoreMetrics::new(&spec.name, &store.name), StoreSize::default()));
        let stores = stores.collect();
        Shown { overlay: 0, memory: 0, backing_off: false, halted: false, stores, measured: None }
    }
}

impl Task {
    /// Brings metrics up to date with this turn. What has not changed costs a comparison.
    pub(super) fn show(&mut self, clock: &dyn Clock) {
        self.show_overlay(self.overlay_bytes());
        self.show_guest();
        let idle = self.spec.versions.is_paused() || self.spec.is_stopped();
        let waits = matches!(self.state, State::BackingOff(_)) && !idle;
        if waits != self.shown.backing_off {
            self.shown.backing_off = waits;
            self.spec
                .metrics
                .backing_off(self.id.partition, waits.then(|| self.retried_since().unwrap_or_else(|| clock.wall_ms())));
        }
        if self.state.is_halted() && !self.shown.halted {
            self.shown.halted = true;
            self.spec.metrics.halted(self.id.partition, true);
        }
    }

    /// Looks at the stores where that is due.
    pub(super) fn measure(&mut self, now: Duration) {
        if self.shown.measured.is_some_and(|last| now.saturating_sub(last) < MEASURE) {
            return;
        }
        self.shown.measured = Some(now);
        let Some(load) = self.stores().map(|stores| stores.load()) else { return };
        self.spec.metrics.stalls(self.id.partition, load.delayed, load.stopped);
        for ((metrics, shown), now) in self.shown.stores.iter_mut().zip(load.sizes) {
            metrics.resized(*shown, now);
            *shown = now;
        }
    }

    /// Counts what the commit under way has sent to the changelogs.
    pub(super) fn count_changes(&self) {
        let Some(stores) = self.stores() else { return };
        for (store, (metrics, _)) in self.shown.stores.iter().enumerate() {
            metrics.committed(stores.changes(store) as u64);
        }
    }

    /// Nothing of this task is there any more.
    pub(super) fn take_back_shown(&mut self) {
        let (metrics, partition) = (self.spec.metrics.clone(), self.id.partition);
        self.show_overlay(0);
        metrics.plugin.memory(partition, None);
        metrics.backing_off(partition, None);
        metrics.halted(partition, false);
        metrics.stalls(partition, false, false);
        for (store, shown) in &self.shown.stores {
            store.resized(*shown, StoreSize::default());
        }
    }

    fn show_overlay(&mut self, bytes: u64) {
        self.spec.metrics.overlay_changed(bytes as i64 - self.shown.overlay as i64);
        self.shown.overlay = bytes;
    }

    fn show_guest(&mut self) {
        self.spec.metrics.plugin.instances(self.guest.take_started());
        let memory = self.guest.memory();
        if memory != self.shown.memory {
            self.shown.memory = memory;
            self.spec.metrics.plugin.memory(self.id.partition, Some(memory));
        }
    }
}
