//! Query strings taken apart: names and values as bytes, as browsers and curl write them.

/// Pairs of name and value in their order; `None` where a `%` stands for nothing.
pub(super) fn pairs(query: &str) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((percent(name)?, percent(value)?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

fn percent(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => nibble(bytes.next()?)? << 4 | nibble(bytes.next()?)?,
            b'+' => b' ',
            byte => byte,
        });
    }
    Some(decoded)
}

fn nibble(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms() {
        let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        assert_eq!(pairs(""), Some(vec![]));
        assert_eq!(pairs("a=b&&c&d=1=2"), Some(vec![pair(b"a", b"b"), pair(b"c", b""), pair(b"d", b"1=2")]));
        assert_eq!(pairs("k%3D=%80+%2b"), Some(vec![pair(b"k=", b"\x80 +")]));
        for wrong in ["a=%", "a=%8", "a=%8g", "%zz", "a=%+1"] {
            assert_eq!(pairs(wrong), None, "{wrong}");
        }
    }
}
