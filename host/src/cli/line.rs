//! A record as one line of JSON, both ways: what `consume` prints as `jsonl`, `produce` takes, and nothing is lost between.

use crate::model::bytes::Bytes;
use crate::model::{HeadersRef, RecordRef};
use serde::{Deserialize, Serialize};

/// One line. Fields that stand for themselves on the way in (`topic`, `offset`) are only for readers.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub partition: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<i64>,
    /// Milliseconds since the epoch; -1 for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timestamp: Option<i64>,
    #[serde(default)]
    pub key: Option<Bytes<'a>>,
    #[serde(default)]
    pub value: Option<Bytes<'a>>,
    /// Pairs of name and value, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub headers: Vec<(Bytes<'a>, Option<Bytes<'a>>)>,
}

impl<'a> Line<'a> {
    pub(super) fn of(partition: i32, offset: i64, record: &RecordRef<'a>) -> Self {
        Line {
            topic: None,
            partition: Some(partition),
            offset: Some(offset),
            timestamp: Some(record.timestamp),
            key: record.key.map(Bytes::of),
            value: record.value.map(Bytes::of),
            headers: headers(record.headers),
        }
    }
}

/// Names and values, in order.
pub(super) fn headers<'a>(headers: HeadersRef<'a>) -> Vec<(Bytes<'a>, Option<Bytes<'a>>)> {
    headers.iter().map(|(name, value)| (Bytes::of(name), value.map(Bytes::of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Column;

    #[test]
    fn nothing_is_lost_between() {
        for key in [None, Some(&b""[..]), Some(b"a"), Some(b"\x80"), Some(b"{\"hex\":\"00\"}"), Some(b"\0")] {
            let names: Column = [Some(&b"n"[..]), Some(b"n"), Some(b"\xff")].into_iter().collect();
            let values: Column = [Some(&b""[..]), None, Some(b"\xc3\x28")].into_iter().collect();
            let headers = HeadersRef::new(names.view(), values.view());
            let record = RecordRef { key, value: None, headers, timestamp: -1 };
            let line = Line::of(3, 7, &record);
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<Line<'_>>(&text).unwrap(), line, "{text}");
        }
    }

    #[test]
    fn the_form() {
        let record = RecordRef { key: Some(b"k"), value: Some(b"\x80"), headers: HeadersRef::default(), timestamp: 5 };
        let text = serde_json::to_string(&Line::of(0, 1, &record)).unwrap();
        assert_eq!(text, r#"{"partition":0,"offset":1,"timestamp":5,"key":"k","value":{"hex":"80"}}"#);
    }

    #[test]
    fn what_is_not_a_record_is_refused() {
        for wrong in ["{\"kye\":\"a\"}", "{\"value\":5}", "{\"value\":{\"hex\":\"8\"}}", "{\"value\":{\"a\":1}}", "5"] {
            assert!(serde_json::from_str::<Line<'_>>(wrong).is_err(), "{wrong}");
        }
    }
}
