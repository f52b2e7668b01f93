//! Bounded waiting: a test never waits for time to pass, only for something to become true, and says what when it did not.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// Looks again and again for so long: `check` panics where what must hold all the time does not.
pub fn throughout(span: Duration, mut check: impl FnMut()) {
    let end = Instant::now() + span;
    while Instant::now() < end {
        check();
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The wall clock, in milliseconds since the epoch.
pub fn wall_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after the epoch");
    i64::try_from(now.as_millis()).expect("a clock of this age")
}

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
