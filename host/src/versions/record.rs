//! What the topic says of one processor: its active version, how it came to it, and the versions before it.

use super::stores::Schema;
use crate::model::Fault;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most versions that a record remembers.
const HISTORY: usize = 20;

/// The active version of a processor's plugin. Numbers only grow: going back is a new record too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub processor: String,
    /// Of the version. A pause keeps it.
    pub sequence: i64,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    pub stores: Vec<Schema>,
    /// The version to go back to where this one fails; `None` where that must not be, or cannot.
    pub previous: Option<String>,
    /// Who made it active, and when in milliseconds since the epoch.
    pub by: String,
    pub time_ms: i64,
    #[serde(default)]
    pub paused: bool,
    /// Newest first; the first is the active version.
    pub history: Vec<Entry>,
}

/// One version that was active, or is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub sequence: i64,
    pub digest: String,
    /// Name and version of the plugin, as it says.
    pub plugin: String,
    pub version: String,
    pub by: String,
    pub time_ms: i64,
    pub how: How,
    pub outcome: Outcome,
}

/// How a version became active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// By the start of a host whose file was new.
    Start,
    Deploy,
    Watch,
    /// A person went back.
    Rollback,
    /// The version after it failed within its probation.
    Probation,
}

/// What became of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Active,
    Replaced,
    /// With the reason.
    RolledBack(String),
}

/// A version that is to become active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub digest: String,
    pub plugin: String,
    pub version: String,
    pub stores: Vec<Schema>,
    pub by: String,
    pub time_ms: i64,
    pub how: How,
    /// Whether hosts go back by themselves where it fails.
    pub can_go_back: bool,
}

impl How {
    pub fn as_str(self) -> &'static str {
        match self {
            How::Start => "start",
            How::Deploy => "deploy",
            How::Watch => "watch",
            How::Rollback => "rollback",
            How::Probation => "probation",
        }
    }
}

impl Record {
    /// The first version that is known of a processor.
    pub fn first(processor: &str, sequence: i64, candidate: Candidate) -> Record {
        Record::of(processor, sequence, candidate, None)
    }

    /// The record after this one. `ended`: what is said of the version that was active.
    pub fn next(&self, candidate: Candidate, ended: Outcome) -> Record {
        let previous = candidate.can_go_back.then(|| self.digest.clone());
        let mut next = Record::of(&self.processor, self.sequence + 1, candidate, previous);
        let mut past = self.history.clone();
        past.iter_mut().take(1).for_each(|entry| entry.outcome = ended.clone());
        next.history.append(&mut past);
        next.history.truncate(HISTORY);
        next.paused = self.paused;
        next
    }

    /// The same version, paused or not.
    pub fn paused(&self, paused: bool) -> Record {
        Record { paused, ..self.clone() }
    }

    /// The version before the active one that was not rolled back.
    pub fn before(&self) -> Option<&Entry> {
        let good = |entry: &&Entry| entry.digest != self.digest && entry.outcome == Outcome::Replaced;
        self.history.iter().skip(1).find(good)
    }

