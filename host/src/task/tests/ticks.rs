//! Ticks of an engine, for tests whose guests run long.

use super::rig::Rig;
use crate::task::{Running, Step};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Ticks the rig's engine from a thread until dropped, so that running guests yield.
pub(super) struct Ticks(Option<(Arc<()>, JoinHandle<()>)>);

impl Ticks {
    pub(super) fn start(rig: &Rig) -> Ticks {
        let (ticker, alive) = (rig.engine.ticker(), Arc::new(()));
        let watch = Arc::downgrade(&alive);
        let tick = move || {
            while watch.strong_count() > 0 && ticker() {
                std::thread::yield_now();
            }
        };
        Ticks(Some((alive, std::thread::spawn(tick))))
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.0.take() {
            drop(alive);
            thread.join().unwrap();
        }
    }
}

/// Steps until a call with a record that loops is in flight; other calls may yield too.
pub(super) fn until_in_flight(rig: &mut Rig) {
    let ticks = Ticks::start(rig);
    let loops = |running: &Running| running.call.batch().values.iter().any(|value| value == Some(b"Loop"));
    while rig.step() != Step::Yielded || !rig.task().call.as_ref().is_some_and(loops) {}
    drop(ticks);
}
