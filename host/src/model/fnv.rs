//! FNV-1a, 64 bits: for what is kept in files and beside offsets, as it is the same in every version of the program. Not for keys that
//! come from outside.

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

pub fn bytes(bytes: &[u8]) -> u64 {
    words(bytes.iter().map(|&byte| u64::from(byte)))
}

/// The same by words in place of bytes.
pub fn words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(BASIS, |hash, word| (hash ^ word).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn the_published_vectors() {
        assert_eq!(
            ["", "a", "foobar"].map(|text| bytes(text.as_bytes())),
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
    }
}
