//! The keys of the log's database: numbers big-endian, so that they sort.

/// The counter of topic numbers.
pub(super) const NEXT_NUMBER: &[u8] = b"n";
pub(super) const TOPICS: &[u8] = b"t";

pub(super) fn topic(name: &str) -> Vec<u8> {
    [TOPICS, name.as_bytes()].concat()
}

pub(super) fn partition(number: u32, partition: i32) -> Vec<u8> {
    [b"p", &place(number, partition)[..]].concat()
}

pub(super) fn offset(number: u32, partition: i32, group: &str) -> Vec<u8> {
    [b"o", &place(number, partition)[..], group.as_bytes()].concat()
}

/// Everything that starts with the result belongs to the topic's committed offsets; likewise for its partitions.
pub(super) fn topic_ranges(number: u32) -> [(Vec<u8>, Vec<u8>); 2] {
    let range = |kind: &[u8]| {
        ([kind, &number.to_be_bytes()].concat(), [kind, &(number.wrapping_add(1)).to_be_bytes()].concat())
    };
    [range(b"p"), range(b"o")]
}

pub(super) fn chunk(number: u32, partition: i32, base: i64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&place(number, partition));
    key[8..].copy_from_slice(&base.to_be_bytes());
    key
}

pub(super) fn chunk_base(key: &[u8]) -> i64 {
    key.last_chunk().map_or(0, |base| i64::from_be_bytes(*base))
}

fn place(number: u32, partition: i32) -> [u8; 8] {
    (u64::from(number) << 32 | partition as u32 as u64).to_be_bytes()
}
