//! Ids and random numbers that a replay repeats: functions of where the record comes from and of nothing else.
//!
//! The bytes that are hashed are `application, processor, topic` (each with its length as four big-endian bytes before
//! it), `partition` (4 bytes), `offset` (8), a domain byte (0: id, 1: random, 2: entropy) and `n` (4). An SDK in another language that hashes
//! the same gets the same ids.

use std::fmt;

use sha2::{Digest, Sha256};

/// A 128-bit id, printed as a UUID (version 8: its own scheme).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 16]);

impl Id {
    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) application: &'a str,
    pub(crate) processor: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) partition: u32,
    pub(crate) offset: i64,
}

impl Origin<'_> {
    /// The record's id number `n`: half of a SHA-256, with the bits of a UUID set as RFC 9562 asks.
    pub(crate) fn id(&self, n: u32) -> Id {
        let mut bytes: [u8; 16] = half(&self.digest(0, n));
        bytes[6] = (bytes[6] & 0x0f) | 0x80;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Id(bytes)
    }

    /// The start of the record's random numbers.
    pub(crate) fn random(&self) -> Random {
        let bytes: [u8; 8] = half(&self.digest(1, 0));
        Random(u64::from_be_bytes(bytes))
    }

    /// Part `n` of what crates get that ask the platform for randomness: a whole digest, since a UUID wants more than 64 bits.
    pub(crate) fn entropy(&self, n: u32) -> [u8; 32] {
        self.digest(2, n)
    }

    fn digest(&self, domain: u8, n: u32) -> [u8; 32] {
        let mut hash = Sha256::new();
        for name in [self.application, self.processor, self.topic] {
            hash.update(u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(name.as_bytes());
        }
        hash.update(self.partition.to_be_bytes());
        hash.update(self.offset.to_be_bytes());
        hash.update([domain]);
        hash.update(n.to_be_bytes());
        hash.finalize().into()
    }
}

/// The first bytes of a digest.
fn half<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|index| digest[index])
}

/// SplitMix64: 64 bits of state, each number used once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
