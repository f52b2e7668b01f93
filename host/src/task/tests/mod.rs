//! Tests of the room without a broker: the intake on scripted sources, the task on the embedded log with a guest that obeys its records.

mod attempts;
mod bounds;
mod commit;
mod failures;
mod intake;
mod looks;
mod marker;
mod park;
mod policy;
mod recorder;
pub(crate) mod rig;
mod script;
mod shown;
mod story;
mod swaps;
mod ticks;
mod world;
