//! The dead letter: the record byte for byte, with headers beside its own that say where it came from and why it was given up.

use crate::model::{Failure, Headers, RecordRef};

/// Names of the headers, added after the record's own.
pub const TOPIC: &str = "pelton-source-topic";
pub const PARTITION: &str = "pelton-source-partition";
pub const OFFSET: &str = "pelton-source-offset";
pub const TIMESTAMP: &str = "pelton-source-timestamp";
pub const PROCESSOR: &str = "pelton-processor";
pub const CODE: &str = "pelton-code";
pub const MESSAGE: &str = "pelton-message";
/// Only on a dead letter that did not fit its topic: how many bytes value and key had together before they were cut.
pub const TRUNCATED: &str = "pelton-truncated-from-bytes";

/// A message longer than this is cut, so that a failure's text cannot outgrow its record.
const LONGEST_MESSAGE: usize = 4096;

/// Longest code, and longest name of a detail.
const LONGEST_NAME: usize = 128;
/// Further details are left out.
const MOST_DETAILS: usize = 8;
/// What all of this may add to a record, bytes: [`MOST_DETAILS`] and the message at their longest, with room for the other headers.
pub const ROOM: u64 = 64 << 10;

/// Where the record was read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub topic: &'a str,
    pub partition: u32,
    pub offset: i64,
    pub processor: &'a str,
}

/// A dead letter, ready to be produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Headers,
    pub timestamp: i64,
}

impl DeadLetter {
    pub fn new(source: &Source<'_>, record: RecordRef<'_>, failure: &Failure) -> Self {
        let mut headers = Headers::default();
        headers.push(record.headers);
        let mut add = |name: &str, value: &str| headers.add(name.as_bytes(), Some(value.as_bytes()));
        add(TOPIC, source.topic);
        add(PARTITION, &source.partition.to_string());
        add(OFFSET, &source.offset.to_string());
        add(TIMESTAMP, &record.timestamp.to_string());
        add(PROCESSOR, source.processor);
        add(CODE, cut(&failure.code, LONGEST_NAME));
        add(MESSAGE, cut(&failure.message, LONGEST_MESSAGE));
        for (name, value) in failure.details.iter().take(MOST_DETAILS) {
            add(&format!("pelton-detail-{}", cut(name, LONGEST_NAME)), cut(value, LONGEST_MESSAGE));
        }
        DeadLetter {
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers,
            timestamp: record.timestamp,
        }
    }

    /// Cuts `excess` bytes off the value, and where that is not enough off the key, and says in a header how many bytes both had.
    /// The record itself stays in its source topic at the offset that the headers name.
    pub fn truncate(&mut self, excess: u64) {
        let size = |field: &Option<Vec<u8>>| field.as_ref().map_or(0, Vec::len);
        let note = (size(&self.value) + size(&self.key)).to_string();
        let mut cut = excess as usize + TRUNCATED.len() + note.len() + 8;
        for field in [&mut self.value, &mut self.key].into_iter().flatten() {
            let kept = field.len().saturating_sub(cut);
            cut -= field.len() - kept;
            field.truncate(kept);
        }
        self.headers.add(TRUNCATED.as_bytes(), Some(note.as_bytes()));
    }
}

/// At most `limit` bytes of `text`, ending between characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Column, HeadersRef};

    fn header<'a>(letter: &'a DeadLetter, name: &str) -> Option<Option<&'a [u8]>> {
        letter
            .headers
            .iter()
            .next()
            .and_then(|h| h.iter().filter(|(n, _)| *n == name.as_bytes()).map(|(_, v)| v).last())
    }

    #[test]
    fn the_record_is_kept_byte_for_byte_and_its_headers_come_first() {
        let (names, values): (Column, Column) = ([Some(&b"h"[..])].into_iter().collect(), [None].into_iter().collect());
        let headers = HeadersRef::new(names.view(), values.view());
        let record = RecordRef { key: Some(b"\xff"), value: None, headers, timestamp: -1 };
        let source = Source { topic: "t", partition: 3, offset: 7, processor: "p" };
        let letter = DeadLetter::new(&source, record, &Failure::new("null-key", "why"));
        assert_eq!((letter.key.as_deref(), &letter.value, letter.timestamp), (Some(&b"\xff"[..]), &None, -1));
        let first = letter.headers.iter().next().and_then(|h| h.iter().next());
        assert_eq!(first, Some((&b"h"[..], None)));
        assert_eq!(header(&letter, OFFSET), Some(Some(&b"7"[..])));
        assert_eq!(header(&letter, CODE), Some(Some(&b"null-key"[..])));
    }

    #[test]
    fn a_truncated_letter_says_so() {
        let record = RecordRef { key: None, value: Some(&[7; 1000]), headers: HeadersRef::default(), timestamp: 1 };
        let source = Source { topic: "t", partition: 0, offset: 0, processor: "p" };
        let mut letter = DeadLetter::new(&source, record, &Failure::new("c", "m"));
        letter.truncate(100);
        assert!(letter.value.as_ref().is_some_and(|v| v.len() < 900));
        assert_eq!(header(&letter, TRUNCATED), Some(Some(&b"1000"[..])));
        letter.truncate(u64::from(u32::MAX));
        assert_eq!(letter.value.as_deref(), Some(&b""[..]));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(cut("aä", 2), "a");
        assert_eq!(cut("aä", 9), "aä");
    }
}
