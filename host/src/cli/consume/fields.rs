//! Picked fields of a record: of its place, its key, its value's JSON.

use super::At;
use crate::cli::bytes::show;
use serde_json::Value;

/// What a field that is not there is shown as.
const NOTHING: &str = "-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Partition,
    Offset,
    Timestamp,
    Key,
    Value,
    /// Names into the JSON object, outermost first.
    Inside(Vec<String>),
}

impl Field {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "partition" => Field::Partition,
            "offset" => Field::Offset,
            "timestamp" => Field::Timestamp,
            "key" => Field::Key,
            "value" => Field::Value,
            _ => match text.strip_prefix("value.").filter(|path| !path.is_empty()) {
                Some(path) => Field::Inside(path.split('.').map(str::to_owned).collect()),
                None => {
                    return Err(format!(
                        "no field `{text}`; there are key, value, value.NAME, partition, offset, timestamp"
                    ));
                }
            },
        })
    }

    pub(super) fn of(&self, at: &At<'_>) -> String {
        match self {
            Field::Partition => at.partition.to_string(),
            Field::Offset => at.offset.to_string(),
            Field::Timestamp => at.record.timestamp.to_string(),
            Field::Key => show(at.record.key),
            Field::Value => show(at.record.value),
            Field::Inside(path) => inside(at.record.value.unwrap_or_default(), path),
        }
    }
}

fn inside(value: &[u8], path: &[String]) -> String {
    let Ok(json) = serde_json::from_slice::<Value>(value) else { return NOTHING.to_owned() };
    let found = path.iter().try_fold(&json, |json, name| match json {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => json.get(name),
    });
    match found {
        None => NOTHING.to_owned(),
        Some(Value::String(text)) => show(Some(text.as_bytes())),
        Some(other) => other.to_string(),
    }
}
