//! SIGTERM, SIGINT and SIGHUP: the first stops the host, a second one ends the process at once. And the grace: how long a stop may take.

use super::ending::leave;
use super::thread;
use super::{Ending, Shared};
use crate::model::{Clock, Fault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a process that ended before it had committed what it could.
const UNCLEAN: i32 = 4;

/// Listens until dropped.
pub(super) struct Signals {
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Signals {
    /// Listens from now on: a signal in the first milliseconds counts as well.
    pub(super) fn listen(ending: Arc<Ending>, grace: Duration) -> Result<Signals, Fault> {
        let fail = |error: std::io::Error| Fault::fatal("no-signals", format!("listening for signals: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let guard = runtime.enter();
        let of = |kind| signal(kind).map_err(fail);
        // a terminal that is closed tells its processes so
        let kinds = (of(SignalKind::terminate())?, of(SignalKind::interrupt())?, of(SignalKind::hangup())?);
        drop(guard);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let listen = move || runtime.block_on(serve(&ending, kinds, (stopped, grace)));
        std::thread::Builder::new().name("signals".into()).spawn(listen).map_err(fail)?;
        Ok(Signals { _stop: stop })
    }
}

async fn serve(
    ending: &Ending,
    (mut term, mut int, mut hangup): (Signal, Signal, Signal),
    (mut stopped, grace): (tokio::sync::oneshot::Receiver<()>, Duration),
) {
    let mut told = false;
    loop {
        // every branch is a receive that loses nothing when another one wins
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hangup.recv() => {}
            _ = &mut stopped => return,
            () = tokio::time::sleep(grace), if told => overdue(grace),
        }
        if told {
            tracing::warn!("told to stop a second time: exiting at once");
            leave(UNCLEAN);
        }
        told = true;
        ending.stop();
        tracing::info!("told to stop");
    }
}

fn overdue(grace: Duration) -> ! {
    tracing::error!(?grace, "stopping takes longer than shutdown_grace; what is not committed is left to the restart");
    leave(UNCLEAN)
}

/// Ends the process when a stop takes longer than the application's grace.
pub(super) struct Grace {
    over: Arc<AtomicBool>,
}

impl Grace {
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Grace, Fault> {
        let over = Arc::new(AtomicBool::new(false));
        let (done, clock, grace) = (over.clone(), shared.clock, shared.application.shutdown_grace);
        let end = clock.monotonic() + grace;
        let watch = move || {
            while !done.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(50));
                if clock.monotonic() > end && !done.load(Ordering::SeqCst) {
                    overdue(grace);
                }
            }
        };
        thread::start("grace", "the grace watch", watch)?;
        Ok(Grace { over })
    }
}

impl Drop for Grace {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}
