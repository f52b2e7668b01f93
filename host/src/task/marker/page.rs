//! What the marker says, and its form in the file: which records are with the plugin, and which ones the host has died with.

use crate::model::fnv;
use std::array;

/// Bytes of the page: one small write.
pub(super) const BYTES: usize = 216;
/// Most records that are remembered: those of several inputs, or several in turn, must not make each other forgotten.
const SUSPECTS: usize = 4;
/// Bytes of one suspect.
const SUSPECT: usize = 40;
/// Version of the form.
const MAGIC: u64 = u64::from_le_bytes(*b"pelton-2");
/// Where the suspects begin, behind magic, number of records, topic, first and last offset, and how far the call was.
const HEAD: usize = 48;
/// Deaths so near each other, counted from the call's begin, are at one point of it: so many milliseconds, or a quarter of the way.
const NEAR_MS: u64 = 40;

/// Records of one input that were handed to the plugin in one call, by their first and last offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) topic: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// Milliseconds that the call has lasted, as far as is written.
    pub(super) reached_ms: u64,
}

/// A record with which the host died while it was alone with the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspect {
    pub(super) topic: u64,
    pub(super) offset: i64,
    /// Deaths in a row at one point of the call.
    pub(super) crashes: u32,
    /// Deaths in a row wherever the call was; 0: nobody is suspected.
    pub(super) deaths: u32,
    /// How far the call was at those of `crashes`, in milliseconds.
    pub(super) at_ms: u64,
}

impl Suspect {
    /// One death more, `reached_ms` into the call. What a record does to its host it does at one point of its call: a death there again
    /// counts; one further on says that the earlier ones had other causes, as the call has now passed their point; and one before
    /// it has another cause itself, as the call had passed that point.
    fn died(&mut self, reached_ms: u64) {
        self.deaths = self.deaths.saturating_add(1);
        let near = (self.at_ms.max(reached_ms) / 4).max(NEAR_MS);
        if self.crashes == 0 || self.at_ms.abs_diff(reached_ms) <= near {
            self.crashes = self.crashes.saturating_add(1);
            self.at_ms = reached_ms;
        } else if reached_ms > self.at_ms {
            (self.crashes, self.at_ms) = (1, reached_ms);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) flight: Option<Flight>,
    pub(super) suspects: [Suspect; SUSPECTS],
}

impl Flight {
    /// Whether it is one record.
    pub(super) fn is_alone(&self) -> bool {
        self.first == self.last
    }
}

impl Page {
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let flight = self.flight.unwrap_or_default();
        put(&mut bytes, 0, &MAGIC.to_le_bytes());
        put(&mut bytes, 8, &u64::from(self.flight.is_some()).to_le_bytes());
        put(&mut bytes, 16, &flight.topic.to_le_bytes());
        put(&mut bytes, 24, &flight.first.to_le_bytes());
        put(&mut bytes, 32, &flight.last.to_le_bytes());
        put(&mut bytes, 40, &flight.reached_ms.to_le_bytes());
        for (index, suspect) in self.suspects.iter().enumerate() {
            let at = HEAD + index * SUSPECT;
            put(&mut bytes, at, &suspect.topic.to_le_bytes());
            put(&mut bytes, at + 8, &suspect.offset.to_le_bytes());
            put(&mut bytes, at + 16, &u64::from(suspect.crashes).to_le_bytes());
            put(&mut bytes, at + 24, &u64::from(suspect.deaths).to_le_bytes());
            put(&mut bytes, at + 32, &suspect.at_ms.to_le_bytes());
        }
        let sum = sum(&bytes[..BYTES - 8]);
        put(&mut bytes, BYTES - 8, &sum.to_le_bytes());
        bytes
    }

    /// Anything that is not wholly one says nothing: a power cut may tear a page, and nobody is blamed for that.
    pub(super) fn decode(bytes: &[u8]) -> Page {
        if bytes.len() != BYTES || word(bytes, BYTES - 8) != sum(&bytes[..BYTES - 8]) || word(bytes, 0) != MAGIC {
            return Page::default();
        }
        let (topic, reached_ms) = (word(bytes, 16), word(bytes, 40));
        let flight = Flight { topic, first: word(bytes, 24) as i64, last: word(bytes, 32) as i64, reached_ms };
        let suspect = |index: usize| {
            let at = HEAD + index * SUSPECT;
            let count = |at: usize| u32::try_from(word(bytes, at)).unwrap_or_default();
            let (crashes, deaths, at_ms) = (count(at + 16), count(at + 24), word(bytes, at + 32));
            Suspect { topic: word(bytes, at), offset: word(bytes, at + 8) as i64, crashes, deaths, at_ms }
        };
        Page { flight: (word(bytes, 8) == 1).then_some(flight), suspects: array::from_fn(suspect) }
    }

    /// What is to be made of a page that a life of the host left behind: a record that was alone with the plugin is suspected, or
    /// more than before; of several nobody knows.
    pub(super) fn after_death(mut self) -> Page {
        if let Some(flight) = self.flight.take_if(|flight| flight.is_alone()) {
            self.suspect(&flight);
        }
        self
    }

    /// What is held against a record.
    pub(super) fn against(&self, topic: u64, offset: i64) -> Option<&Suspect> {
        self.find(topic, offset).map(|at| &self.suspects[at])
    }

