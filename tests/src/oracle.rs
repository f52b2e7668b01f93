//! Judges of outcomes. Each says which key or record is wrong, not only that something is.

use crate::record::Rec;
use std::collections::BTreeMap;

type Bytes = Option<Vec<u8>>;

/// O2, O3: for `count`. Each key's values in the output are exactly 1, 2, … up to the number of its inputs, in that order.
pub fn counts(input: &[Rec], output: &[Rec]) {
    let expected = tally(input);
    let mut found: BTreeMap<Bytes, Vec<String>> = BTreeMap::new();
    output.iter().for_each(|r| found.entry(r.key.clone()).or_default().push(r.value_text()));
    for (key, n) in &expected {
        let values = found.remove(key).unwrap_or_default();
        let right: Vec<String> = (1..=*n).map(|i| i.to_string()).collect();
        assert!(values == right, "key {}: {}", show(key), first_difference(&right, &values));
    }
    assert!(found.is_empty(), "outputs for keys without input: {:?}", found.keys().map(show).collect::<Vec<_>>());
}

/// For `count` at any moment: each key's values are 1, 2, … up to somewhere.
pub fn prefix_counts(output: &[Rec]) {
    let mut last: BTreeMap<Bytes, u64> = BTreeMap::new();
    for record in output {
        let n = last.entry(record.key.clone()).or_insert(0);
        *n += 1;
        assert!(
            record.value_text() == n.to_string(),
            "key {}: {} after {}",
            show(&record.key),
            record.value_text(),
            *n - 1
        );
    }
}

/// At-least-once: no increment is lost. The last value of each key is at least the number of its inputs.
pub fn counts_at_least(input: &[Rec], output: &[Rec]) {
    let last: BTreeMap<Bytes, u64> = output.iter().map(|r| (r.key.clone(), r.value_text().parse().unwrap())).collect();
    for (key, n) in tally(input) {
        let found = last.get(&key).copied().unwrap_or(0);
        assert!(found >= n, "key {}: {found} counted, {n} produced", show(&key));
    }
}

/// O1: every input (known by its unique value) is exactly one output or one dead letter.
pub fn accounting(input: &[Rec], output: &[Rec], dead: &[Rec]) {
    let values = |records: &[Rec]| records.iter().map(|r| r.value.clone()).collect::<Vec<_>>();
    let (mut expected, mut found) = (values(input), values(output));
    found.extend(values(dead));
    expected.sort();
    found.sort();
    let text = |all: &[Bytes]| all.iter().map(show).collect::<Vec<_>>();
    assert!(expected == found, "accounting: {}", first_difference(&text(&expected), &text(&found)));
}

/// O3: for a plugin that passes values on. Outputs of a key are in the order of its inputs.
pub fn order(input: &[Rec], output: &[Rec]) {
    let (expected, found) = (values_by_key(input), values_by_key(output));
    for (key, values) in &found {
        let mut rest = expected.get(key).map(Vec::as_slice).unwrap_or_default().iter();
        let bad = values.iter().find(|&v| !rest.any(|e| e == v));
        assert!(bad.is_none(), "key {}: {} is out of order or foreign", show(key), show(bad.unwrap_or(&None)));
    }
}

/// O4: the same records (partition, key, value, headers) in the same order in each partition.
pub fn same(what: &str, expected: &[Rec], found: &[Rec]) {
    let lines = |records: &[Rec]| records.iter().map(line).collect::<Vec<_>>();
    let (expected, found) = (lines(expected), lines(found));
    assert!(expected == found, "{what}: {}", first_difference(&expected, &found));
}

/// What a compacted topic says in the end: the last value of each key of each partition, tombstones left out.
pub fn view(changelog: &[Rec]) -> BTreeMap<(i32, Bytes), Vec<u8>> {
    let mut view = BTreeMap::new();
    for record in changelog {
        let key = (record.partition, record.key.clone());
        match &record.value {
            Some(value) => drop(view.insert(key, value.clone())),
            None => drop(view.remove(&key)),
        }
    }
    view
}

