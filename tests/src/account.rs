//! O1 by offset: where each input record ended. Values of inputs are unique, and an output's value names its input.

use crate::letter::Letter;
use crate::record::Rec;
use std::collections::{BTreeMap, HashMap};

/// Partition and offset of an input.
type Place = (i32, i64);

/// How often an input was seen, as an output and as a dead letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fate {
    outputs: usize,
    letters: usize,
}

/// What a job was given, as it was read back, and what it has made of it.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    pub input: &'a [Rec],
    /// With the values of their inputs.
    pub output: &'a [Rec],
    pub dead: &'a [Rec],
}

impl Account<'_> {
    /// Each input ended as one output or as one dead letter.
    pub fn exactly_once(&self) {
        self.check("exactly once", |fate| fate.outputs + fate.letters == 1);
        crate::oracle::no_host_crash(self.dead);
    }

    /// Each input ended as at least one output, or at least one dead letter, and never as both.
    pub fn at_least_once(&self) {
        self.check("at least once", |fate| (fate.outputs > 0) != (fate.letters > 0));
        crate::oracle::no_host_crash(self.dead);
    }

    /// At any moment: every input that is covered by a committed offset, which must have been asked for before the topics were read,
    /// has ended.
    pub fn nothing_passed_over(&self, committed: &[Option<i64>]) {
        let covered = |place: &Place| committed[place.0 as usize].is_some_and(|offset| place.1 < offset);
        let lost = self.fates().into_iter().find(|(place, fate)| covered(place) && *fate == Fate::default());
        assert!(lost.is_none(), "committed past a record that is nowhere: {lost:?}; committed: {committed:?}");
    }

    fn check(&self, what: &str, right: impl Fn(&Fate) -> bool) {
        let fates = self.fates();
        let wrong: Vec<_> = fates.iter().filter(|(_, fate)| !right(fate)).collect();
        let value = |place: &Place| self.input.iter().find(|r| (r.partition, r.offset) == *place).map(Rec::value_text);
        let first = wrong.first().map(|(place, fate)| (place, value(place), fate));
        let mut spread = BTreeMap::<i32, (usize, i64, i64)>::new();
        for &(&(partition, offset), _) in &wrong {
            let (count, _, last) = spread.entry(partition).or_insert((0, offset, offset));
            (*count, *last) = (*count + 1, offset);
        }
        assert!(
            wrong.is_empty(),
            "{what}: {} of {} inputs are wrong; the first: {first:?}; by partition, how many, first and last: {spread:?}",
            wrong.len(),
            fates.len()
        );
    }

    fn fates(&self) -> BTreeMap<Place, Fate> {
        let place = |record: &Rec| (record.partition, record.offset);
        let by_value: HashMap<_, Place> = self.input.iter().map(|r| (&r.value, place(r))).collect();
        assert_eq!(by_value.len(), self.input.len(), "values of inputs are unique");
        let mut fates: BTreeMap<Place, Fate> = self.input.iter().map(|r| (place(r), Fate::default())).collect();
        for output in self.output {
            let place = by_value.get(&output.value).unwrap_or_else(|| panic!("an output without input: {output:?}"));
            fates.entry(*place).or_default().outputs += 1;
        }
        for dead in self.dead {
            let letter = Letter::of(dead);
            let place = (letter.partition, letter.offset);
            let same = letter.truncated_from.is_some() || by_value.get(&dead.value) == Some(&place);
            assert!(same, "a dead letter that is not the record it names: {dead:?}");
            fates.entry(place).or_default().letters += 1;
        }
        fates
    }
}

/// Splits the outputs of `careless`, `COUNT VALUE`, into counts and records with the values of their inputs.
pub fn uncounted(output: &[Rec]) -> (Vec<u64>, Vec<Rec>) {
    let split = |record: &Rec| {
        let text = record.value_text();
        let (count, value) = text.split_once(' ').unwrap_or_else(|| panic!("no output of `careless`: {record:?}"));
        let count: u64 = count.parse().unwrap_or_else(|e| panic!("{e}: {record:?}"));
        (count, Rec { value: Some(value.as_bytes().to_vec()), ..record.clone() })
    };
    output.iter().map(split).unzip()
}

