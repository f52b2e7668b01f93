//! Reading a dead letter: what its headers say, and what the record's own headers were.

use super::envelope::{
    ATTEMPTS, CODE, CONNECT, DETAIL, FIRST_FAILURE, LAST_FAILURE, MESSAGE, OFFSET, PARTITION, PLUGIN, PLUGIN_DIGEST,
    PLUGIN_VERSION, PROCESSOR, REPLAYS, STACK, TIMESTAMP, TOPIC, TRUNCATED, VERDICT,
};
use crate::model::{Headers, HeadersRef};

/// All names but those of details and of Kafka Connect.
const NAMES: [&str; 17] = [
    TOPIC,
    PARTITION,
    OFFSET,
    TIMESTAMP,
    PROCESSOR,
    PLUGIN,
    PLUGIN_VERSION,
    PLUGIN_DIGEST,
    VERDICT,
    CODE,
    MESSAGE,
    ATTEMPTS,
    FIRST_FAILURE,
    LAST_FAILURE,
    STACK,
    REPLAYS,
    TRUNCATED,
];

/// What a dead letter says of itself. Texts that are not UTF-8 have replacement characters; what is missing is empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Where the record was read.
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    /// The record's, milliseconds since the epoch.
    pub timestamp: Option<i64>,
    pub processor: String,
    pub plugin: String,
    pub plugin_version: String,
    pub plugin_digest: String,
    pub verdict: String,
    pub code: String,
    pub message: String,
    /// Calls with the record in all.
    pub attempts: Option<u32>,
    /// Milliseconds since the epoch.
    pub first_failure: Option<i64>,
    pub last_failure: Option<i64>,
    /// Innermost first.
    pub stack: Vec<String>,
    /// Further details by name.
    pub details: Vec<(String, String)>,
    /// How often the record had been replayed before it failed this time.
    pub replays: u32,
    /// Bytes that key and value had before they were cut; `None` where they are whole.
    pub truncated_from: Option<u64>,
}

impl Reason {
    /// What the headers of a letter say; `None` where they do not name the record's topic, partition and offset.
    pub fn read(headers: HeadersRef<'_>) -> Option<Reason> {
        let number = |name| last(headers, name)?.parse().ok();
        let text = |name| last(headers, name).unwrap_or_default();
        Some(Reason {
            topic: last(headers, TOPIC)?,
            partition: last(headers, PARTITION)?.parse().ok()?,
            offset: number(OFFSET)?,
            timestamp: number(TIMESTAMP),
            processor: text(PROCESSOR),
            plugin: text(PLUGIN),
            plugin_version: text(PLUGIN_VERSION),
            plugin_digest: text(PLUGIN_DIGEST),
            verdict: text(VERDICT),
            code: text(CODE),
            message: text(MESSAGE),
            attempts: last(headers, ATTEMPTS).and_then(|count| count.parse().ok()),
            first_failure: number(FIRST_FAILURE),
            last_failure: number(LAST_FAILURE),
            stack: text(STACK).lines().map(str::to_owned).collect(),
            details: details(headers),
            replays: replays(headers),
            truncated_from: last(headers, TRUNCATED).and_then(|bytes| bytes.parse().ok()),
        })
    }
}

/// The record's own headers, without what a dead letter or a replay has added to them.
pub fn original(headers: HeadersRef<'_>) -> Headers {
    let mut own = Headers::default();
    own.start();
    // Kafka Connect's names may be somebody else's before ours begin
    let mut begun = false;
    for (name, value) in headers.iter() {
        begun |= name == TOPIC.as_bytes();
        if !(is_ours(name) || begun && name.starts_with(CONNECT.as_bytes())) {
            own.add(name, value);
        }
    }
    own
}

