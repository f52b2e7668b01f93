//! What the marker says, and its form in the file: which records are with the plugin, and which ones the host has died with.

use std::array;

/// Bytes of the page: one small write.
pub(super) const BYTES: usize = 152;
/// Most records that are remembered: those of several inputs, or several in turn, must not make each other forgotten.
const SUSPECTS: usize = 4;
/// Bytes of one suspect.
const SUSPECT: usize = 24;
/// Version of the form.
const MAGIC: u64 = u64::from_le_bytes(*b"pelton-1");
/// Where the suspects begin, behind magic, number of records, topic, first and last offset.
const HEAD: usize = 40;

/// Records of one input that were handed to the plugin in one call, by their first and last offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) topic: u64,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// A record with which the host died while it was alone with the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspect {
    pub(super) topic: u64,
    pub(super) offset: i64,
    /// Deaths in a row; 0: nobody is suspected.
    pub(super) crashes: u32,
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
        for (index, suspect) in self.suspects.iter().enumerate() {
            let at = HEAD + index * SUSPECT;
            put(&mut bytes, at, &suspect.topic.to_le_bytes());
            put(&mut bytes, at + 8, &suspect.offset.to_le_bytes());
            put(&mut bytes, at + 16, &u64::from(suspect.crashes).to_le_bytes());
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
        let flight = Flight { topic: word(bytes, 16), first: word(bytes, 24) as i64, last: word(bytes, 32) as i64 };
        let suspect = |index: usize| {
            let at = HEAD + index * SUSPECT;
            let crashes = u32::try_from(word(bytes, at + 16)).unwrap_or_default();
            Suspect { topic: word(bytes, at), offset: word(bytes, at + 8) as i64, crashes }
        };
        Page { flight: (word(bytes, 8) == 1).then_some(flight), suspects: array::from_fn(suspect) }
    }

    /// What is to be made of a page that a life of the host left behind: a record that was alone with the plugin is suspected, or
    /// more than before; of several nobody knows.
    pub(super) fn after_death(mut self) -> Page {
        if let Some(flight) = self.flight.take_if(|flight| flight.is_alone()) {
            self.suspect(flight.topic, flight.first);
        }
        self
    }

    pub(super) fn crashes(&self, topic: u64, offset: i64) -> u32 {
        self.find(topic, offset).map_or(0, |at| self.suspects[at].crashes)
    }

    /// Nothing is held against a record any more.
    pub(super) fn clear(&mut self, topic: u64, offset: i64) {
        if let Some(at) = self.find(topic, offset) {
            self.suspects[at] = Suspect::default();
        }
    }

    fn suspect(&mut self, topic: u64, offset: i64) {
        let free = || self.suspects.iter().enumerate().min_by_key(|(_, suspect)| suspect.crashes).map(|(at, _)| at);
        if let Some(at) = self.find(topic, offset).or_else(free) {
            let crashes = self.crashes(topic, offset).saturating_add(1);
            self.suspects[at] = Suspect { topic, offset, crashes };
        }
    }

    fn find(&self, topic: u64, offset: i64) -> Option<usize> {
        let same = |suspect: &Suspect| suspect.crashes > 0 && suspect.topic == topic && suspect.offset == offset;
        self.suspects.iter().position(same)
    }
}

/// FNV-1a: the same in every version of the program, as what is in a file must be.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(BASIS, |hash, &byte| mix(hash, u64::from(byte)))
}

/// The same by words: a page is written twice per call.
fn sum(bytes: &[u8]) -> u64 {
    (0..bytes.len() / 8).fold(BASIS, |hash, at| mix(hash, word(bytes, at * 8)))
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3)
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
        Page { flight: Some(Flight { topic: 1, first, last }), ..Page::default() }
    }

    #[test]
    fn only_a_record_that_was_alone_is_suspected() {
        let batch = flight(5, 9).after_death();
        assert_eq!((batch.flight.map(|f| f.last), batch.crashes(1, 5)), (Some(9), 0));
        let alone = flight(5, 5).after_death();
        assert_eq!((alone.flight, alone.crashes(1, 5), alone.crashes(2, 5), alone.crashes(1, 6)), (None, 1, 0, 0));
        assert_eq!(Page::default().after_death(), Page::default());
    }

    #[test]
    fn deaths_in_a_row_add_up_whatever_else_dies_between() {
        let mut page = Page::default();
        for round in 1..=3 {
            for offset in [5, 8] {
                page.flight = flight(offset, offset).flight;
                page = page.after_death();
                assert_eq!(page.crashes(1, offset), round);
            }
        }
        page.clear(1, 5);
        assert_eq!((page.crashes(1, 5), page.crashes(1, 8)), (0, 3));
    }

    #[test]
    fn the_least_suspected_makes_room() {
        let mut page = Page::default();
        for offset in [1, 1, 2, 2, 3, 4, 4, 5] {
            page.suspect(7, offset);
        }
        assert_eq!([1, 2, 3, 4, 5].map(|offset| page.crashes(7, offset)), [2, 2, 0, 2, 1]);
    }

    fn pages() -> impl Strategy<Value = Page> {
        let suspect = (any::<u64>(), any::<i64>(), any::<u32>());
        let suspect = suspect.prop_map(|(topic, offset, crashes)| Suspect { topic, offset, crashes });
        let flight = (any::<u64>(), any::<i64>(), any::<i64>());
        let flight = flight.prop_map(|(topic, first, last)| Flight { topic, first, last });
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
