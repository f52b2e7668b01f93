//! The dead letter: the record byte for byte, with headers beside its own that say where it came from and why it was given up.
//! `docs/dead-letters.md` is the page of the names.

use super::Verdict;
use super::reason::{original, replays};
use crate::config::DeadLetters;
use crate::model::{Failure, Headers, RecordRef};

/// Names of the headers. They stand behind the record's own, this one first.
pub const TOPIC: &str = "pelton-source-topic";
pub const PARTITION: &str = "pelton-source-partition";
pub const OFFSET: &str = "pelton-source-offset";
pub const TIMESTAMP: &str = "pelton-source-timestamp";
pub const PROCESSOR: &str = "pelton-processor";
pub const PLUGIN: &str = "pelton-plugin";
pub const PLUGIN_VERSION: &str = "pelton-plugin-version";
pub const PLUGIN_DIGEST: &str = "pelton-plugin-digest";
pub const VERDICT: &str = "pelton-verdict";
pub const CODE: &str = "pelton-code";
pub const MESSAGE: &str = "pelton-message";
pub const ATTEMPTS: &str = "pelton-attempts";
pub const FIRST_FAILURE: &str = "pelton-first-failure";
pub const LAST_FAILURE: &str = "pelton-last-failure";
/// Frames, innermost first, one a line.
pub const STACK: &str = "pelton-stack";
/// Before the name of each further detail.
pub const DETAIL: &str = "pelton-detail-";
/// How often the record was replayed; also on the record while it is in its source topic again.
pub const REPLAYS: &str = "pelton-replays";
/// Only on a dead letter that did not fit its topic: how many bytes value and key had together before they were cut.
pub const TRUNCATED: &str = "pelton-truncated-from-bytes";
/// Before the names of Kafka Connect's error reporting (KIP-298).
pub const CONNECT: &str = "__connect.errors.";

/// A message longer than this is cut, so that a failure's text cannot outgrow its record.
const LONGEST_MESSAGE: usize = 4096;
const LONGEST_DETAIL: usize = 2048;
const LONGEST_STACK: usize = 8192;
/// Longest code, and longest name of a detail.
const LONGEST_NAME: usize = 128;
/// Further details are left out.
const MOST_DETAILS: usize = 8;
/// What all of this may add to a record, bytes.
pub const ROOM: u64 = 64 << 10;

/// The detail of a failure that has a header of its own.
const STACK_DETAIL: &str = "stack";
/// Where Kafka Connect would have been when a plugin fails.
const CONNECT_STAGE: &str = "TRANSFORMATION";

/// Where the record was read, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub topic: &'a str,
    pub partition: u32,
    pub offset: i64,
    pub processor: &'a str,
    pub plugin: Plugin<'a>,
}

/// The plugin that was running.
#[derive(Clone, Copy, Debug)]
pub struct Plugin<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// SHA-256 of its file, in hex.
    pub digest: &'a str,
}

