//! Bounded waiting: a test never waits for time to pass, only for something to become true, and says what when it did not.

use std::time::{Duration, Instant};

/// Polls until `ready` gives something; panics with `what` after `limit`.
pub fn until<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
