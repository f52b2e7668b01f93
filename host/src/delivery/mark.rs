//! Marks: which dead letters have been replayed, as records of a compacted topic beside theirs. A mark is written in the transaction
//! that replays its letter; its key is the letter's place.

use crate::model::Place;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// That a dead letter has been replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, in wall-clock milliseconds since the epoch.
    pub at: i64,
    /// Who: the transactional id.
    pub by: Arc<str>,
    /// Where to: a topic's partition, or `plugin`.
    pub to: Arc<str>,
    /// Id of the topic that the letter is in. A topic that was deleted and made again gives the same places to other letters.
    pub topic: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Json<'a> {
    at: i64,
    #[serde(borrow)]
    by: Cow<'a, str>,
    #[serde(borrow)]
    to: Cow<'a, str>,
    #[serde(borrow)]
    topic: Cow<'a, str>,
}

impl Mark {
    /// The value of the mark's record.
    pub fn encode(&self) -> String {
        let Mark { at, by, to, topic } = self;
        serde_json::json!({"at": at, "by": **by, "to": **to, "topic": **topic}).to_string()
    }

    /// Reads the value of a mark's record. `shared` gives out one copy of each name, as many marks hold the same.
    pub fn decode(value: &[u8], mut shared: impl FnMut(&str) -> Arc<str>) -> Option<Mark> {
        let Json { at, by, to, topic } = serde_json::from_slice(value).ok()?;
        Some(Mark { at, by: shared(&by), to: shared(&to), topic: shared(&topic) })
    }
}

/// The place of the letter that a mark with this key is about; `None` where it is no mark's key.
pub fn marked_place(key: &[u8]) -> Option<Place> {
    std::str::from_utf8(key).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_goes_round() {
        let mark = Mark { at: 7, by: "a-dlq-p".into(), to: "in/3".into(), topic: "Id\"+".into() };
        assert_eq!(Mark::decode(mark.encode().as_bytes(), |name| Arc::from(name)), Some(mark));
        let newer = br#"{"at":1,"by":"b","to":"t","topic":"i","more":[1]}"#;
        assert_eq!(
            Mark::decode(newer, |name| Arc::from(name)).map(|mark| mark.at),
            Some(1),
            "a later version may add to it"
        );
    }

    #[test]
    fn what_is_no_mark_is_told() {
        for wrong in [&b""[..], b"{}", b"\xff", br#"{"at":"1","by":"b","to":"t","topic":"i"}"#] {
            assert_eq!(Mark::decode(wrong, |name| Arc::from(name)), None);
        }
        assert_eq!(marked_place(b"3:7"), Some(Place { partition: 3, offset: 7 }));
        assert_eq!((marked_place(b"\xff"), marked_place(b"3/7")), (None, None));
    }
}
