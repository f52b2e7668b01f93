//! `--until-idle`: the whole group is looked at, not what this host owns. It ends when every partition of every input is committed to
//! its end, this host has nothing open, and a second look finds the same.

use super::Shared;
use super::assignment::Assignment;
use crate::delivery;
use crate::model::{Fault, TopicPartition};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at a cluster.
const PACE: Duration = Duration::from_millis(300);

/// Looks and remembers what it saw.
#[derive(Default)]
pub(super) struct IdleCheck {
    next_look: Duration,
    last: Option<Vec<i64>>,
    said: Vec<String>,
    said_at: Duration,
}

impl IdleCheck {
    /// Whether everything has been worked off, on two looks running.
    pub(super) fn look(&mut self, shared: &Shared, assignments: &[Arc<Assignment>]) -> bool {
        use crate::model::Clock;
        let now = shared.clock.monotonic();
        if now < self.next_look {
            return false;
        }
        self.next_look = now + PACE;
        let seen = self.ends(shared, assignments, now);
        let same = seen.is_some() && seen == self.last;
        self.last = seen;
        same
    }

    /// The committed end of every input partition, where all are worked off.
    fn ends(&mut self, shared: &Shared, assignments: &[Arc<Assignment>], now: Duration) -> Option<Vec<i64>> {
        if !assignments.iter().all(|assignment| assignment.is_idle()) {
            return None;
        }
        let mut ends = Vec::new();
        let mut behind = Vec::new();
        for assignment in assignments.iter().filter(|assignment| !assignment.spec().is_stopped()) {
            match lagging(shared, assignment) {
                Ok(seen) => {
                    ends.extend(seen.iter().map(|(_, end, _)| *end));
                    behind.extend(
                        seen.into_iter().filter(|(_, _, lag)| *lag).map(|(partition, ..)| partition.to_string()),
                    );
                }
                Err(fault) => behind.push(fault.to_string()),
            }
        }
        self.say(behind.clone(), now);
        behind.is_empty().then_some(ends)
    }

    /// Names what is waited for, when that has changed and at most every five seconds.
    fn say(&mut self, behind: Vec<String>, now: Duration) {
        if !behind.is_empty() && behind != self.said && now.saturating_sub(self.said_at) > Duration::from_secs(5) {
            tracing::info!(waiting_for = behind.join(", "), "not yet worked off by the group");
            self.said_at = now;
            self.said = behind;
        }
    }
}

/// Every input partition with its end as readers of committed records see it, and whether the group is behind it or a transaction
/// that is still open may add to it.
fn lagging(shared: &Shared, assignment: &Assignment) -> Result<Vec<(TopicPartition, i64, bool)>, Fault> {
    let spec = assignment.spec();
    let numbers = 0..spec.partitions;
    let partitions: Vec<TopicPartition> = spec
        .inputs
        .iter()
        .flat_map(|input| numbers.clone().map(|partition| TopicPartition::new(input.topic.clone(), partition)))
        .collect();
    let Some(group) = assignment.group() else {
        return Err(Fault::transient("not-joined", "the group is not joined yet"));
    };
    let committed = group.committed(&partitions)?;
    let mut seen = Vec::new();
    for (partition, committed) in partitions.into_iter().zip(committed) {
        let ends = shared.log.ends(&partition)?;
        let behind = committed.offset.is_none_or(|offset| offset < ends.stable) || ends.stable < ends.end;
        // the offset is past parked records
        let lag = behind || delivery::parked(&committed.metadata) > 0;
        seen.push((partition, ends.stable, lag));
    }
    Ok(seen)
}