/// No dead letter blames a record for a crash that a test caused.
pub fn no_host_crash(dead: &[Rec]) {
    let blamed = dead.iter().find(|r| r.headers.iter().any(|(_, v)| v.as_deref() == Some(b"host-crash")));
    assert!(blamed.is_none(), "a random kill was blamed on a record: {blamed:?}");
}

/// The code of a dead letter.
pub fn code(dead: &Rec) -> String {
    let found = dead.headers.iter().find(|(name, _)| name.ends_with("code"));
    found.and_then(|(_, v)| v.clone()).map(|v| String::from_utf8_lossy(&v).into_owned()).unwrap_or_default()
}

fn tally(input: &[Rec]) -> BTreeMap<Bytes, u64> {
    let mut counts = BTreeMap::new();
    input.iter().for_each(|r| *counts.entry(r.key.clone()).or_insert(0) += 1);
    counts
}

fn values_by_key(records: &[Rec]) -> BTreeMap<Bytes, Vec<Bytes>> {
    let mut all: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
    records.iter().for_each(|r| all.entry(r.key.clone()).or_default().push(r.value.clone()));
    all
}

fn line(record: &Rec) -> String {
    Rec { timestamp: 0, offset: 0, ..record.clone() }.to_json(false)
}

fn show(bytes: &Bytes) -> String {
    bytes.as_ref().map_or_else(|| "null".to_owned(), |b| b.escape_ascii().to_string())
}

fn first_difference(expected: &[String], found: &[String]) -> String {
    let at = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or_else(|| expected.len().min(found.len()));
    let get = |list: &[String]| list.get(at).cloned().unwrap_or_else(|| "the end".to_owned());
    format!(
        "{} expected, {} found; number {at}: {} expected, {} found",
        expected.len(),
        found.len(),
        get(expected),
        get(found)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn out(key: &str, value: &str) -> Rec {
        Rec::new(key, value).at(0)
    }

    #[test]
    fn counts_sees_skips_repeats_and_foreign_keys() {
        let input = [Rec::new("a", "x"), Rec::new("b", "y"), Rec::new("a", "z")];
        counts(&input, &[out("a", "1"), out("b", "1"), out("a", "2")]);
        let wrong: [&[(&str, &str)]; 5] = [
            &[("a", "1"), ("b", "1")],
            &[("a", "1"), ("a", "1"), ("b", "1"), ("a", "2")],
            &[("a", "2"), ("a", "1"), ("b", "1")],
            &[("a", "1"), ("b", "1"), ("a", "3")],
            &[("a", "1"), ("b", "1"), ("a", "2"), ("c", "1")],
        ];
        for outputs in wrong {
            let outputs: Vec<Rec> = outputs.iter().map(|(k, v)| out(k, v)).collect();
            assert!(catch_unwind(|| counts(&input, &outputs)).is_err(), "{outputs:?}");
        }
    }

    #[test]
    fn accounting_sees_loss_and_doubles() {
        let input = [Rec::new("a", "1"), Rec::new("a", "2")];
        accounting(&input, &input[..1], &input[1..]);
        assert!(catch_unwind(|| accounting(&input, &input[..1], &[])).is_err());
        assert!(catch_unwind(|| accounting(&input, &input, &input[1..])).is_err());
    }

    #[test]
    fn order_is_by_key() {
        let input = [Rec::new("a", "1"), Rec::new("b", "2"), Rec::new("a", "3")];
        order(&input, &[out("b", "2"), out("a", "1"), out("a", "3")]);
        assert!(catch_unwind(|| order(&input, &[out("a", "3"), out("a", "1")])).is_err());
    }

    #[test]
    fn view_forgets_tombstones() {
        let changelog = [out("a", "1"), out("b", "1"), Rec::raw(Some(b"a"), None).at(0), out("b", "2")];
        assert_eq!(view(&changelog).into_values().collect::<Vec<_>>(), [b"2"]);
    }
}
