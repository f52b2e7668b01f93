//! What a record asks for.

use crate::lie::Lie;

/// The first word of a value, with the number or the word behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Emit the record unchanged: also what an unknown verb means.
    Ok,
    Reject,
    Retry,
    Stop,
    Panic,
    Trap,
    Loop,
    Recurse,
    /// So many blocks of 1 MiB, touched, and kept to the end of the call.
    Alloc(u64),
    /// So many records out.
    Records(u64),
    /// One record out, with a value of so many bytes.
    Bytes(u64),
    /// Columns that do not fit together.
    Lie(Lie),
    /// So many log lines.
    Log(u64),
    /// Log the whole value, as it is.
    Say,
    /// Count under so many names.
    Names(u64),
    /// Measure what is no measure, and one thing that is.
    Measure,
    /// About so many milliseconds of work.
    Busy(u64),
    /// Ask for a retry before this attempt.
    Flaky(u64),
}

impl Verb {
    /// Reads a record's value. What follows the words that count is free text.
    pub(crate) fn parse(value: &[u8]) -> Verb {
        let mut words = value.split(u8::is_ascii_whitespace);
        let (verb, then) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match verb {
            b"reject" => Verb::Reject,
            b"retry" => Verb::Retry,
            b"stop" => Verb::Stop,
            b"panic" => Verb::Panic,
            b"trap" => Verb::Trap,
            b"loop" => Verb::Loop,
            b"recurse" => Verb::Recurse,
            b"alloc" => Verb::Alloc(number(then)),
            b"records" => Verb::Records(number(then)),
            b"bytes" => Verb::Bytes(number(then)),
            b"lie" => Lie::parse(then).map_or(Verb::Ok, Verb::Lie),
            b"log" => Verb::Log(number(then)),
            b"say" => Verb::Say,
            b"names" => Verb::Names(number(then)),
            b"measure" => Verb::Measure,
            b"busy" => Verb::Busy(number(then)),
            b"flaky" => Verb::Flaky(number(then)),
            _ => Verb::Ok,
        }
    }
}

/// What is no number counts as nothing.
fn number(word: &[u8]) -> u64 {
    std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_known() {
        let cases = [
            ("ok", Verb::Ok),
            ("reject", Verb::Reject),
            ("retry", Verb::Retry),
            ("stop", Verb::Stop),
            ("panic", Verb::Panic),
            ("trap", Verb::Trap),
            ("loop", Verb::Loop),
            ("recurse", Verb::Recurse),
            ("alloc 3", Verb::Alloc(3)),
            ("records 4", Verb::Records(4)),
            ("bytes 5", Verb::Bytes(5)),
            ("lie lengths", Verb::Lie(Lie::Lengths)),
            ("lie counts", Verb::Lie(Lie::Counts)),
            ("lie indices", Verb::Lie(Lie::Indices)),
            ("log 6", Verb::Log(6)),
            ("say", Verb::Say),
            ("names 9", Verb::Names(9)),
            ("measure", Verb::Measure),
            ("busy 7", Verb::Busy(7)),
            ("flaky 8", Verb::Flaky(8)),
        ];
        for (value, verb) in cases {
            assert_eq!(Verb::parse(value.as_bytes()), verb, "{value}");
            assert_eq!(Verb::parse(format!("{value} and then free text 9").as_bytes()), verb, "{value}");
        }
    }

    #[test]
    fn what_is_unknown_is_emitted_and_what_is_no_number_is_nothing() {
        for value in ["", " reject", "rejected", "lie", "lie about", "Panic", "\u{ff}"] {
            assert_eq!(Verb::parse(value.as_bytes()), Verb::Ok, "{value:?}");
        }
        for value in ["alloc", "alloc many", "alloc -1", "alloc 99999999999999999999", "alloc  1"] {
            assert_eq!(Verb::parse(value.as_bytes()), Verb::Alloc(0), "{value:?}");
        }
        assert_eq!(Verb::parse(b"\xff\xfe"), Verb::Ok);
    }
}
