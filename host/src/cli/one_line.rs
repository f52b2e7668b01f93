//! A writer of log lines in text that keeps each of them one line, whatever a plugin or a broker has put into it.

use std::borrow::Cow;
use std::io::{self, Write};

/// Takes a line at a time, with its end.
pub(super) struct OneLine<W> {
    pub(super) to: W,
    /// Whether escape sequences are the formatter's own; those in what is said, it has escaped already.
    pub(super) colours: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.to.write_all(&one_line(line, self.colours))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The line with everything escaped that would end it, move a terminal's cursor, or change the order of its text.
fn one_line(line: &[u8], colours: bool) -> Cow<'_, [u8]> {
    let (body, end) = line.strip_suffix(b"\n").map_or((line, ""), |body| (body, "\n"));
    let text = String::from_utf8_lossy(body);
    let odd = |c: char| c != '\t' && !(colours && c == '\u{1b}') && (c.is_control() || turns(c));
    if !text.contains(odd) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    for c in text.chars() {
        match odd(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned((out + end).into_bytes())
}

/// Ends a line for some readers, or changes the direction of what follows.
fn turns(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_are_not_touched() {
        for line in ["", "\n", "a\tb \u{e9}\n", "no end"] {
            assert!(matches!(one_line(line.as_bytes(), false), Cow::Borrowed(same) if same == line.as_bytes()));
        }
        assert_eq!(&*one_line(b"\x1b[1mb\n", true), b"\x1b[1mb\n");
    }

    #[test]
    fn what_would_end_a_line_is_escaped() {
        let check = |line: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&one_line(line.as_bytes(), false)), expected);
        };
        check("a\nb\n", "a\\nb\n");
        check("\r\u{1b}[2J\u{85}\n", "\\r\\u{1b}[2J\\u{85}\n");
        check("\u{2028}\u{202e}x", "\\u{2028}\\u{202e}x");
    }
}
