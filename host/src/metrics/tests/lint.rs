//! What a linter of Prometheus' text would find wrong with a page: its form, and the conventions of names.

use std::collections::{BTreeMap, HashSet};

/// One sample of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

/// Units that are not base units, and words that the type says already.
const WRONG_WORDS: &[&str] = &[
    "ms",
    "millis",
    "milliseconds",
    "micros",
    "minutes",
    "hours",
    "kb",
    "mb",
    "kilobytes",
    "percent",
    "gauge",
    "histogram",
    "counter",
];

/// The samples of a page that is right; panics with what is wrong.
pub(super) fn lint(page: &str) -> Vec<Sample> {
    assert!(page.is_empty() || page.ends_with('\n'), "the last line ends");
    let (mut types, mut seen) = (BTreeMap::new(), HashSet::new());
    let (mut family, mut samples) = (String::new(), Vec::new());
    let mut helped = String::new();
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a help");
            assert!(!text.is_empty() && !types.contains_key(name), "{name} is told of once");
            helped = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(name, helped, "help comes before the type");
            check_name(name, kind);
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} has one type");
            family = name.to_owned();
        } else {
            let sample = sample(line);
            assert!(belongs(&sample.name, &family, &types), "{line} stands under {family}");
            assert!(!sample.value.is_nan(), "{line}");
            assert!(seen.insert((sample.name.clone(), sample.labels.clone())), "{line} is there twice");
            samples.push(sample);
        }
    }
    types.iter().filter(|(_, kind)| *kind == "histogram").for_each(|(name, _)| check_buckets(name, &samples));
    samples
}

fn belongs(name: &str, family: &str, types: &BTreeMap<String, String>) -> bool {
    let rest = name.strip_prefix(family);
    match types.get(family).map(String::as_str) {
        Some("histogram") => rest.is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest)),
        Some(_) => rest == Some(""),
        None => false,
    }
}

fn check_name(name: &str, kind: &str) {
    assert!(is_word(name) && !name.contains("__"), "{name}");
    assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
    let words: Vec<&str> = name.split('_').collect();
    assert!(!words.iter().any(|word| WRONG_WORDS.contains(word)), "{name}");
    for unit in ["seconds", "bytes", "ratio"] {
        let bare = name.strip_suffix("_total").unwrap_or(name);
        // bytes may have a direction
        let last = ["_in", "_out"].iter().find_map(|way| bare.strip_suffix(way)).unwrap_or(bare).ends_with(unit);
        assert!(!words.contains(&unit) || last, "{name}: the unit comes last");
    }
}

/// Per set of labels: bounds ascend up to +Inf, counts never fall, and the last one is the count.
fn check_buckets(name: &str, samples: &[Sample]) {
    let own = |suffix: &str| {
        let full = format!("{name}{suffix}");
        samples.iter().filter(move |sample| sample.name == full)
    };
    for count in own("_count") {
        let buckets: Vec<(f64, f64)> = own("_bucket")
            .filter(|bucket| bucket.labels[..bucket.labels.len() - 1] == count.labels)
            .map(|bucket| {
                let (label, bound) = bucket.labels.last().expect("a bound");
                assert_eq!(label, "le");
                (number(bound), bucket.value)
            })
            .collect();
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{name}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, count.value)), "{name}");
        assert_eq!(own("_sum").filter(|sum| sum.labels == count.labels).count(), 1, "{name}");
    }
}

fn sample(line: &str) -> Sample {
    let end = line.find([' ', '{']).expect("a name");
    let (name, mut rest) = line.split_at(end);
    assert!(is_word(name), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, quoted) = rest.split_once("=\"").expect("a label");
            assert!(is_word(label) && !label.starts_with("__"), "{line}");
            let (value, after) = unquoted(quoted);
            labels.push((label.to_owned(), value));
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space before the value");
    Sample { name: name.to_owned(), labels, value: number(value) }
}

/// The text up to the closing quote, without its escapes, and what follows.
fn unquoted(text: &str) -> (String, &str) {
    let (mut out, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (out, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, c @ ('\\' | '"'))) => out.push(c),
                other => panic!("{other:?} is no escape"),
            },
            c => out.push(c),
        }
    }
    panic!("no closing quote: {text}")
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        text => text.parse().unwrap_or_else(|_| panic!("{text} is no number")),
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !text.starts_with(|c: char| c.is_ascii_digit())
}
