//! Keys of the park's store: record key, input, offset. One record key's entries are adjacent, those of one input in offset order.

use crate::model::Fault;

/// Longest topic: Kafka's limit is far below, and a byte holds its length.
const LONGEST_TOPIC: usize = 255;

/// Where a parked record was read, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) key: &'a [u8],
    pub(super) topic: &'a str,
    /// Not negative.
    pub(super) offset: i64,
}

/// The length of the record key, the record key, the length of the topic, the topic, the offset; numbers with the high byte first.
/// The input is named by its topic, since its number may be another one tomorrow.
pub(super) fn encode(place: &Place<'_>) -> Vec<u8> {
    let topic = &place.topic.as_bytes()[..place.topic.len().min(LONGEST_TOPIC)];
    let mut bytes = Vec::with_capacity(4 + place.key.len() + 1 + topic.len() + 8);
    bytes.extend((place.key.len() as u32).to_be_bytes());
    bytes.extend(place.key);
    bytes.push(topic.len() as u8);
    bytes.extend(topic);
    bytes.extend(place.offset.to_be_bytes());
    bytes
}

/// `Corrupt` `parked-unreadable` for anything that [`encode`] does not make.
pub(super) fn decode(bytes: &[u8]) -> Result<Place<'_>, Fault> {
    parse(bytes).ok_or_else(|| Fault::corrupt("parked-unreadable", "a parked record's place cannot be read"))
}

fn parse(bytes: &[u8]) -> Option<Place<'_>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (&length, rest) = rest.split_first()?;
    let (topic, rest) = rest.split_at_checked(usize::from(length))?;
    let offset = i64::from_be_bytes(rest.try_into().ok()?);
    Some(Place { key, topic: std::str::from_utf8(topic).ok()?, offset }).filter(|place| place.offset >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..6)
    }

    fn sorted(mut places: Vec<(Vec<u8>, &'static str, i64)>) -> Vec<(Vec<u8>, &'static str, i64)> {
        places.sort_by_key(|(key, topic, offset)| encode(&Place { key, topic, offset: *offset }));
        places
    }

    proptest! {
        #[test]
        fn a_place_comes_back(key in keys(), topic in "[a-zA-Z0-9._-]{0,249}", offset in 0i64..) {
            let place = Place { key: &key, topic: &topic, offset };
            let bytes = encode(&place);
            prop_assert_eq!(decode(&bytes), Ok(place));
        }

        #[test]
        fn other_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(place) = decode(&bytes) {
                prop_assert_eq!(encode(&place), bytes);
            }
        }

        #[test]
        fn entries_of_a_key_are_adjacent_and_those_of_an_input_in_order(
            places in prop::collection::vec((keys(), prop::sample::select(vec!["a", "ab", "b"]), 0i64..300), 0..40)
        ) {
            let sorted = sorted(places);
            let (mut seen, mut last) = (Vec::new(), None);
            for (key, topic, offset) in &sorted {
                match &last {
                    Some((k, t, o)) if *k == key => prop_assert!(t != topic || *o <= *offset),
                    _ => prop_assert!(!seen.contains(&key), "{:?} is in two places", key),
                }
                seen.push(key);
                last = Some((key, *topic, *offset));
            }
        }
    }
}
