//! How host calls give way. A guest yields at its own loops and calls once a tick came; a host call does so here, so that calls laid
//! end to end, without a loop between them, hold their thread no longer than a loop would.

use crate::model::{Clock, SystemClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

/// The ticks of an engine so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticks(Arc<AtomicU64>);

/// The ticks, as of the moment when a call was polled last.
#[derive(Debug)]
pub(super) struct Pulse {
    ticks: Ticks,
    polled_at: AtomicU64,
}

/// What keeps host calls from holding their thread.
pub(super) enum Pace {
    /// Somebody polls the call: it yields once a tick came since the last poll.
    Polled(Arc<Pulse>),
    /// Nobody does: the guest is ended at this time.
    Until(SystemClock, Duration),
}

impl Ticks {
    pub(super) fn advance(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Pulse {
    pub(super) fn new(ticks: Ticks) -> Pulse {
        Pulse { ticks, polled_at: AtomicU64::new(0) }
    }

    /// Notes that the call is polled now.
    pub(super) fn polled(&self) {
        self.polled_at.store(self.ticks.now(), Relaxed);
    }

    fn is_over(&self) -> bool {
        self.polled_at.load(Relaxed) != self.ticks.now()
    }
}

impl Pace {
    /// Gives way where it is time to. An error ends the guest.
    pub(super) async fn breathe(&self) -> wasmtime::Result<()> {
        match self {
            Pace::Polled(pulse) if pulse.is_over() => yield_once().await,
            Pace::Until(clock, end) if clock.monotonic() > *end => return Err(wasmtime::Trap::Interrupt.into()),
            _ => {}
        }
        Ok(())
    }
}

/// Pending once. Whoever polls comes back without being woken.
async fn yield_once() {
    let yielded = AtomicBool::new(false);
    std::future::poll_fn(|_| if yielded.swap(true, Relaxed) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn polls(pace: &Pace) -> usize {
        let mut breath = pin!(pace.breathe());
        let mut context = Context::from_waker(Waker::noop());
        (1..).find(|_| breath.as_mut().poll(&mut context).is_ready()).unwrap()
    }

    #[test]
    fn a_breath_yields_once_after_a_tick() {
        let ticks = Ticks::default();
        let pulse = Arc::new(Pulse::new(ticks.clone()));
        let pace = Pace::Polled(pulse.clone());
        assert_eq!(polls(&pace), 1);
        ticks.advance();
        assert_eq!(polls(&pace), 2);
        pulse.polled();
        assert_eq!(polls(&pace), 1);
    }

    #[test]
    fn a_guest_that_nobody_polls_is_ended_at_its_time() {
        let ends = |end| {
            let pace = Pace::Until(SystemClock::default(), end);
            let breath = pin!(pace.breathe()).poll(&mut Context::from_waker(Waker::noop()));
            matches!(breath, Poll::Ready(Err(_)))
        };
        assert!(ends(Duration::ZERO) && !ends(Duration::from_secs(3600)));
    }
}
