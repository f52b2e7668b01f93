//! Whether the host is alive and ready, and if not, why. One value for logs, tests and the health page.

use crate::metrics::HostMetrics;
use crate::model::fault::without;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Reasons against being ready, by what they concern; and whether a worker is stuck.
pub struct Health {
    state: Mutex<State>,
    metrics: HostMetrics,
}

#[derive(Default)]
struct State {
    reasons: BTreeMap<String, String>,
    stuck: Option<String>,
    said: Option<Snapshot>,
    /// On the monotonic clock.
    said_at: Duration,
}

/// Health at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// False when a worker makes no progress at all.
    pub live: bool,
    /// True when every partition that this host owns is being worked on.
    pub ready: bool,
    /// Why not, one line each: `subject: reason`.
    pub reasons: Vec<String>,
}

impl Default for Health {
    fn default() -> Self {
        let (state, metrics) = (State::default(), HostMetrics::default());
        metrics.health(state.is_live(), state.is_ready());
        Health { state: Mutex::new(state), metrics }
    }
}

impl Health {
    /// `subject` (a task, a group, the broker) is not ready because of `reason`.
    pub fn impair(&self, subject: impl Into<String>, reason: impl Into<String>) {
        self.change(|state| {
            state.reasons.insert(subject.into(), reason.into());
        });
    }

    /// `subject` is well again, or gone.
    pub fn clear(&self, subject: &str) {
        self.change(|state| {
            state.reasons.remove(subject);
        });
    }

    /// A worker is stuck, for this reason; `None`: all of them turn.
    pub fn stuck(&self, reason: Option<String>) {
        self.change(|state| state.stuck = reason);
    }

    /// Why a subject is not well.
    pub fn reason(&self, subject: &str) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reasons.get(subject).map(|reason| without(reason, subject).to_owned())
    }

    pub fn snapshot(&self) -> Snapshot {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).snapshot()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.metrics.health(state.is_live(), state.is_ready());
    }

    /// Logs the value where it has changed since it was said last: live and ready at once, other reasons for the same state now and
    /// then, so that neither many tasks nor a flapping reason can flood the log. Called by the supervisor at its own pace.
    pub fn say_changes(&self, now: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let value = state.snapshot();
        let flipped = state.said.as_ref().is_none_or(|said| (said.live, said.ready) != (value.live, value.ready));
        let changed = state.said.as_ref() != Some(&value) && now.saturating_sub(state.said_at) >= REASONS_PACE;
        if flipped || changed {
            tracing::info!(live = value.live, ready = value.ready, reason = value.in_short(), "health");
            (state.said, state.said_at) = (Some(value), now);
        }
    }
}

/// Between two lines that differ in their reasons only.
const REASONS_PACE: Duration = Duration::from_secs(5);
/// Most reasons that one line names.
const REASONS: usize = 4;

impl Snapshot {
    fn in_short(&self) -> String {
        let more = self.reasons.len().saturating_sub(REASONS);
        let named = self.reasons.iter().take(REASONS).map(String::as_str).collect::<Vec<_>>().join("; ");
        if more > 0 { format!("{named}; and {more} more") } else { named }
    }
}

impl State {
    fn snapshot(&self) -> Snapshot {
        // a fault names its object too
        let line = |(subject, reason): (&String, &String)| format!("{subject}: {}", without(reason, subject));
        let reasons: Vec<String> = self.stuck.iter().cloned().chain(self.reasons.iter().map(line)).collect();
        Snapshot { live: self.is_live(), ready: self.is_ready(), reasons }
    }

    fn is_live(&self) -> bool {
        self.stuck.is_none()
    }

    fn is_ready(&self) -> bool {
        self.is_live() && self.reasons.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_without_reasons_and_live_unless_stuck() {
        let health = Health::default();
        assert!(health.snapshot().ready);
        health.impair("task p/3", "restoring");
        let unwell = health.snapshot();
        assert_eq!((unwell.live, unwell.ready, unwell.reasons), (true, false, vec!["task p/3: restoring".to_owned()]));
        health.impair("task p/3", "task p/3: its store is damaged");
        assert_eq!(health.snapshot().reasons, ["task p/3: its store is damaged"], "named once");
        health.clear("task p/3");
        assert!(health.snapshot().ready);
        health.stuck(Some("worker 0 is silent".into()));
        assert!(!health.snapshot().live && !health.snapshot().ready);
        health.stuck(None);
        assert!(health.snapshot().live && health.snapshot().ready);
    }

    #[test]
    fn metrics_say_what_the_snapshot_says() {
        let registry = crate::metrics::Registry::default();
        registry.during(|| {
            let health = Health::default();
            let shown = |live, ready| {
                let page = registry.render();
                let (live, ready) = (format!("pelton_host_live {live}\n"), format!("pelton_host_ready {ready}\n"));
                assert!(page.contains(&live) && page.contains(&ready), "{page}");
            };
            shown(1, 1);
            health.impair("a", "restoring");
            shown(1, 0);
            health.clear("a");
            shown(1, 1);
            health.stuck(Some("worker 0 is silent".into()));
            shown(0, 0);
        });
    }

    #[test]
    fn a_subject_has_one_reason_the_latest_and_others_keep_theirs() {
        let health = Health::default();
        health.impair("b", "first");
        health.impair("b", "second");
        health.impair("a", "other");
        health.clear("never told");
        assert_eq!(health.snapshot().reasons, ["a: other", "b: second"]);
        health.clear("a");
        assert_eq!((health.snapshot().ready, health.snapshot().reasons.len()), (false, 1));
    }

    #[test]
    fn who_is_stuck_stays_so_and_is_told_first() {
        let health = Health::default();
        health.impair("a", "other");
        health.stuck(Some("worker 0 is silent".into()));
        health.clear("a");
        let snapshot = health.snapshot();
        assert_eq!(
            (snapshot.live, snapshot.ready, snapshot.reasons),
            (false, false, vec!["worker 0 is silent".to_owned()])
        );
    }
}
