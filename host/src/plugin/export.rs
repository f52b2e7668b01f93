//! The exports of a component, found by name once and then called by index.

use super::bindings::exports::pelton::plugin::{aggregate, lifecycle, transform};
use super::bindings::pelton::plugin::types::{Batch, ColumnParam, HeadersParam, Progress};
use super::host::Data;
use super::pace::Ticks;
use crate::model;
use crate::model::manifest::{Context, World};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

/// Most handles of host resources that an instance holds at a time. They lie in the host's memory, so no other limit counts them.
const HANDLES: usize = 10_000;

/// A component that is linked: what remains is to instantiate it.
pub(super) struct Linked {
    pre: InstancePre<Data>,
    given: Given,
    lifecycle: lifecycle::GuestIndices,
    apply: ApplyIndices,
}

/// What every instance gets from its engine.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) ticks: Ticks,
    /// Bytes of a guest's stack.
    pub(super) stack_bytes: u64,
}

enum ApplyIndices {
    Transform(transform::GuestIndices),
    Aggregate(aggregate::GuestIndices),
}

/// One instance with its memory, and the function that takes batches.
pub(super) struct Running {
    pub(super) store: Store<Data>,
    /// Bytes of linear memory that a fresh instance has, once it was initialised: a new one would have no less.
    pub(super) at_start: u64,
    lifecycle: lifecycle::Guest,
    apply: Apply,
}

enum Apply {
    Transform(transform::Guest),
    Aggregate(aggregate::Guest),
}

impl Linked {
    pub(super) fn new(pre: InstancePre<Data>, world: World, given: Given) -> wasmtime::Result<Linked> {
        let lifecycle = lifecycle::GuestIndices::new(&pre)?;
        let apply = match world {
            World::Transform => ApplyIndices::Transform(transform::GuestIndices::new(&pre)?),
            World::Aggregate => ApplyIndices::Aggregate(aggregate::GuestIndices::new(&pre)?),
        };
        Ok(Linked { pre, given, lifecycle, apply })
    }

    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    /// A store for `data` with its limits in place. How epochs end or suspend its guest is the caller's.
    pub(super) fn store(&self, data: Data) -> Store<Data> {
        let output_bytes = usize::try_from(data.quota.output_bytes).unwrap_or(usize::MAX);
        let mut store = Store::new(self.pre.engine(), data);
        store.limiter(|data| &mut data.meter);
        store.set_hostcall_fuel(output_bytes);
        store.set_max_component_handles(HANDLES);
        store
    }

    /// Runs the start functions of a fresh instance, nothing more. Borrows the store, so that what a failure left in it can be read.
    pub(super) async fn instantiate(&self, store: &mut Store<Data>) -> wasmtime::Result<Instance> {
        self.pre.instantiate_async(store).await
    }

    pub(super) fn bind(&self, mut store: Store<Data>, instance: &Instance) -> wasmtime::Result<Running> {
        let lifecycle = self.lifecycle.load(&mut store, instance)?;
        let apply = match &self.apply {
            ApplyIndices::Transform(indices) => Apply::Transform(indices.load(&mut store, instance)?),
            ApplyIndices::Aggregate(indices) => Apply::Aggregate(indices.load(&mut store, instance)?),
        };
        Ok(Running { store, at_start: 0, lifecycle, apply })
    }
}

impl Running {
    pub(super) async fn describe(&mut self) -> wasmtime::Result<lifecycle::Manifest> {
        self.lifecycle.call_describe(&mut self.store).await
    }

    /// The inner error is the plugin's own refusal.
    pub(super) async fn init(&mut self, context: &Context) -> wasmtime::Result<Result<(), String>> {
        let (inputs, outputs) = (pairs(&context.inputs), pairs(&context.outputs));
        let stores: Vec<&str> = context.stores.iter().map(String::as_str).collect();
        let lowered = lifecycle::Context {
            application: &context.application,
            processor: &context.processor,
            partition: context.partition,
            inputs: &inputs,
            outputs: &outputs,
            stores: &stores,
            settings: &context.settings,
            max_record_bytes: context.max_record_bytes,
        };
        self.lifecycle.call_init(&mut self.store, lowered).await
    }

    pub(super) async fn apply(&mut self, batch: &model::Batch) -> wasmtime::Result<Progress> {
        match &self.apply {
            Apply::Transform(guest) => guest.call_apply(&mut self.store, lower(batch)).await,
            Apply::Aggregate(guest) => guest.call_apply(&mut self.store, lower(batch)).await,
        }
    }
}

/// Borrows every column: the only copy is the one into the guest's memory.
fn lower(batch: &model::Batch) -> Batch<'_> {
    Batch {
        input: batch.input,
        partition: batch.partition,
        offsets: &batch.offsets,
        timestamps: &batch.timestamps,
        keys: column(&batch.keys),
        values: column(&batch.values),
        headers: HeadersParam {
            counts: &batch.headers.counts,
            names: column(&batch.headers.names),
            values: column(&batch.headers.values),
        },
        now: batch.now,
        attempt: batch.attempt,
    }
}

fn column(column: &model::Column) -> ColumnParam<'_> {
    ColumnParam { bytes: &column.bytes, lengths: &column.lengths }
}

fn pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect()
}
