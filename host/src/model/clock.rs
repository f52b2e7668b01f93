//! The only place that reads a clock. Rooms take a [`Clock`], so that tests can hand them another.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock milliseconds and a monotonic instant.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn wall_ms(&self) -> i64;
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock. Its monotonic time counts from its making.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that may")]
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that may")]
    fn wall_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}
