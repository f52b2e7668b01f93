//! Named points at which a test may kill the process. Compiled to nothing unless the cargo feature `failpoints` is on.

/// Dies here (as by SIGKILL: no destructor, no flush) when the environment's `FAILPOINTS` says `NAME=return` (or with a count,
/// such as `3*off->return`; syntax of the `fail` crate); `NAME=pause` and `NAME=sleep(MS)` hold the thread.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    fn check(name: &str) -> Option<()> {
        fail::fail_point!(name, |_| Some(()));
        None
    }
    if check(name).is_some() {
        std::process::abort();
    }
}

#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
