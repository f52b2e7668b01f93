//! What goes through a turn: the records of one call with where they came from, and the outbox and the clock that the turn has.

use super::Outbox;
use super::park::Head;
use crate::model::{Batch, Clock};
use std::time::Duration;

/// The outbox and the clock of one turn.
pub(super) struct Turn<'a> {
    pub(super) out: &'a mut Outbox,
    pub(super) clock: &'a dyn Clock,
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// Milliseconds since the epoch.
    pub(super) wall_ms: i64,
    pub(super) monotonic: Duration,
}

/// Records on their way through the plugin.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) batch: Batch,
    pub(super) taken: Taken,
}

/// Where records came from.
#[derive(Debug)]
pub(super) enum Taken {
    /// From an input, together with these, which are parked when what is called before them is accepted.
    Input(Batch),
    /// From the park: a record of its own.
    Parked(Head),
}

impl Moment {
    pub(super) fn of(clock: &dyn Clock) -> Moment {
        Moment { wall_ms: clock.wall_ms(), monotonic: clock.monotonic() }
    }
}

impl Turn<'_> {
    pub(super) fn now(&self) -> Moment {
        Moment::of(self.clock)
    }

    /// Wall-clock milliseconds.
    pub(super) fn wall_ms(&self) -> i64 {
        self.clock.wall_ms()
    }

    pub(super) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

impl Work {
    /// Records of an input, with nothing set aside.
    pub(super) fn of(batch: Batch) -> Work {
        Work { batch, taken: Taken::Input(Batch::default()) }
    }

    pub(super) fn is_parked(&self) -> bool {
        matches!(self.taken, Taken::Parked(_))
    }
}
