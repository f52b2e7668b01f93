//! Named points at which a test may kill the process. Compiled to nothing unless the cargo feature `failpoints` is on.

/// Dies here (as by SIGKILL: no destructor, no flush) when the environment's `FAILPOINTS` says `NAME=return` (or with a count,
/// such as `3*off->return`; syntax of the `fail` crate); `NAME=pause` and `NAME=sleep(MS)` hold the thread.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    fn check(name: &str) -> Option<()> {
        fail::fail_point!(name, |_| Some(()));
        None
    }
    arm();
    if check(name).is_some() {
        std::process::abort();
    }
}

/// The `fail` crate reads the environment only when a scenario is set up, and forgets it when the scenario is dropped.
#[cfg(feature = "failpoints")]
fn arm() {
    static ARMED: std::sync::Once = std::sync::Once::new();
    ARMED.call_once(|| std::mem::forget(fail::FailScenario::setup()));
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