/// O1, O2 and O3 of `careless`: the outputs of each key are its inputs without those that are dead letters, in their order, counted
/// 1, 2, … without a gap. The three must be in the order of their topics.
pub fn tallies(input: &[Rec], output: &[Rec], dead: &[Rec]) {
    let (counts, output) = uncounted(output);
    Account { input, output: &output, dead }.exactly_once();
    let buried: Vec<Place> = dead.iter().map(Letter::of).map(|letter| (letter.partition, letter.offset)).collect();
    let alive = input.iter().filter(|r| !buried.contains(&(r.partition, r.offset)));
    let mut expected: HashMap<_, Vec<String>> = HashMap::new();
    for record in alive {
        let of_key = expected.entry(&record.key).or_default();
        of_key.push(format!("{} {}", of_key.len() + 1, record.value_text()));
    }
    let mut found: HashMap<_, Vec<String>> = HashMap::new();
    for (count, record) in counts.iter().zip(&output) {
        found.entry(&record.key).or_default().push(format!("{count} {}", record.value_text()));
    }
    for (key, expected) in &expected {
        let found = found.remove(key).unwrap_or_default();
        let at =
            expected.iter().zip(&found).position(|(a, b)| a != b).unwrap_or_else(|| expected.len().min(found.len()));
        let key = key.as_ref().map(|key| key.escape_ascii().to_string());
        assert!(*expected == found, "key {key:?}, number {at}: {:?}, not {:?}", found.get(at), expected.get(at));
    }
    assert!(found.is_empty(), "outputs of keys that have none: {:?}", found.keys());
}

/// Outputs of a plugin that passes records on: key, headers and time are those of the inputs.
pub fn unchanged(input: &[Rec], output: &[Rec]) {
    let by_value: HashMap<_, &Rec> = input.iter().map(|r| (&r.value, r)).collect();
    for record in output {
        let input = by_value.get(&record.value).unwrap_or_else(|| panic!("an output without input: {record:?}"));
        let same = (&record.key, record.timestamp, &record.headers) == (&input.key, input.timestamp, &input.headers);
        assert!(same, "{record:?} was {input:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn inputs() -> Vec<Rec> {
        let record =
            |(offset, (key, value)): (usize, (&str, &str))| Rec { offset: offset as i64, ..Rec::new(key, value).at(0) };
        [("a", "1"), ("b", "2"), ("a", "3")].into_iter().enumerate().map(record).collect()
    }

    fn letter(offset: usize) -> Rec {
        let texts = [
            ("source-topic", "in"),
            ("source-partition", "0"),
            ("source-timestamp", "1"),
            ("processor", "p"),
            ("plugin", "bad"),
        ];
        let more =
            [("plugin-version", "1"), ("plugin-digest", "d"), ("verdict", "rejected"), ("code", "c"), ("message", "m")];
        let times = [("attempts", "1"), ("first-failure", "1"), ("last-failure", "1")];
        let all = texts.into_iter().chain(more).chain(times);
        let rec = all.fold(inputs()[offset].clone(), |rec, (name, value)| {
            rec.header(&format!("pelton-{name}"), Some(value.as_bytes()))
        });
        rec.header("pelton-source-offset", Some(offset.to_string().as_bytes()))
    }

    #[test]
    fn loss_doubles_and_letters_of_others_are_seen() {
        let input = inputs();
        let account = |output: &[Rec], dead: &[Rec]| Account { input: &input, output, dead }.exactly_once();
        account(&input[..2], &[letter(2)]);
        let wrong_letter = Rec { value: Some(b"2".to_vec()), ..letter(2) };
        let wrong: [(&[Rec], &[Rec]); 4] = [
            (&input[..2], &[]),
            (&input, &[letter(2)]),
            (&input[..2], &[letter(2), letter(2)]),
            (&input[..2], &[wrong_letter]),
        ];
        for (output, dead) in wrong {
            assert!(catch_unwind(|| account(output, dead)).is_err(), "{output:?} {dead:?}");
        }
    }

    #[test]
    fn offsets_past_a_record_that_is_nowhere_are_seen() {
        let input = inputs();
        let account = Account { input: &input, output: &input[..1], dead: &[letter(1)] };
        account.nothing_passed_over(&[Some(2)]);
        assert!(catch_unwind(|| account.nothing_passed_over(&[Some(3)])).is_err());
    }

    #[test]
    fn tallies_see_gaps_order_and_effects_of_the_dead() {
        let input = inputs();
        let out = |values: &[(&str, &str)]| values.iter().map(|(k, v)| Rec::new(k, v).at(0)).collect::<Vec<_>>();
        tallies(&input, &out(&[("a", "1 1"), ("b", "1 2"), ("a", "2 3")]), &[]);
        tallies(&input, &out(&[("b", "1 2"), ("a", "1 3")]), &[letter(0)]);
        let wrong = [
            (out(&[("a", "1 3"), ("b", "1 2"), ("a", "2 1")]), None),
            (out(&[("a", "1 1"), ("b", "1 2"), ("a", "3 3")]), None),
            (out(&[("b", "1 2"), ("a", "2 3")]), Some(letter(0))),
        ];
        for (output, dead) in wrong {
            assert!(catch_unwind(|| tallies(&input, &output, dead.as_slice())).is_err(), "{output:?}");
        }
    }
}
