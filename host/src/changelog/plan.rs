//! Whether a store can go on from where it is in its changelog, or has to be rebuilt from it: a pure decision.
//!
//! The rule, in this order:
//! 1. A store without a position is rebuilt. (New, or a rebuild was cut short before it began.)
//! 2. The changelog is another topic than the one the store knows (recreated), or ends before the store's position (it has
//!    lost records): what the store holds and what the changelog holds are two histories, and the store may be the last whole
//!    copy, also where somebody (a host that had not noticed yet) has written into the new topic since. Neither is touched, and
//!    a person chooses (`changelog-recreated`, `changelog-truncated`). A store without data has nothing to lose: rebuilt.
//! 3. The changelog starts after the store's position: records between are gone. Rebuilt from what is left.
//! 4. The store was last up to date longer ago than tombstones are kept, and the changelog has grown since: a deletion may have
//!    been cleaned away unseen. Rebuilt.
//! 5. Otherwise it goes on from its position.

use crate::model::log::{Ends, TopicInfo};
use crate::model::{Fault, TopicPartition};
use crate::state::StoreState;
use std::fmt;

/// How a store gets up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// From its own position, this offset.
    Resume(i64),
    /// Emptied, then from the changelog's start.
    Rebuild(Reason),
}

/// Why a store is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is nothing yet.
    New,
    /// There is data, of no known point.
    NoPosition,
    Recreated,
    /// Position and the changelog's end.
    AfterEnd(i64, i64),
    /// Position and the changelog's start.
    BeforeStart(i64, i64),
    /// Milliseconds since the store was last up to date.
    TombstonesExpired(i64),
}

/// Decides for one store. `known` is what it remembers; `empty` says that it has no data, or none that anybody wants.
pub fn plan(
    known: &StoreState,
    empty: bool,
    changelog: (&TopicPartition, &TopicInfo),
    ends: Ends,
    now_ms: i64,
) -> Result<Plan, Fault> {
    let (place, info) = changelog;
    let Some(position) = &known.changelog else {
        return Ok(Plan::Rebuild(if empty { Reason::New } else { Reason::NoPosition }));
    };
    let away = now_ms.saturating_sub(known.seen_ms);
    let offset = position.offset;
    if position.topic_id != info.id {
        return if empty { Ok(Plan::Rebuild(Reason::Recreated)) } else { Err(recreated(place)) };
    }
    if offset > ends.end {
        let reason = Reason::AfterEnd(offset, ends.end);
        return if empty { Ok(Plan::Rebuild(reason)) } else { Err(truncated(place, offset, ends.end)) };
    }
    if offset < ends.start {
        return Ok(Plan::Rebuild(Reason::BeforeStart(offset, ends.start)));
    }
    if offset < ends.end && away > info.limits.delete_retention_ms {
        return Ok(Plan::Rebuild(Reason::TombstonesExpired(away)));
    }
    Ok(Plan::Resume(offset))
}

fn recreated(place: &TopicPartition) -> Fault {
    let message =
        format!("changelog {place} was deleted and created again, while the store here has data of the old one");
    Fault::fatal("changelog-recreated", message).hint(choice(place))
}

fn truncated(place: &TopicPartition, offset: i64, end: i64) -> Fault {
    let message =
        format!("changelog {place} ends at {end}, while the store here has its records up to offset {offset}");
    Fault::fatal("changelog-truncated", message).hint(choice(place))
}

fn choice(place: &TopicPartition) -> String {
    format!(
        "the store may be the last whole copy: keep it; to bring it back, restore topic {} with its records; to go on with \
         what the topic holds now, delete the folder of the task's stores (stores/PROCESSOR/{}) in the state folder, or begin with an \
         empty store: --new-store PROCESSOR/STORE",
        place.topic, place.partition
    )
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::New => f.write_str("there is no local state"),
            Reason::NoPosition => f.write_str("the local state stands for no known point of the changelog"),
            Reason::Recreated => f.write_str("the changelog was deleted and created again"),
            Reason::AfterEnd(at, end) => write!(f, "the changelog ends at {end}, before the store's position {at}"),
            Reason::BeforeStart(at, start) => {
                write!(f, "the changelog starts at {start}, after the store's position {at}")
            }
            Reason::TombstonesExpired(away) => {
                write!(f, "the store was last up to date {} s ago, longer than deletions are kept", away / 1000)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::log::TopicLimits;
    use crate::state::Position;

    const DAY: i64 = 86_400_000;

    fn decide(
        known: Option<(&str, i64)>,
        empty: bool,
        (start, end): (i64, i64),
        away: i64,
    ) -> Result<Plan, &'static str> {
        let limits = TopicLimits {
            max_message_bytes: 1,
            timestamp_before_ms: 1,
            timestamp_after_ms: 1,
            compact: true,
            delete: false,
            delete_retention_ms: DAY,
        };
        let info = TopicInfo { name: "c".into(), id: "A".into(), partitions: 1, limits };
        let changelog = known.map(|(id, offset)| Position { topic_id: id.into(), offset });
        let known = StoreState { changelog, seen_ms: 1_000, ..StoreState::default() };
        let ends = Ends { start, stable: end, end };
        plan(&known, empty, (&TopicPartition::new("c", 0), &info), ends, 1_000 + away).map_err(|fault| fault.code)
    }

    #[test]
    fn a_store_goes_on_only_from_a_point_of_its_own_changelog() {
        use Plan::{Rebuild, Resume};
        use Reason::*;
        let (full, empty) = (false, true);
        let cases = [
            (None, empty, (0, 9), 0, Ok(Rebuild(New))),
            (None, full, (0, 9), 0, Ok(Rebuild(NoPosition))),
            (Some(("A", 5)), full, (0, 9), 0, Ok(Resume(5))),
            (Some(("A", 9)), full, (0, 9), 0, Ok(Resume(9))),
            (Some(("A", 10)), full, (0, 9), 0, Err("changelog-truncated")),
            (Some(("A", 10)), empty, (0, 9), 0, Ok(Rebuild(AfterEnd(10, 9)))),
            (Some(("A", 10)), full, (0, 0), 0, Err("changelog-truncated")),
            (Some(("A", 2)), full, (3, 9), 0, Ok(Rebuild(BeforeStart(2, 3)))),
            (Some(("A", 3)), full, (3, 9), 0, Ok(Resume(3))),
            (Some(("B", 5)), full, (0, 9), 0, Err("changelog-recreated")),
            (Some(("B", 5)), empty, (0, 9), 0, Ok(Rebuild(Recreated))),
            (Some(("B", 5)), full, (0, 0), 0, Err("changelog-recreated")),
            (Some(("B", 5)), empty, (0, 0), 0, Ok(Rebuild(Recreated))),
            (Some(("A", 5)), full, (0, 9), DAY, Ok(Resume(5))),
            (Some(("A", 5)), full, (0, 9), DAY + 1, Ok(Rebuild(TombstonesExpired(DAY + 1)))),
            (Some(("A", 9)), full, (0, 9), 9 * DAY, Ok(Resume(9))),
        ];
        for (known, empty, ends, away, expected) in cases {
            assert_eq!(decide(known, empty, ends, away), expected, "{known:?} {empty} {ends:?} {away}");
        }
    }
}
