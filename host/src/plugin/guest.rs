//! The guest of one task: what its instances are made with, and the one that is kept between calls.

use super::call::Call;
use super::component::Component;
use super::export::Running;
use super::host::SharedState;
use super::log::{Gate, GuestLog};
use super::pace::Pulse;
use super::start::Start;
use crate::config::Limits;
use crate::model::Batch;
use crate::model::manifest::Context;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Everything needed to run one task's batches. At most one call at a time keeps its instance.
pub struct Guest {
    spec: Arc<Spec>,
    slot: Slot,
}

/// What every instance of a guest is made with.
pub(super) struct Spec {
    pub(super) component: Arc<Component>,
    pub(super) context: Context,
    pub(super) limits: Limits,
    pub(super) state: Option<SharedState>,
    pub(super) gate: Arc<Gate>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) usage: Usage,
}

/// What a guest's instances use, for whoever counts it.
#[derive(Default)]
pub(super) struct Usage {
    /// Bytes of linear memory of the instance that is kept, or was last.
    pub(super) memory: AtomicU64,
    /// Instances that were made and not counted yet.
    pub(super) started: AtomicU64,
}

/// What a guest has whatever its component is.
struct Given {
    context: Context,
    limits: Limits,
    state: Option<SharedState>,
    gate: Arc<Gate>,
}

/// Where a call leaves its instance for the next one. A call that fails leaves nothing.
#[derive(Clone, Default)]
pub(super) struct Slot {
    kept: Arc<Mutex<Option<Running>>>,
}

impl Guest {
    /// `state` is what the guest's state imports read; a transform needs none.
    pub fn new(
        component: Arc<Component>,
        context: Context,
        limits: Limits,
        state: Option<SharedState>,
        log: Arc<dyn GuestLog>,
    ) -> Guest {
        let gate = Arc::new(Gate::new(log, limits.log_lines));
        Guest::with(component, Given { context, limits, state, gate })
    }

    /// Another component in the same place: the same context, limits, state and log.
    pub fn of(&self, component: Arc<Component>) -> Guest {
        let Spec { context, limits, state, gate, .. } = &*self.spec;
        let (context, limits, state, gate) = (context.clone(), limits.clone(), state.clone(), gate.clone());
        Guest::with(component, Given { context, limits, state, gate })
    }

    pub fn component(&self) -> &Arc<Component> {
        &self.spec.component
    }

    /// Begins to run a batch: on the kept instance, or on a fresh one that is instantiated and initialised inside the call.
    /// Nothing runs before the call is polled. `now` is the monotonic time.
    pub fn call(&mut self, batch: Batch, now: Duration) -> Call {
        self.begin(batch, now, false)
    }

    /// [`Guest::call`] for records that were run before; the guest's log lines say so.
    pub fn rerun(&mut self, batch: Batch, now: Duration) -> Call {
        self.begin(batch, now, true)
    }

    /// Makes an instance and initialises it, without a batch and for nobody: whether the guest starts at all.
    pub fn start(&self, now: Duration) -> Start {
        self.spec.gate.settle();
        Start::new(self.spec.clone(), now)
    }

    /// Makes an instance and initialises it, for the first call.
    pub fn warm(&self, now: Duration) -> Start {
        self.spec.gate.settle();
        Start::kept(self.spec.clone(), self.slot.clone(), now)
    }

    /// Bytes of linear memory that the last call's instance had; 0 where it is gone.
    pub fn memory(&self) -> u64 {
        self.spec.usage.memory.load(Relaxed)
    }

    /// How many instances were made since this was asked last.
    pub fn take_started(&self) -> u64 {
        self.spec.usage.started.swap(0, Relaxed)
    }

    /// Drops the kept instance, and that of a call in flight once it ends: after an abort its globals may know of effects that
    /// never happened.
    pub fn reset(&mut self) {
        self.slot = Slot::default();
        self.spec.usage.memory.store(0, Relaxed);
    }

    fn with(component: Arc<Component>, given: Given) -> Guest {
        let Given { context, limits, state, gate } = given;
        let pulse = Arc::new(Pulse::new(component.linked.given().ticks.clone()));
        let usage = Usage::default();
        Guest { spec: Arc::new(Spec { component, context, limits, state, gate, pulse, usage }), slot: Slot::default() }
    }

    fn begin(&mut self, batch: Batch, now: Duration, rerun: bool) -> Call {
        self.spec.gate.set_now(now);
        self.spec.gate.set_rerun(rerun);
        self.spec.gate.settle();
        Call::new(self.spec.clone(), self.slot.clone(), batch, now)
    }
}

impl Slot {
    pub(super) fn take(&self) -> Option<Running> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn keep(&self, running: Running) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }
}