    /// Why the version of this sequence was taken back, where it was.
    pub fn taken_back(&self, sequence: i64) -> Option<&str> {
        let entry = self.history.iter().find(|entry| entry.sequence == sequence)?;
        match &entry.outcome {
            Outcome::RolledBack(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether this component was active, and was gone back from: whoever finds it in a file has not heard of that.
    pub fn was_left(&self, digest: &str) -> bool {
        let Some(at) = self.history.iter().position(|entry| entry.digest == digest) else { return false };
        let after = at.checked_sub(1).and_then(|at| self.history.get(at));
        after.is_some_and(|after| matches!(after.how, How::Rollback | How::Probation))
    }

    /// Until when a failure takes the version back, in milliseconds since the epoch, where that is so for this long.
    pub fn probation_until_ms(&self, length: Duration) -> i64 {
        self.time_ms.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
    }

    pub fn encode(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|error| Fault::fatal("version-encoding", format!("a version: {error}")))
    }

    /// `Fatal` `version-unreadable`: a later release may have written it, and what it says cannot be guessed.
    pub fn decode(value: &[u8]) -> Result<Record, Fault> {
        serde_json::from_slice(value).map_err(|error| {
            Fault::fatal("version-unreadable", format!("a record of the versions topic cannot be read: {error}"))
                .hint("was it written by a later release of pelton, or by somebody else?")
        })
    }

    fn of(processor: &str, sequence: i64, candidate: Candidate, previous: Option<String>) -> Record {
        let Candidate { digest, plugin, version, stores, by, time_ms, how, .. } = candidate;
        let (processor, outcome) = (processor.to_owned(), Outcome::Active);
        let entry = Entry { sequence, digest: digest.clone(), plugin, version, by: by.clone(), time_ms, how, outcome };
        let (paused, history) = (false, vec![entry]);
        Record { processor, sequence, digest, stores, previous, by, time_ms, paused, history }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stores::tests::store;
    use super::*;

    fn candidate(digest: &str, how: How) -> Candidate {
        Candidate {
            digest: digest.into(),
            plugin: "count".into(),
            version: "1".into(),
            stores: vec![store("a", 1, 1)],
            by: "me".into(),
            time_ms: 7,
            how,
            can_go_back: true,
        }
    }

    fn chain() -> Record {
        let first = Record::first("p", 1, candidate("a", How::Start));
        first.next(candidate("b", How::Deploy), Outcome::Replaced)
    }

    #[test]
    fn a_version_follows_another_and_remembers_it() {
        let second = chain();
        assert_eq!((second.sequence, second.digest.as_str(), second.previous.as_deref()), (2, "b", Some("a")));
        let seen: Vec<_> = second.history.iter().map(|entry| (entry.sequence, entry.outcome.clone())).collect();
        assert_eq!(seen, [(2, Outcome::Active), (1, Outcome::Replaced)]);
        let reason = Outcome::RolledBack("trap".into());
        let back = second.next(Candidate { can_go_back: false, ..candidate("a", How::Probation) }, reason.clone());
        assert_eq!((back.sequence, back.digest.as_str(), back.previous), (3, "a", None));
        assert_eq!(back.history[1].outcome, reason);
    }

    #[test]
    fn who_goes_back_by_hand_passes_over_what_has_failed() {
        let second = chain();
        assert_eq!(second.before().map(|entry| entry.digest.as_str()), Some("a"));
        let failed = second.next(candidate("c", How::Deploy), Outcome::Replaced);
        let back = failed.next(candidate("b", How::Probation), Outcome::RolledBack("trap".into()));
        assert_eq!(back.before().map(|entry| entry.digest.as_str()), Some("a"), "not the failed c, not b itself");
        assert_eq!(Record::first("p", 1, candidate("a", How::Start)).before(), None);
    }

    #[test]
    fn what_was_gone_back_from_is_remembered() {
        let second = chain();
        let back = second.next(candidate("a", How::Probation), Outcome::RolledBack("trap".into()));
        assert_eq!((back.taken_back(2), back.taken_back(1), back.taken_back(9)), (Some("trap"), None, None));
        assert_eq!(["a", "b", "c"].map(|digest| back.was_left(digest)), [false, true, false]);
        let third = back.next(candidate("c", How::Deploy), Outcome::Replaced);
        assert_eq!(["a", "b", "c"].map(|digest| third.was_left(digest)), [false, true, false]);
    }

    #[test]
    fn a_pause_is_no_version_and_outlives_one() {
        let paused = chain().paused(true);
        assert_eq!((paused.sequence, paused.history.len()), (2, 2));
        assert!(paused.next(candidate("c", How::Deploy), Outcome::Replaced).paused);
        assert_eq!(paused.paused(false), chain());
    }

    #[test]
    fn the_history_is_bounded_and_everything_is_read_as_written() {
        let mut record = chain();
        for n in 0..50 {
            record = record.next(candidate(&n.to_string(), How::Watch), Outcome::Replaced);
        }
        assert_eq!((record.history.len(), record.sequence), (HISTORY, 52));
        assert_eq!(Record::decode(&record.encode().unwrap()), Ok(record));
        for wrong in ["", "{}", "null", "{\"processor\":1}"] {
            assert_eq!(Record::decode(wrong.as_bytes()).unwrap_err().code, "version-unreadable");
        }
    }
}
