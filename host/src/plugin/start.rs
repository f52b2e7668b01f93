//! The start of an instance: made, and initialised with its context. Part of a call that has no instance kept, or tried by itself.

use super::export::Running;
use super::fault::{CallFault, short};
use super::guest::{Slot, Spec};
use super::host::{Data, Quota};
use super::pace::Pace;
use super::wasi::{Seed, Wasi};
use crate::config::Limits;
use crate::model::manifest::Context;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{self, Poll, Waker};
use std::time::Duration;

/// A start by itself, before there is anything to call it with.
pub struct Start {
    future: Pin<Box<dyn Future<Output = Result<(), Unstarted>> + Send>>,
    spec: Arc<Spec>,
    spent: Spent,
}

/// Why there is no instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Unstarted {
    /// `init` refused the context, in the plugin's own words.
    Refused(String),
    /// It took longer than `init_deadline`.
    Late(Duration),
    /// What else it did: a trap, or a limit that it broke.
    Broke(CallFault),
}

/// How much of a deadline has been used, as seen at polls.
#[derive(Clone, Copy)]
pub(super) struct Spent {
    used: Duration,
    last: Duration,
}

impl Start {
    pub(super) fn new(spec: Arc<Spec>, now: Duration) -> Start {
        let guest = spec.clone();
        let future = Box::pin(async move { start(&guest).await.map(drop) });
        Start { future, spec, spent: Spent::new(now) }
    }

    /// The same, but the instance is kept for the first call.
    pub(super) fn kept(spec: Arc<Spec>, slot: Slot, now: Duration) -> Start {
        let guest = spec.clone();
        let future = Box::pin(async move { start(&guest).await.map(|running| slot.keep(running)) });
        Start { future, spec, spent: Spent::new(now) }
    }

    /// Runs the guest until it is initialised, or until the next tick. `now` is the monotonic time. Not to be polled after a result.
    pub fn poll(&mut self, now: Duration) -> Option<Result<(), Unstarted>> {
        self.spec.gate.set_now(now);
        self.spec.pulse.polled();
        if self.spent.is_over(now, self.spec.limits.init_deadline) {
            return Some(Err(late(&self.spec.limits)));
        }
        match self.future.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

impl Spent {
    pub(super) fn new(now: Duration) -> Spent {
        Spent { used: Duration::ZERO, last: now }
    }

    /// For what comes next, with a deadline of its own.
    pub(super) fn again(self) -> Spent {
        Spent::new(self.last)
    }

    /// Adds the time since the last look, and says whether `deadline` is over. A single gap counts for half of it at most.
    pub(super) fn is_over(&mut self, now: Duration, deadline: Duration) -> bool {
        self.used += now.saturating_sub(self.last).min(deadline / 2);
        self.last = now;
        self.used >= deadline
    }
}

/// A fresh instance that has accepted its context.
pub(super) async fn start(spec: &Spec) -> Result<Running, Unstarted> {
    let linked = &spec.component.linked;
    let mut store = linked.store(data(spec));
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let instance = linked.instantiate(&mut store).await.map_err(|error| broke(&error, store.data_mut()))?;
    spec.usage.started.fetch_add(1, Relaxed);
    let mut running = linked.bind(store, &instance).map_err(|error| Unstarted::Refused(format!("{error:#}")))?;
    match running.init(&spec.context).await {
        Ok(Ok(())) => {
            running.at_start = running.store.data().meter.memory();
            Ok(running)
        }
        Ok(Err(refusal)) => Err(Unstarted::Refused(short(refusal))),
        Err(error) => Err(broke(&error, running.store.data_mut())),
    }
}

pub(super) fn late(limits: &Limits) -> Unstarted {
    Unstarted::Late(limits.init_deadline)
}

fn broke(error: &wasmtime::Error, data: &mut Data) -> Unstarted {
    Unstarted::Broke(CallFault::of(error, data))
}

fn data(spec: &Spec) -> Data {
    let Context { application, processor, partition, stores, .. } = &spec.context;
    let (limits, stack_bytes) = (&spec.limits, spec.component.linked.given().stack_bytes);
    let quota = Quota { memory: limits.memory, output_bytes: limits.output_bytes, stack_bytes };
    let mut data = Data::new(quota, Pace::Polled(spec.pulse.clone()));
    data.wasi = Wasi::new(Seed::new(application, processor, *partition));
    data.with_log(spec.gate.clone()).with_state(spec.state.clone(), stores.len())
}

/// What happens before a batch goes in says nothing about its records.
impl From<Unstarted> for CallFault {
    fn from(unstarted: Unstarted) -> CallFault {
        match unstarted {
            Unstarted::Broke(CallFault::Host(fault)) => CallFault::Host(fault),
            other => CallFault::Init(other.to_string()),
        }
    }
}

impl fmt::Display for Unstarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unstarted::Refused(words) => f.write_str(words),
            Unstarted::Late(deadline) => write!(f, "init took longer than {deadline:?}"),
            Unstarted::Broke(fault) => fault.fmt(f),
        }
    }
}
