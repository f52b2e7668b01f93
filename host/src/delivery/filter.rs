//! Which dead letters are meant: by code, time, key, place, and whether they were replayed.

use crate::model::Place;

/// What a letter must be. Every part that is set must fit; the default fits every letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFilter {
    /// One of these codes.
    pub codes: Vec<String>,
    /// Given up at this moment or later; wall-clock milliseconds since the epoch.
    pub since: Option<i64>,
    /// Given up before this moment.
    pub until: Option<i64>,
    /// This key; the inner `None` is the null key.
    pub key: Option<Option<Vec<u8>>>,
    /// At one of these places of the dead-letter topic.
    pub places: Vec<Place>,
    pub replayed: Option<bool>,
}

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub struct LetterFacts<'a> {
    pub place: Place,
    pub code: &'a str,
    /// The record's last failure, in wall-clock milliseconds. Where it is not known no bound in time fits.
    pub failed_at: Option<i64>,
    pub key: Option<&'a [u8]>,
    pub replayed: bool,
}

impl LetterFilter {
    pub fn admits(&self, letter: &LetterFacts<'_>) -> bool {
        (self.codes.is_empty() || self.codes.iter().any(|code| code == letter.code))
            && self.since.is_none_or(|since| letter.failed_at.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| letter.failed_at.is_some_and(|at| at < until))
            && self.key.as_ref().is_none_or(|key| key.as_deref() == letter.key)
            && (self.places.is_empty() || self.places.contains(&letter.place))
            && self.replayed.is_none_or(|replayed| replayed == letter.replayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTER: LetterFacts<'_> = LetterFacts {
        place: Place { partition: 1, offset: 7 },
        code: "trap",
        failed_at: Some(1000),
        key: Some(b"k"),
        replayed: false,
    };

    #[track_caller]
    fn check(filter: LetterFilter, expected: bool) {
        assert_eq!(filter.admits(&LETTER), expected, "{filter:?}");
    }

    #[test]
    fn every_part_that_is_set_must_fit() {
        let all = LetterFilter::default;
        check(all(), true);
        check(LetterFilter { codes: vec!["panic".into(), "trap".into()], ..all() }, true);
        check(LetterFilter { codes: vec!["tra".into()], ..all() }, false);
        check(LetterFilter { since: Some(1000), until: Some(1001), ..all() }, true);
        check(LetterFilter { since: Some(1001), ..all() }, false);
        check(LetterFilter { until: Some(1000), ..all() }, false);
        check(LetterFilter { key: Some(Some(b"k".to_vec())), replayed: Some(false), ..all() }, true);
        check(LetterFilter { key: Some(None), ..all() }, false);
        check(LetterFilter { replayed: Some(true), ..all() }, false);
        check(LetterFilter { places: vec![Place { partition: 7, offset: 1 }, LETTER.place], ..all() }, true);
        check(LetterFilter { places: vec![Place { partition: 0, offset: 7 }], ..all() }, false);
        check(LetterFilter { codes: vec!["trap".into()], key: Some(Some(b"".to_vec())), ..all() }, false);
    }

    #[test]
    fn null_and_empty_keys_are_two_things() {
        let (null, empty) = (LetterFacts { key: None, ..LETTER }, LetterFacts { key: Some(b""), ..LETTER });
        let wants_null = LetterFilter { key: Some(None), ..LetterFilter::default() };
        assert!(wants_null.admits(&null) && !wants_null.admits(&empty));
        let wants_empty = LetterFilter { key: Some(Some(vec![])), ..LetterFilter::default() };
        assert!(wants_empty.admits(&empty) && !wants_empty.admits(&null));
    }

    #[test]
    fn no_bound_in_time_fits_an_unknown_time() {
        let unknown = LetterFacts { failed_at: None, ..LETTER };
        assert!(LetterFilter::default().admits(&unknown));
        assert!(!LetterFilter { since: Some(0), ..LetterFilter::default() }.admits(&unknown));
        assert!(!LetterFilter { until: Some(i64::MAX), ..LetterFilter::default() }.admits(&unknown));
    }
}