/// How often a record, or that of a letter, was replayed.
pub fn replays(headers: HeadersRef<'_>) -> u32 {
    last(headers, REPLAYS).and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn is_ours(name: &[u8]) -> bool {
    name.starts_with(b"pelton-")
        && (NAMES.iter().any(|ours| ours.as_bytes() == name) || name.starts_with(DETAIL.as_bytes()))
}

/// The last value of a name, as Kafka's own `lastHeader` has it.
fn last(headers: HeadersRef<'_>, name: &str) -> Option<String> {
    let (_, value) = headers.iter().filter(|(n, _)| *n == name.as_bytes()).last()?;
    Some(String::from_utf8_lossy(value?).into_owned())
}

fn details(headers: HeadersRef<'_>) -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let own = headers.iter().filter_map(|(name, value)| Some((name.strip_prefix(DETAIL.as_bytes())?, value)));
    own.map(|(name, value)| (text(name), text(value.unwrap_or_default()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeadLetters;
    use crate::delivery::{DeadLetter, Death, Plugin, Source, Verdict};
    use crate::model::{Failure, RecordRef};
    use proptest::prelude::*;

    fn headers(all: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::default();
        headers.start();
        all.iter().for_each(|(name, value)| headers.add(name.as_bytes(), Some(value.as_bytes())));
        headers
    }

    fn view(headers: &Headers) -> HeadersRef<'_> {
        headers.iter().next().unwrap()
    }

    fn letter(record: RecordRef<'_>, failure: &Failure) -> DeadLetter {
        let plugin = Plugin { name: "count", version: "1.2.3", digest: "abc" };
        let source = Source { topic: "t", partition: 3, offset: 7, processor: "p", plugin };
        let death = Death { verdict: Verdict::Exhausted, failure, attempts: 10, first_ms: 100, last_ms: 200 };
        DeadLetter::new(&source, record, &death, &DeadLetters { connect_headers: true, ..DeadLetters::default() })
    }

    #[test]
    fn what_was_written_is_read() {
        let own = headers(&[("h", "1"), ("pelton-replays", "2")]);
        let mut failure = Failure::new("down", "why");
        failure.details = vec![("stack".into(), "a\nb".into()), ("url".into(), "u".into())];
        let record = RecordRef { key: None, value: Some(&[7; 99]), headers: view(&own), timestamp: 5 };
        let mut letter = letter(record, &failure);
        letter.truncate(10);
        let expected = Reason {
            topic: "t".into(),
            partition: 3,
            offset: 7,
            timestamp: Some(5),
            processor: "p".into(),
            plugin: "count".into(),
            plugin_version: "1.2.3".into(),
            plugin_digest: "abc".into(),
            verdict: "exhausted".into(),
            code: "down".into(),
            message: "why".into(),
            attempts: Some(10),
            first_failure: Some(100),
            last_failure: Some(200),
            stack: vec!["a".into(), "b".into()],
            details: vec![("url".into(), "u".into())],
            replays: 2,
            truncated_from: Some(99),
        };
        assert_eq!(Reason::read(view(&letter.headers)), Some(expected));
    }

    #[test]
    fn the_page_names_every_header() {
        let page = include_str!("../../../docs/dead-letters.md");
        let mut failure = Failure::new("trap", "why");
        failure.details = vec![("stack".into(), "f".into())];
        let record = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: 5 };
        let letter = letter(record, &failure);
        let written = view(&letter.headers).iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        for name in written.chain(NAMES.map(str::to_owned)).chain([format!("{DETAIL}NAME")]) {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn a_record_that_is_no_letter_has_no_reason() {
        assert_eq!(Reason::read(HeadersRef::default()), None);
        let source = [("pelton-source-topic", "t"), ("pelton-source-partition", "3"), ("pelton-source-offset", "7")];
        assert!(Reason::read(view(&headers(&source))).is_some(), "the least that is needed");
        for without in 0..3 {
            let part: Vec<_> =
                source.iter().copied().enumerate().filter(|(i, _)| *i != without).map(|(_, h)| h).collect();
            assert_eq!(Reason::read(view(&headers(&part))), None);
        }
    }

    #[test]
    fn only_ours_are_taken_off() {
        let own =
            [("pelton-colour", "a user's own"), ("__connect.errors.topic", "an earlier system's"), ("", "no name")];
        let ours = [("pelton-source-topic", "t"), ("pelton-detail-x", "d"), ("__connect.errors.topic", "t")];
        let behind = [("trace", "a tool's"), ("pelton-replays", "3"), ("pelton-replays", "4")];
        let all = headers(&[&own[..], &ours, &behind].concat());
        let kept = headers(&[&own[..], &behind[..1]].concat());
        assert_eq!((original(view(&all)), replays(view(&all))), (kept, 4));
    }

    proptest! {
        #[test]
        fn a_letter_gives_back_the_records_own_headers(
            own in prop::collection::vec(("[a-z_.-]{0,12}", prop::option::of(prop::collection::vec(any::<u8>(), 0..20))), 0..5)
        ) {
            let mut headers = Headers::default();
            headers.start();
            own.iter().for_each(|(name, value)| headers.add(name.as_bytes(), value.as_deref()));
            let record = RecordRef { key: None, value: None, headers: view(&headers), timestamp: 5 };
            let letter = letter(record, &Failure::new("bad", "why"));
            prop_assert_eq!(original(view(&letter.headers)), headers);
        }

        #[test]
        fn no_headers_are_a_panic(
            all in prop::collection::vec((prop::sample::select(NAMES.to_vec()), prop::collection::vec(any::<u8>(), 0..20)), 0..20)
        ) {
            let mut headers = Headers::default();
            headers.start();
            all.iter().for_each(|(name, value)| headers.add(name.as_bytes(), Some(value)));
            let _ = Reason::read(view(&headers));
            prop_assert_eq!(original(view(&headers)).names.len(), 0);
        }
    }
}
