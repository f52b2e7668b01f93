//! A record and its one-line JSON form, the same that `pelton produce` and `pelton consume` use with `--format jsonl`.
//!
//! `{"partition":0,"timestamp":5,"key":"a","value":null,"headers":[["name","text"],["name",null]]}`: text where the bytes are
//! UTF-8, `{"hex":"80ff"}` where they are not, null for null.

use serde_json::{Value, json};
use std::fmt;

#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rec {
    /// -1: the key decides.
    pub partition: i32,
    pub offset: i64,
    /// Milliseconds; -1 for none.
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Rec {
    /// A record whose partition its key decides.
    pub fn new(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Rec {
        Rec::raw(Some(key.as_ref()), Some(value.as_ref()))
    }

    pub fn raw(key: Option<&[u8]>, value: Option<&[u8]>) -> Rec {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Rec { partition: -1, timestamp: 1, key: owned(key), value: owned(value), ..Rec::default() }
    }

    pub fn at(mut self, partition: i32) -> Rec {
        self.partition = partition;
        self
    }

    pub fn header(mut self, name: &str, value: Option<&[u8]>) -> Rec {
        self.headers.push((name.to_owned(), value.map(<[u8]>::to_vec)));
        self
    }

    /// The last header of this name, as text.
    pub fn text(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().rev().find(|(n, _)| n == name)?;
        found.1.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn key_text(&self) -> String {
        text(&self.key)
    }

    pub fn value_text(&self) -> String {
        text(&self.value)
    }

    /// One line; the offset only where asked for (transaction markers take offsets, so the two logs differ in them).
    pub fn to_json(&self, with_offset: bool) -> String {
        let headers: Vec<Value> = self.headers.iter().map(|(name, value)| json!([name, bytes(value)])).collect();
        let mut fields = Vec::new();
        let mut add = |name: &str, value: Value| fields.push(format!("\"{name}\":{value}"));
        if self.partition >= 0 {
            add("partition", json!(self.partition));
        }
        if with_offset {
            add("offset", json!(self.offset));
        }
        add("timestamp", json!(self.timestamp));
        add("key", bytes(&self.key));
        add("value", bytes(&self.value));
        add("headers", json!(headers));
        format!("{{{}}}", fields.join(","))
    }

    /// Reads one line; everything may be left out.
    pub fn from_json(line: &str) -> Rec {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("not a JSON line: {e}: {line}"));
        let number = |name: &str, default: i64| value[name].as_i64().unwrap_or(default);
        Rec {
            partition: number("partition", -1) as i32,
            offset: number("offset", 0),
            timestamp: number("timestamp", -1),
            key: from_value(&value["key"]),
            value: from_value(&value["value"]),
            headers: value["headers"].as_array().map(|all| all.iter().map(header).collect()).unwrap_or_default(),
        }
    }

    pub fn all_from_json(text: &str) -> Vec<Rec> {
        text.lines().filter(|line| !line.trim().is_empty()).map(Rec::from_json).collect()
    }
}

/// As a line, with long values cut: a failed test is read by people.
impl fmt::Debug for Rec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut short = self.clone();
        short.value.iter_mut().for_each(|value| value.truncate(100));
        f.write_str(&short.to_json(true))
    }
}

fn text(bytes: &Option<Vec<u8>>) -> String {
    bytes.as_ref().map_or_else(|| "(null)".to_owned(), |b| String::from_utf8_lossy(b).into_owned())
}

fn header(value: &Value) -> (String, Option<Vec<u8>>) {
    (value[0].as_str().expect("a header's name is text").to_owned(), from_value(&value[1]))
}

fn bytes(bytes: &Option<Vec<u8>>) -> Value {
    match bytes {
        None => Value::Null,
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
        },
    }
}

fn from_value(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(map) => Some(decode(map["hex"].as_str().expect("hex is text"))),
        other => Some(other.to_string().into_bytes()),
    }
}

fn decode(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_every_shape() {
        let shapes = [
            Rec::raw(None, None),
            Rec::raw(Some(b""), Some(b"")),
            Rec::raw(Some(&[0x80]), Some(&[0xff, 0xfe, 0])).at(3),
            Rec::new("k", "v").header("h", None).header("h", Some(&[0xc3, 0x28])).header("h", Some(b"")),
        ];
        for rec in shapes {
            assert_eq!(Rec::from_json(&rec.to_json(true)), rec);
        }
    }
}
