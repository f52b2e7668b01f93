//! One call of a guest, driven by whoever polls it: it runs until the guest ends or an epoch tick makes it yield.

use super::fault::CallFault;
use super::guest::{Slot, Spec};
use super::log::{Gate, Level};
use super::start::{self, Spent};
use super::validate::{self, Bounds};
use crate::metrics::Custom;
use crate::model::{Batch, Progress};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{self, Poll, Waker};
use std::time::Duration;

/// A batch on its way through the guest. Dropping a call gives it up: its future owns the instance, and both go.
pub struct Call {
    /// None once the outcome was handed over.
    future: Option<CallFuture>,
    spec: Arc<Spec>,
    batch: Arc<Batch>,
    /// Set by the future when the instance is ready and the batch goes in: from there on it is the record's deadline.
    applying: Arc<AtomicBool>,
    stage: Stage,
}

type CallFuture = Pin<Box<dyn Future<Output = Result<(Progress, Custom), CallFault>> + Send>>;

/// How much of its deadline the part that runs now has used.
struct Stage {
    applying: bool,
    spent: Spent,
}

/// How a call ended. The batch always comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub batch: Batch,
    pub result: Result<Progress, CallFault>,
    /// What the guest counted itself; nothing where the call failed.
    pub custom: Custom,
}

impl Call {
    pub(super) fn new(spec: Arc<Spec>, slot: Slot, batch: Batch, now: Duration) -> Call {
        let batch = Arc::new(batch);
        let applying = Arc::new(AtomicBool::new(false));
        let future = Box::pin(run(spec.clone(), slot, batch.clone(), applying.clone()));
        Call { future: Some(future), spec, batch, applying, stage: Stage { applying: false, spent: Spent::new(now) } }
    }

    /// Runs the guest until it ends, or until the next tick. `now` is the monotonic time. Past its deadline the call is given up.
    /// After an outcome, always `None`.
    ///
    /// A single gap between two polls counts for half a deadline at most, so that a process that was frozen does not blame a
    /// record for it.
    pub fn poll(&mut self, now: Duration) -> Option<Outcome> {
        self.spec.gate.set_now(now);
        self.spec.pulse.polled();
        if self.is_late(now) {
            return self.finish(Err(self.late()));
        }
        match self.future.as_mut()?.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => self.finish(result),
            Poll::Pending => None,
        }
    }

    /// The batch in flight.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Gives the call up and its batch back.
    pub fn cancel(mut self) -> Batch {
        self.future = None;
        Arc::unwrap_or_clone(self.batch)
    }

    fn is_late(&mut self, now: Duration) -> bool {
        let (stage, limits) = (&mut self.stage, &self.spec.limits);
        if self.applying.load(Relaxed) && !stage.applying {
            *stage = Stage { applying: true, spent: stage.spent.again() };
        }
        stage.spent.is_over(now, if stage.applying { limits.record_deadline } else { limits.init_deadline })
    }

    fn late(&self) -> CallFault {
        if self.stage.applying {
            return CallFault::Deadline;
        }
        start::late(&self.spec.limits).into()
    }

    /// Drops the future first: the batch is then this call's alone, and moves out without a copy.
    fn finish(&mut self, result: Result<(Progress, Custom), CallFault>) -> Option<Outcome> {
        drop(self.future.take()?);
        if let Err(fault) = &result {
            tell(fault, &self.batch, &self.spec.gate);
        }
        let batch = Arc::unwrap_or_clone(std::mem::take(&mut self.batch));
        Some(match result {
            Ok((progress, custom)) => Outcome { batch, result: Ok(progress), custom },
            Err(fault) => Outcome { batch, result: Err(fault), custom: Custom::default() },
        })
    }
}

async fn run(
    spec: Arc<Spec>,
    slot: Slot,
    batch: Arc<Batch>,
    applying: Arc<AtomicBool>,
) -> Result<(Progress, Custom), CallFault> {
    let mut running = match slot.take() {
        Some(running) => running,
        None => start::start(&spec).await?,
    };
    applying.store(true, Relaxed);
    // The kept instance's deadline lies in the past; without this it would yield at its first step.
    running.store.set_epoch_deadline(1);
    running.store.data_mut().enter(&batch);
    let lifted = running.apply(&batch).await.map_err(|error| CallFault::of(&error, running.store.data_mut()))?;
    // the batch is the call's alone again, so that it moves out without a copy
    let custom = running.store.data_mut().leave();
    let progress = validate::progress(lifted, &bounds(&spec, &batch))?;
    let memory = running.store.data().meter.memory();
    spec.usage.memory.store(memory, Relaxed);
    if memory <= spec.limits.memory_keep.max(running.at_start) {
        slot.keep(running);
    }
    Ok((progress, custom))
}

/// Says in the task's log what the guest did, as one of its own lines: at most so many a second, and marked when it is said again.
fn tell(fault: &CallFault, batch: &Batch, gate: &Gate) {
    if !fault.blames_a_record() {
        return;
    }
    let mut fields = vec![("code".to_owned(), fault.code().to_owned())];
    if !fault.stack().is_empty() {
        fields.push(("stack".to_owned(), fault.stack().join(" < ")));
    }
    gate.write(Level::Warn, fault.to_string(), fields, batch.offsets.first().copied());
}

fn bounds(spec: &Spec, batch: &Batch) -> Bounds {
    Bounds {
        entries: batch.len() as u32,
        outputs: spec.context.outputs.len() as u32,
        stores: spec.context.stores.len() as u32,
        effects: spec.limits.emits,
        bytes: spec.limits.output_bytes,
    }
}
