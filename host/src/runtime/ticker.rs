//! What makes guests yield, and deadlines seen, where no host runs.

use super::thread;
use crate::model::Fault;
use crate::plugin::{Engine, TICK};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Advances an engine's epoch until dropped.
pub(super) struct Ticker {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(engine: Engine) -> Result<Ticker, Fault> {
        let done: Arc<AtomicBool> = Arc::default();
        let is_done = done.clone();
        let tick = move || {
            while !is_done.load(Ordering::SeqCst) {
                std::thread::park_timeout(TICK);
                engine.tick();
            }
        };
        let thread = thread::start("ticker", "the ticker", tick)?;
        Ok(Ticker { done, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.done.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
