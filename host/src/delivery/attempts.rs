//! What is remembered of a record that is being retried, and its form in the metadata of a committed offset, by which it follows the
//! partition to another host.

use std::fmt::Write;

/// The record at `offset` has failed, and is tried again. Times are wall-clock milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    pub offset: i64,
    /// Failures so far, at least 1.
    pub count: u32,
    pub first_ms: i64,
    pub last_ms: i64,
    /// When it is tried again.
    pub due_ms: i64,
}

/// What every version that this one understands begins with. Fields may be added behind: unknown ones are passed over.
const VERSION: &str = "pelton1";

/// The field that says how many records are parked.
const PARKED: &str = "p";

impl Attempts {
    /// What is remembered after one more failure of the record at `offset`, at `now`; `before` is of the same record.
    pub fn after(before: Option<&Attempts>, offset: i64, now_ms: i64, due_ms: i64) -> Attempts {
        let first_ms = before.map_or(now_ms, |before| before.first_ms);
        let count = before.map_or(0, |before| before.count).saturating_add(1);
        Attempts { offset, count, first_ms, last_ms: now_ms, due_ms }
    }

    /// Text of well under a kilobyte.
    pub fn encode(&self) -> String {
        let Attempts { offset, count, first_ms, last_ms, due_ms } = self;
        let mut text = VERSION.to_owned();
        let _ = write!(text, ";o={offset};n={count};f={first_ms};l={last_ms};d={due_ms}");
        text
    }

    /// What a text says; anything that is not wholly understood is no memory.
    pub fn decode(text: &str) -> Option<Attempts> {
        let mut parts = text.split(';');
        if parts.next() != Some(VERSION) {
            return None;
        }
        let fields: Vec<(&str, &str)> = parts.map(|part| part.split_once('=')).collect::<Option<_>>()?;
        let field = |name: &str| fields.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        let time = |name| field(name)?.parse::<i64>().ok();
        Some(Attempts {
            offset: time("o").filter(|&offset| offset >= 0)?,
            count: field("n")?.parse().ok().filter(|&count| count > 0)?,
            first_ms: time("f")?,
            last_ms: time("l")?,
            due_ms: time("d")?,
        })
    }

    /// What the metadata of a committed offset says of the record there; a memory of any other record is none.
    pub fn recall(metadata: &str, committed: i64) -> Option<Attempts> {
        Attempts::decode(metadata).filter(|attempts| attempts.offset == committed)
    }
}

/// The metadata of a committed offset: `note`, what is said of a record that is being retried or nothing; how many records the task has
/// parked; and its lineage as [`Lineage::encode`](super::Lineage::encode) gives it, or nothing.
pub fn beside(note: &str, parked: usize, lineage: &str) -> String {
    if parked == 0 && lineage.is_empty() {
        return note.to_owned();
    }
    let mut text = if note.is_empty() { VERSION.to_owned() } else { note.to_owned() };
    if parked > 0 {
        let _ = write!(text, ";{PARKED}={parked}");
    }
    if !lineage.is_empty() {
        let _ = write!(text, ";{lineage}");
    }
    text
}

/// How many records a task has parked, as the metadata of its first input's committed offset says: the offset itself is past them.
pub fn parked(metadata: &str) -> usize {
    field(metadata, PARKED).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A field of metadata that this version has written or understands.
pub(super) fn field<'m>(metadata: &'m str, name: &str) -> Option<&'m str> {
    let mut parts = metadata.split(';');
    if parts.next() != Some(VERSION) {
        return None;
    }
    parts.filter_map(|part| part.split_once('=')).find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOME: Attempts = Attempts { offset: 7, count: 3, first_ms: 10, last_ms: 20, due_ms: 30 };

    #[test]
    fn the_text_is_fixed() {
        assert_eq!(SOME.encode(), "pelton1;o=7;n=3;f=10;l=20;d=30");
        assert_eq!(
            Attempts::decode("pelton1;s=9;o=7;new=x=y;n=3;f=10;l=20;d=30"),
            Some(SOME),
            "a later version's field"
        );
    }

    #[test]
    fn what_is_not_understood_is_no_memory() {
        for text in [
            "",
            "pelton1",
            "pelton1;",
            "pelton1;s=9",
            "pelton2;o=7;n=3;f=10;l=20;d=30",
            "PELTON1;o=7;n=3;f=10;l=20;d=30",
            "pelton1;o=7;n=3;f=10;l=20",
            "pelton1;o=7;n=3;f=10;l=20;d=",
            "pelton1;o=7;n=0;f=10;l=20;d=30",
            "pelton1;o=-1;n=3;f=10;l=20;d=30",
            "pelton1;o=7;n=4294967296;f=10;l=20;d=30",
            "pelton1;o=7;n=3;f=10;l=20;d=30;cut",
            "somebody else's",
        ] {
            assert_eq!(Attempts::decode(text), None, "{text}");
        }
        assert_eq!(Attempts::recall(&SOME.encode(), 7), Some(SOME));
        assert_eq!(Attempts::recall(&SOME.encode(), 8), None, "of another record");
    }

    #[test]
    fn the_number_of_parked_records_stands_beside_a_retry_or_alone() {
        for (note, count) in [("", 3), (&*SOME.encode(), 3), (&*SOME.encode(), 0), ("", 0)] {
            let text = beside(note, count, "");
            assert_eq!((parked(&text), Attempts::decode(&text)), (count, Attempts::decode(note)), "{text}");
        }
        assert_eq!(beside("", 0, ""), "");
        assert_eq!(["p=3", "other;p=3", "pelton1;p=x", ""].map(parked), [0; 4]);
    }

    #[test]
    fn one_more_failure_keeps_the_first() {
        let first = Attempts::after(None, 7, 100, 150);
        assert_eq!(first, Attempts { offset: 7, count: 1, first_ms: 100, last_ms: 100, due_ms: 150 });
        let second = Attempts::after(Some(&first), 7, 160, 400);
        assert_eq!(second, Attempts { offset: 7, count: 2, first_ms: 100, last_ms: 160, due_ms: 400 });
    }

    proptest! {
        #[test]
        fn everything_comes_back(
            offset in 0i64.., count in 1u32.., first_ms: i64, last_ms: i64, due_ms: i64
        ) {
            let attempts = Attempts { offset, count, first_ms, last_ms, due_ms };
            let text = attempts.encode();
            prop_assert!(text.len() < 1024);
            prop_assert_eq!(Attempts::decode(&text), Some(attempts));
        }

        #[test]
        fn no_text_is_a_panic(text in any::<String>(), fields in "(pelton1)?(;[onfld]?=?-?[0-9]{0,22}){0,8}") {
            let _ = Attempts::decode(&text);
            if let Some(attempts) = Attempts::decode(&fields) {
                prop_assert_eq!(Attempts::decode(&attempts.encode()), Some(attempts));
            }
        }
    }
}
