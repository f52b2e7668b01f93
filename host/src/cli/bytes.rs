//! Bytes for people: what can be read is shown as it is, everything else so that the bytes can be told from it.

/// `null`; plain text as it is; other text quoted as in JSON; bytes that are not UTF-8 as `0x80ff`. No two differ in bytes and look
/// the same.
pub(super) fn show(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "null".to_owned() };
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => text.to_owned(),
        Ok(text) => quoted(text),
        Err(_) => format!("0x{}", hex::encode(bytes)),
    }
}

/// Reads what [`show`] prints; `None` is null. Text that it would quote may come plain, too, where nothing else could be meant.
pub(super) fn parse(text: &str) -> Result<Option<Vec<u8>>, String> {
    if text == "null" {
        return Ok(None);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return hex::decode(digits).map(Some).map_err(|error| format!("bytes are written as 0x80ff: {error}"));
    }
    if text.starts_with('"') {
        let quoted: Result<String, _> = serde_json::from_str(text);
        return quoted.map(|text| Some(text.into_bytes())).map_err(|error| format!("quoted as in JSON: {error}"));
    }
    Ok(Some(text.as_bytes().to_vec()))
}

/// Text of several words for one line: as it is, or quoted where a character would not be seen as what it is.
pub(super) fn one_line(text: &str) -> String {
    let odd = |c: char| c != ' ' && (c.is_whitespace() || c.is_control() || is_invisible(c));
    if text.contains(odd) || text.starts_with('"') { quoted(text) } else { text.to_owned() }
}

/// Nothing that another form could be taken for, and nothing that cannot be seen.
fn is_plain(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || is_invisible(c);
    !text.is_empty() && text != "null" && !text.starts_with("0x") && !text.starts_with('"') && !text.contains(odd)
}

/// Marks that turn the direction of writing, or have no width.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fffd}')
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c != ' ' && (c.is_control() || c.is_whitespace() || is_invisible(c)) => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_look_the_same() {
        let all: &[Option<&[u8]>] = &[
            None,
            Some(b""),
            Some(b"null"),
            Some(b"\"\""),
            Some(b"\"null\""),
            Some(b"a"),
            Some(b"a "),
            Some(b"0x80"),
            Some(b"\x80"),
            Some(b"\x81"),
            Some(b"\x00"),
            Some(b"\0\0\0\0\x07\xff"),
            Some(b"\\u0000"),
            Some("\u{fffd}".as_bytes()),
            Some(b"\xff\xfe"),
            Some("\u{200b}".as_bytes()),
        ];
        let shown: BTreeSet<String> = all.iter().map(|b| show(*b)).collect();
        assert_eq!(shown.len(), all.len(), "{shown:?}");
        assert!(shown.iter().all(|s| !s.contains(char::is_control)));
        for bytes in all {
            assert_eq!(parse(&show(*bytes)).as_ref().map(Option::as_deref), Ok(*bytes), "{}", show(*bytes));
        }
    }

    #[test]
    fn plain_text_may_come_as_it_is() {
        assert_eq!(parse("a b\"c").unwrap().as_deref(), Some(&b"a b\"c"[..]));
        assert_eq!(parse("").unwrap().as_deref(), Some(&b""[..]));
        for wrong in ["0x8", "0xzz", "\"a", "\"a\" b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_keeps_to_its_line() {
        assert_eq!(one_line("what went wrong: it"), "what went wrong: it");
        assert_eq!(one_line("a\nb\u{202e}"), r#""a\nb\u202e""#);
        assert_eq!(one_line("\"a\nb\""), r#""\"a\nb\"""#);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_shown_is_read(bytes in proptest::option::of(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40))) {
            proptest::prop_assert_eq!(parse(&show(bytes.as_deref())), Ok(bytes));
        }

        #[test]
        fn whatever_text_is_shown_is_read(text in ".*") {
            proptest::prop_assert_eq!(parse(&show(Some(text.as_bytes()))), Ok(Some(text.into_bytes())));
        }
    }

    #[test]
    fn the_forms() {
        assert_eq!(show(Some(b"14048")), "14048");
        assert_eq!(show(Some(br#"{"cds":1}"#)), r#"{"cds":1}"#);
        assert_eq!(show(Some(b"a b\t\"")), r#""a b\t\"""#);
        assert_eq!(show(Some(b"\x80\xff")), "0x80ff");
        assert_eq!(show(Some(&[0])), "\"\\u0000\"");
    }
}
