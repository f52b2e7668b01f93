//! Bytes in JSON, both ways: text where they are UTF-8, and nothing is lost where they are not.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Text where it is UTF-8, else `{"hex": "80ff"}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes<'a>(pub Cow<'a, [u8]>);

impl<'a> Bytes<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Bytes(Cow::Borrowed(bytes))
    }
}

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("hex", &hex::encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Bytes<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "text or {\"hex\": \"…\"}; a JSON value goes in as text")]
        enum Form {
            Text(String),
            Hex(Hex),
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Hex {
            hex: String,
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Ok(Bytes(Cow::Owned(text.into_bytes()))),
            Form::Hex(Hex { hex }) => hex::decode(&hex).map(|bytes| Bytes(Cow::Owned(bytes))).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between() {
        for (bytes, text) in
            [(&b""[..], "\"\""), (b"a", "\"a\""), (b"\x80\xff", "{\"hex\":\"80ff\"}"), (b"\0", "\"\\u0000\"")]
        {
            assert_eq!(serde_json::to_string(&Bytes::of(bytes)).unwrap(), text);
            assert_eq!(serde_json::from_str::<Bytes<'_>>(text).unwrap(), Bytes::of(bytes));
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for wrong in ["5", "{\"hex\":\"8\"}", "{\"a\":1}", "null"] {
            assert!(serde_json::from_str::<Bytes<'_>>(wrong).is_err(), "{wrong}");
        }
    }
}