/// Why and when a record was given up. Times are wall-clock milliseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct Death<'a> {
    pub verdict: Verdict,
    pub failure: &'a Failure,
    /// Calls with the record in all.
    pub attempts: u32,
    pub first_ms: i64,
    pub last_ms: i64,
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
    /// The letter of a record. Headers that an earlier letter of it left there are not kept.
    pub fn new(source: &Source<'_>, record: RecordRef<'_>, death: &Death<'_>, options: &DeadLetters) -> Self {
        let mut headers = Added(original(record.headers));
        headers.origin(source, record.timestamp);
        headers.death(death);
        headers.details(death.failure);
        match replays(record.headers) {
            0 => {}
            count => headers.add(REPLAYS, &count.to_string()),
        }
        if options.connect_headers {
            headers.connect(source, death.failure);
        }
        DeadLetter {
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: headers.0,
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

/// A letter's headers, those that are ours being added.
struct Added(Headers);

impl Added {
    fn add(&mut self, name: &str, value: &str) {
        self.0.add(name.as_bytes(), Some(value.as_bytes()));
    }

    fn origin(&mut self, source: &Source<'_>, timestamp: i64) {
        self.add(TOPIC, source.topic);
        self.add(PARTITION, &source.partition.to_string());
        self.add(OFFSET, &source.offset.to_string());
        self.add(TIMESTAMP, &timestamp.to_string());
        self.add(PROCESSOR, source.processor);
        self.add(PLUGIN, source.plugin.name);
        self.add(PLUGIN_VERSION, cut(source.plugin.version, LONGEST_NAME));
        self.add(PLUGIN_DIGEST, source.plugin.digest);
    }

    fn death(&mut self, death: &Death<'_>) {
        self.add(VERDICT, death.verdict.as_str());
        self.add(CODE, cut(&death.failure.code, LONGEST_NAME));
        self.add(MESSAGE, cut(&death.failure.message, LONGEST_MESSAGE));
        self.add(ATTEMPTS, &death.attempts.to_string());
        self.add(FIRST_FAILURE, &death.first_ms.to_string());
        self.add(LAST_FAILURE, &death.last_ms.to_string());
    }

    fn details(&mut self, failure: &Failure) {
        if let Some(stack) = stack(failure) {
            self.add(STACK, stack);
        }
        for (name, value) in failure.details.iter().filter(|(name, _)| name != STACK_DETAIL).take(MOST_DETAILS) {
            self.add(&format!("{DETAIL}{}", cut(name, LONGEST_NAME)), cut(value, LONGEST_DETAIL));
        }
    }

    fn connect(&mut self, source: &Source<'_>, failure: &Failure) {
        let (code, message) = (cut(&failure.code, LONGEST_NAME), cut(&failure.message, LONGEST_MESSAGE));
        let frames: String =
            stack(failure).unwrap_or_default().lines().map(|frame| format!("\n\tat {frame}")).collect();
        let (partition, offset) = (source.partition.to_string(), source.offset.to_string());
        let trace = format!("{code}: {message}{frames}");
        for (name, value) in [
            ("topic", source.topic),
            ("partition", partition.as_str()),
            ("offset", offset.as_str()),
            ("connector.name", source.processor),
            ("task.id", partition.as_str()),
            ("stage", CONNECT_STAGE),
            ("class.name", source.plugin.name),
            ("exception.class.name", code),
            ("exception.message", message),
            ("exception.stacktrace", cut(&trace, LONGEST_MESSAGE + LONGEST_STACK)),
        ] {
            self.add(&format!("{CONNECT}{name}"), value);
        }
    }
}

fn stack(failure: &Failure) -> Option<&str> {
    let (_, stack) = failure.details.iter().find(|(name, _)| name == STACK_DETAIL)?;
    Some(cut(stack, LONGEST_STACK))
}

/// At most `limit` bytes of `text`, ending between characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::batch_size;
    use crate::model::{Column, HeadersRef};

    const SOURCE: Source<'static> = Source {
        topic: "t",
        partition: 3,
        offset: 7,
        processor: "p",
        plugin: Plugin { name: "count", version: "1.2.3", digest: "abc" },
    };

    fn death(failure: &Failure) -> Death<'_> {
        Death { verdict: Verdict::Broke, failure, attempts: 2, first_ms: 10, last_ms: 20 }
    }

    fn letter(record: RecordRef<'_>, failure: &Failure, connect_headers: bool) -> DeadLetter {
        let options = DeadLetters { connect_headers, ..DeadLetters::default() };
        DeadLetter::new(&SOURCE, record, &death(failure), &options)
    }

    fn bare(value: &[u8]) -> RecordRef<'_> {
        RecordRef { key: None, value: Some(value), headers: HeadersRef::default(), timestamp: 1 }
    }

    fn as_record(letter: &DeadLetter) -> RecordRef<'_> {
        let headers = letter.headers.iter().next().unwrap_or_default();
        RecordRef { key: letter.key.as_deref(), value: letter.value.as_deref(), headers, timestamp: letter.timestamp }
    }

    fn all(letter: &DeadLetter) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = letter.headers.iter().next().unwrap();
        headers.iter().map(|(name, value)| (text(name), text(value.unwrap_or(b"null")))).collect()
    }

    #[test]
    fn the_record_is_kept_byte_for_byte_and_every_header_is_as_documented() {
        let (names, values): (Column, Column) = ([Some(&b"h"[..])].into_iter().collect(), [None].into_iter().collect());
        let headers = HeadersRef::new(names.view(), values.view());
        let record = RecordRef { key: Some(b"\xff"), value: None, headers, timestamp: -1 };
        let mut failure = Failure::new("trap", "why");
        failure.details = vec![("stack".into(), "a\nb".into()), ("location".into(), "l:1".into())];
        let letter = letter(record, &failure, false);
        assert_eq!((letter.key.as_deref(), &letter.value, letter.timestamp), (Some(&b"\xff"[..]), &None, -1));
        let expected = [
            ("h", "null"),
            ("pelton-source-topic", "t"),
            ("pelton-source-partition", "3"),
            ("pelton-source-offset", "7"),
            ("pelton-source-timestamp", "-1"),
            ("pelton-processor", "p"),
            ("pelton-plugin", "count"),
            ("pelton-plugin-version", "1.2.3"),
            ("pelton-plugin-digest", "abc"),
            ("pelton-verdict", "broke"),
            ("pelton-code", "trap"),
            ("pelton-message", "why"),
            ("pelton-attempts", "2"),
            ("pelton-first-failure", "10"),
            ("pelton-last-failure", "20"),
            ("pelton-stack", "a\nb"),
            ("pelton-detail-location", "l:1"),
        ];
        assert_eq!(all(&letter), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn connects_names_are_added_where_asked_for() {
        let mut failure = Failure::new("trap", "why");
        failure.details = vec![("stack".into(), "a\nb".into())];
        let headers = all(&letter(bare(b"v"), &failure, true));
        let expected = [
            ("topic", "t"),
            ("partition", "3"),
            ("offset", "7"),
            ("connector.name", "p"),
            ("task.id", "3"),
            ("stage", "TRANSFORMATION"),
            ("class.name", "count"),
            ("exception.class.name", "trap"),
            ("exception.message", "why"),
            ("exception.stacktrace", "trap: why\n\tat a\n\tat b"),
        ];
        let expected = expected.map(|(name, value)| (format!("__connect.errors.{name}"), value.to_owned()));
        assert_eq!(headers[headers.len() - 10..], expected);
    }

    /// B51: a record that fails, is replayed and fails again has a letter as large as the first.
    #[test]
    fn the_twentieth_letter_is_as_large_as_the_first() {
        let failure = Failure::new("bad", "why");
        let mut headers = Headers::default();
        headers.push(HeadersRef::default());
        headers.add(b"own", Some(b"1"));
        headers.add(b"__connect.errors.topic", Some(b"of somebody before us"));
        let own = headers.clone();
        let mut sizes = Vec::new();
        for pass in 0..20u32 {
            let record = RecordRef { headers: headers.iter().next().unwrap(), ..bare(b"v") };
            let letter = letter(record, &failure, true);
            assert_eq!(all(&letter).iter().filter(|(name, _)| name == REPLAYS).count(), usize::from(pass > 0));
            sizes.push(batch_size(&as_record(&letter)));
            // what a replay does
            let letter_headers = letter.headers.iter().next().unwrap();
            assert_eq!((original(letter_headers), replays(letter_headers)), (own.clone(), pass));
            headers = original(letter_headers);
            headers.add(REPLAYS.as_bytes(), Some((pass + 1).to_string().as_bytes()));
        }
        assert!(sizes[19] - sizes[0] < 32, "{sizes:?}");
    }

    #[test]
    fn a_letter_of_a_letter_has_one_set_of_headers() {
        let failure = Failure::new("bad", "why");
        let first = letter(bare(b"v"), &failure, true);
        let second = letter(as_record(&first), &failure, true);
        assert_eq!(first, second);
    }

    #[test]
    fn a_truncated_letter_says_so() {
        let mut letter = letter(bare(&[7; 1000]), &Failure::new("c", "m"), false);
        letter.truncate(100);
        assert!(letter.value.as_ref().is_some_and(|v| v.len() < 900));
        assert_eq!(all(&letter).last(), Some(&(TRUNCATED.to_owned(), "1000".to_owned())));
        letter.truncate(u64::from(u32::MAX));
        assert_eq!(letter.value.as_deref(), Some(&b""[..]));
    }

    #[test]
    fn what_is_added_has_a_bound() {
        let long = "ä".repeat(100_000);
        let mut failure = Failure::new(&long, long.clone());
        failure.details = (0..100).map(|_| (long.clone(), long.clone())).collect();
        failure.details.push(("stack".to_owned(), "f\n".repeat(100_000)));
        let name = "n".repeat(249);
        let plugin = Plugin { name: &name[..100], version: &long, digest: &name[..64] };
        let source = Source { topic: &name, processor: &name, plugin, ..SOURCE };
        let options = DeadLetters { connect_headers: true, ..DeadLetters::default() };
        let letter = DeadLetter::new(&source, bare(b"v"), &death(&failure), &options);
        let added = batch_size(&as_record(&letter)) - batch_size(&bare(b"v"));
        assert!(added < ROOM - 1024, "{added}");
        assert!(added > ROOM / 2, "the test is about the longest: {added}");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(cut("aä", 2), "a");
        assert_eq!(cut("aä", 9), "aä");
    }
}
