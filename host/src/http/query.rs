//! What a request asks for behind its `?`. A name that means nothing there is refused: a misspelt `limt` must not be no limit.

use super::answer::Refusal;
use super::decode::pairs;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Names and values, each name once.
pub(super) struct Query {
    values: BTreeMap<String, Vec<u8>>,
}

impl Query {
    pub(super) fn read(raw: Option<&str>, known: &[&str]) -> Result<Query, Refusal> {
        let found = pairs(raw.unwrap_or_default())
            .ok_or_else(|| bad("behind a `%` in the query there are no two hex digits".to_owned()))?;
        let mut values = BTreeMap::new();
        for (name, value) in found {
            let name = String::from_utf8_lossy(&name).into_owned();
            if !known.contains(&name.as_str()) {
                return Err(unknown(&name, known));
            }
            if values.contains_key(&name) {
                return Err(bad(format!("`{name}` stands twice in the query")));
            }
            values.insert(name, value);
        }
        Ok(Query { values })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        let text = |value: &Vec<u8>| String::from_utf8(value.clone()).map_err(|_| not_text(name));
        self.values.get(name).map(text).transpose()
    }

    /// Text under its name, or any bytes as hex under `NAME_hex`.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let in_hex = format!("{name}_hex");
        let Some(digits) = self.text(&in_hex)? else {
            return Ok(self.text(name)?.map(String::into_bytes));
        };
        if self.has(name) {
            return Err(bad(format!("{name} and {in_hex} stand for the same: give one of them")));
        }
        hex::decode(digits).map(Some).map_err(|error| bad(format!("{in_hex} is no hex: {error}")))
    }

    pub(super) fn number(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| plain && range.contains(number));
        let (least, most) = range.into_inner();
        number.map(Some).ok_or_else(|| bad(format!("{name} is to be a whole number of {least} to {most}")))
    }

    /// `true` or `false`; false where it is not there.
    pub(super) fn switch(&self, name: &str) -> Result<bool, Refusal> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(bad(format!("{name} is to be true or false"))),
        }
    }
}

pub(super) fn bad(message: String) -> Refusal {
    Refusal::bad("bad-query", message)
}

fn not_text(name: &str) -> Refusal {
    bad(format!("{name} is not UTF-8")).hint("bytes go as hex, into key_hex, from_hex, to_hex or prefix_hex")
}

fn unknown(name: &str, known: &[&str]) -> Refusal {
    let start: String = name.chars().take(40).collect();
    let refusal = bad(format!("`{}` means nothing here", start.escape_default()));
    match known {
        [] => refusal.hint("this path takes no query"),
        known => refusal.hint(format!("what may stand in the query: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["key", "key_hex", "limit", "no_rollback"];

    fn read(raw: &str) -> Result<Query, String> {
        Query::read(Some(raw), KNOWN).map_err(|refusal| refusal.message)
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        let refusal = Query::read(Some("limt=1"), KNOWN).map(drop).unwrap_err();
        assert_eq!(refusal.message, "`limt` means nothing here");
        assert_eq!(refusal.hint.as_deref(), Some("what may stand in the query: key, key_hex, limit, no_rollback"));
        assert!(read("key=1&key=2").is_err_and(|said| said.contains("twice")));
        assert!(read("key=%").is_err());
        assert!(read(&"x".repeat(10_000)).is_err_and(|said| said.len() < 100), "not all of it is said again");
    }

    #[test]
    fn bytes_come_as_text_or_as_hex() {
        let bytes = |raw: &str| read(raw).unwrap().bytes("key").map_err(|refusal| refusal.code);
        assert_eq!(bytes("key=a%20b"), Ok(Some(b"a b".to_vec())));
        assert_eq!(bytes("key="), Ok(Some(vec![])));
        assert_eq!(bytes("key_hex=80FF"), Ok(Some(vec![0x80, 0xff])));
        assert_eq!(bytes(""), Ok(None));
        for wrong in ["key=%80", "key_hex=8", "key_hex=zz", "key=a&key_hex=61"] {
            assert_eq!(bytes(wrong), Err("bad-query"), "{wrong}");
        }
    }

    #[test]
    fn numbers_and_switches() {
        let number = |raw: &str| read(raw).unwrap().number("limit", 1..=1000).map_err(|refusal| refusal.code);
        assert_eq!((number("limit=1000"), number("")), (Ok(Some(1000)), Ok(None)));
        for wrong in ["0", "1001", "-1", "+1", "1e3", "", "99999999999999999999", "%C3%A4"] {
            assert_eq!(number(&format!("limit={wrong}")), Err("bad-query"), "{wrong}");
        }
        let switch = |raw: &str| read(raw).unwrap().switch("no_rollback").map_err(|refusal| refusal.code);
        assert_eq!((switch("no_rollback=true"), switch("no_rollback=1")), (Ok(true), Err("bad-query")));
    }
}
