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
