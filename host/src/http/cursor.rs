//! Where a range goes on in the next page, as one word that a caller hands back as it is.

/// A partition and the first key that has not been given yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub partition: i32,
    pub key: Vec<u8>,
}

impl Cursor {
    pub(super) fn show(&self) -> String {
        format!("{}-{}", self.partition, hex::encode(&self.key))
    }

    pub(super) fn parse(text: &str) -> Option<Cursor> {
        let (partition, key) = text.split_once('-')?;
        let plain = !partition.is_empty() && partition.bytes().all(|b| b.is_ascii_digit());
        let partition = partition.parse().ok().filter(|_| plain)?;
        Some(Cursor { partition, key: hex::decode(key).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        for key in [&b""[..], b"a", b"\x80\xff"] {
            let cursor = Cursor { partition: 7, key: key.to_vec() };
            assert_eq!(Cursor::parse(&cursor.show()), Some(cursor));
        }
        for wrong in ["", "7", "-", "-7-61", "+7-61", "7-6", "7-zz", "99999999999-61", "7 -61"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
