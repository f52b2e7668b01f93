//! What a dead letter's headers say, read strictly: a header that is missing or no number fails the test that reads it.

use crate::record::Rec;

/// Headers that differ between runs that are otherwise equal.
pub const VOLATILE: &[&str] = &["pelton-first-failure", "pelton-last-failure", "pelton-plugin-digest", "pelton-stack"];
/// How names of Kafka Connect's headers begin.
pub const CONNECT: &str = "__connect.";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The input record's place.
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub timestamp: i64,
    pub processor: String,
    pub plugin: String,
    pub version: String,
    pub digest: String,
    pub verdict: String,
    pub code: String,
    pub message: String,
    /// Calls in all.
    pub attempts: u32,
    /// Milliseconds since the epoch.
    pub first: i64,
    pub last: i64,
    /// Empty where the guest was not running.
    pub stack: String,
    /// Bytes of key and value before they were cut; `None` where they are whole.
    pub truncated_from: Option<u64>,
}

impl Letter {
    pub fn of(dead: &Rec) -> Letter {
        let letter = Letter {
            topic: text(dead, "source-topic"),
            partition: number(dead, "source-partition"),
            offset: number(dead, "source-offset"),
            timestamp: number(dead, "source-timestamp"),
            processor: text(dead, "processor"),
            plugin: text(dead, "plugin"),
            version: text(dead, "plugin-version"),
            digest: text(dead, "plugin-digest"),
            verdict: text(dead, "verdict"),
            code: text(dead, "code"),
            message: text(dead, "message"),
            attempts: number(dead, "attempts"),
            first: number(dead, "first-failure"),
            last: number(dead, "last-failure"),
            stack: dead.text("pelton-stack").unwrap_or_default(),
            truncated_from: dead.text("pelton-truncated-from-bytes").map(|n| n.parse().expect("a number of bytes")),
        };
        assert!(0 < letter.first && letter.first <= letter.last, "times of {letter:?}");
        letter
    }

    pub fn all(dead: &[Rec]) -> Vec<Letter> {
        dead.iter().map(Letter::of).collect()
    }
}

/// The record as it was before it became a dead letter: less all headers that are ours or Kafka Connect's.
pub fn original(dead: &Rec) -> Rec {
    let mut record = dead.clone();
    record.headers.retain(|(name, _)| !name.starts_with("pelton-") && !name.starts_with(CONNECT));
    record
}

/// A record whose volatile headers say nothing.
pub fn settled(mut record: Rec) -> Rec {
    let volatile = record.headers.iter_mut().filter(|(name, _)| VOLATILE.contains(&&**name));
    volatile.for_each(|(_, value)| *value = Some(b"...".to_vec()));
    record
}

fn text(dead: &Rec, name: &str) -> String {
    let all: Vec<_> = dead.headers.iter().filter(|(n, _)| n.strip_prefix("pelton-") == Some(name)).collect();
    assert_eq!(all.len(), 1, "one header pelton-{name} in {dead:?}");
    String::from_utf8(all[0].1.clone().expect("a value")).expect("text")
}

fn number<T: std::str::FromStr>(dead: &Rec, name: &str) -> T {
    let text = text(dead, name);
    text.parse().unwrap_or_else(|_| panic!("pelton-{name} is {text:?}, which is no number: {dead:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn dead() -> Rec {
        let fields = [
            ("source-topic", "in"),
            ("source-partition", "1"),
            ("source-offset", "2"),
            ("source-timestamp", "-1"),
            ("processor", "p"),
            ("plugin", "bad"),
            ("plugin-version", "1"),
            ("plugin-digest", "ab"),
            ("verdict", "rejected"),
            ("code", "c"),
            ("message", "m"),
            ("attempts", "3"),
            ("first-failure", "5"),
            ("last-failure", "6"),
        ];
        fields.iter().fold(Rec::new("k", "v").header("own", None), |rec, (name, value)| {
            rec.header(&format!("pelton-{name}"), Some(value.as_bytes()))
        })
    }

    #[test]
    fn what_is_missing_doubled_or_no_number_is_seen() {
        assert_eq!((Letter::of(&dead()).attempts, Letter::of(&dead()).offset), (3, 2));
        let mut missing = dead();
        missing.headers.retain(|(name, _)| name != "pelton-verdict");
        let doubled = dead().header("pelton-attempts", Some(b"4"));
        let mut late = dead();
        late.headers
            .iter_mut()
            .filter(|(name, _)| name == "pelton-first-failure")
            .for_each(|h| h.1 = Some(b"7".into()));
        for wrong in [missing, doubled, late] {
            assert!(catch_unwind(|| Letter::of(&wrong)).is_err(), "{wrong:?}");
        }
        assert_eq!(original(&dead()), Rec::new("k", "v").header("own", None));
    }
}