    /// Nothing is held against a record any more.
    pub(super) fn clear(&mut self, topic: u64, offset: i64) {
        if let Some(at) = self.find(topic, offset) {
            self.suspects[at] = Suspect::default();
        }
    }

    fn suspect(&mut self, flight: &Flight) {
        let (topic, offset) = (flight.topic, flight.first);
        let at = self.find(topic, offset).unwrap_or_else(|| {
            let least =
                self.suspects.iter().enumerate().min_by_key(|(_, suspect)| suspect.deaths).map_or(0, |(at, _)| at);
            self.suspects[least] = Suspect { topic, offset, ..Suspect::default() };
            least
        });
        self.suspects[at].died(flight.reached_ms);
    }

    fn find(&self, topic: u64, offset: i64) -> Option<usize> {
        let same = |suspect: &Suspect| suspect.deaths > 0 && suspect.topic == topic && suspect.offset == offset;
        self.suspects.iter().position(same)
    }
}

/// FNV-1a by words: a page is written twice per call.
fn sum(bytes: &[u8]) -> u64 {
    fnv::words((0..bytes.len() / 8).map(|at| word(bytes, at * 8)))
}

fn put(bytes: &mut [u8; BYTES], at: usize, word: &[u8; 8]) {
    bytes[at..at + 8].copy_from_slice(word);
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flight(first: i64, last: i64) -> Page {
        Page { flight: Some(Flight { topic: 1, first, last, reached_ms: 0 }), ..Page::default() }
    }

    fn crashes(page: &Page, topic: u64, offset: i64) -> u32 {
        page.against(topic, offset).map_or(0, |suspect| suspect.crashes)
    }

    #[test]
    fn only_deaths_at_one_point_of_the_call_add_up() {
        let cases: [(&[u64], u32); 8] = [
            (&[0, 0, 0], 3),
            (&[0, 40, 10], 3),
            (&[0, 41], 1),
            (&[900, 1000, 800], 3),
            (&[900, 100, 1000], 2),
            (&[100, 900, 1000], 2),
            (&[500, 250, 900], 1),
            (&[50, 300, 900, 900], 2),
        ];
        for (deaths, expected) in cases {
            let mut suspect = Suspect::default();
            deaths.iter().for_each(|&reached| suspect.died(reached));
            assert_eq!((suspect.crashes, suspect.deaths), (expected, deaths.len() as u32), "{deaths:?}");
        }
    }

    #[test]
    fn only_a_record_that_was_alone_is_suspected() {
        let batch = flight(5, 9).after_death();
        assert_eq!((batch.flight.map(|f| f.last), crashes(&batch, 1, 5)), (Some(9), 0));
        let alone = flight(5, 5).after_death();
        let found = [(1, 5), (2, 5), (1, 6)].map(|(topic, offset)| crashes(&alone, topic, offset));
        assert_eq!((alone.flight, found), (None, [1, 0, 0]));
        assert_eq!(Page::default().after_death(), Page::default());
    }

    #[test]
    fn deaths_in_a_row_add_up_whatever_else_dies_between() {
        let mut page = Page::default();
        for round in 1..=3 {
            for offset in [5, 8] {
                page.flight = flight(offset, offset).flight;
                page = page.after_death();
                assert_eq!(crashes(&page, 1, offset), round);
            }
        }
        page.clear(1, 5);
        assert_eq!((crashes(&page, 1, 5), crashes(&page, 1, 8)), (0, 3));
    }

    #[test]
    fn the_least_suspected_makes_room() {
        let mut page = Page::default();
        for offset in [1, 1, 2, 2, 3, 4, 4, 5] {
            page.suspect(&Flight { topic: 7, first: offset, last: offset, reached_ms: 0 });
        }
        assert_eq!([1, 2, 3, 4, 5].map(|offset| crashes(&page, 7, offset)), [2, 2, 0, 2, 1]);
    }

    fn pages() -> impl Strategy<Value = Page> {
        let suspect = (any::<u64>(), any::<i64>(), any::<u32>(), any::<u32>(), any::<u64>());
        let suspect = suspect.prop_map(|(topic, offset, crashes, deaths, at_ms)| Suspect {
            topic,
            offset,
            crashes,
            deaths,
            at_ms,
        });
        let flight = (any::<u64>(), any::<i64>(), any::<i64>(), any::<u64>());
        let flight = flight.prop_map(|(topic, first, last, reached_ms)| Flight { topic, first, last, reached_ms });
        (prop::option::of(flight), [suspect.clone(), suspect.clone(), suspect.clone(), suspect])
            .prop_map(|(flight, suspects)| Page { flight, suspects })
    }

    proptest! {
        #[test]
        fn a_page_comes_back(page in pages()) {
            prop_assert_eq!(Page::decode(&page.encode()), page);
        }

        #[test]
        fn a_damaged_page_says_nothing(page in pages(), at in 0..BYTES, bit in 0..8u8, cut in 0..BYTES) {
            let mut bytes = page.encode();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Page::decode(&bytes), Page::default());
            prop_assert_eq!(Page::decode(&page.encode()[..cut]), Page::default());
        }
    }
}
