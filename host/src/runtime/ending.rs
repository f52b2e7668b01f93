//! Whether the host is ending, and why.

use crate::model::Fault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Why and whether the host is ending. The first reason counts.
#[derive(Default)]
pub struct Ending {
    reason: Mutex<Option<Fault>>,
    /// Why a processor was stopped, the first one.
    stopped: Mutex<Option<Fault>>,
    stop: AtomicBool,
    done: AtomicBool,
}

impl Ending {
    /// Ends the host: what can be committed is, then it exits with this reason.
    pub fn fail(&self, fault: Fault) {
        let mut reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_none() {
            tracing::error!(code = fault.code, "{fault}");
            *reason = Some(fault);
        }
        self.stop();
    }

    /// A processor was stopped by its plugin; the others go on. When the host ends for another reason, this is its result.
    pub fn stopped(&self, fault: Fault) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    /// Ends the process at once: nothing in it can be trusted to let go of its partitions.
    pub fn exit_now(&self, fault: Fault) -> ! {
        tracing::error!(code = fault.code, "{fault}; exiting at once");
        leave(1)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Workers are gone: the ticker may end.
    pub fn done(&self) {
        self.done.store(true, Ordering::SeqCst);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    /// Why it ended, once.
    pub fn reason(&self) -> Result<(), Fault> {
        let take = |fault: &Mutex<Option<Fault>>| fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        take(&self.reason).or_else(|| take(&self.stopped)).map_or(Ok(()), Err)
    }
}

/// How long a process may take to leave once it is told to.
const LEAVING: Duration = Duration::from_secs(2);

/// Ends the process with this code. What the libraries tidy up at the exit may wait for a thread that hangs: then it ends without.
pub(super) fn leave(code: i32) -> ! {
    let hard = || {
        std::thread::sleep(LEAVING);
        std::process::abort();
    };
    // where no thread can be had any more, the exit is all there is
    let _ = std::thread::Builder::new().name("leaving".into()).spawn(hard);
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: &'static str) -> Fault {
        Fault::fatal(code, "why")
    }

    #[test]
    fn the_first_reason_counts_and_stops_the_host() {
        let ending = Ending::default();
        assert!(!ending.is_stopping());
        ending.fail(fault("first"));
        ending.fail(fault("second"));
        assert!(ending.is_stopping() && !ending.is_done());
        assert_eq!(ending.reason(), Err(fault("first")));
    }

    #[test]
    fn a_stopped_processor_ends_nobody_and_is_the_result_at_the_end() {
        let ending = Ending::default();
        ending.stopped(fault("first"));
        ending.stopped(fault("second"));
        assert!(!ending.is_stopping());
        ending.stop();
        assert_eq!(ending.reason(), Err(fault("first")));
    }

    #[test]
    fn a_failure_is_told_before_a_stopped_processor_and_a_plain_stop_is_no_failure() {
        let ending = Ending::default();
        ending.stopped(fault("stopped"));
        ending.fail(fault("failed"));
        assert_eq!(ending.reason(), Err(fault("failed")));
        let ending = Ending::default();
        ending.stop();
        assert_eq!(ending.reason(), Ok(()));
    }
}
