//! What a broker says to a write where too few replicas are in sync: read and written as bytes of Kafka's protocol, so that one broker is
//! enough to see it. (A topic's `min.insync.replicas` does nothing above the number of its replicas.)

/// `NOT_ENOUGH_REPLICAS`: the client tries again.
const ERROR: i16 = 19;
const PRODUCE: i16 = 0;
/// The first version with compact lengths; what is older is not spoken here.
const COMPACT: i16 = 9;

/// The answer to a request (both without the four bytes of length) that writes to `topic`; `None` for every other request.
pub(crate) fn answer(request: &[u8], topic: &str) -> Option<Vec<u8>> {
    let mut request = Reader(request);
    let (key, version, correlation) = (request.i16(), request.i16(), request.i32());
    if key != PRODUCE {
        return None;
    }
    assert!(version >= COMPACT, "a client that produces with version {version}");
    let client = request.i16().max(0);
    request.take(client as usize);
    request.tags();
    request.text(); // the transactional id
    request.take(6); // acknowledgements and time-out
    request.length();
    let name = request.text();
    request.length();
    let partition = request.i32();
    (name == topic.as_bytes()).then(|| refused(correlation, name, partition))
}

fn refused(correlation: i32, topic: &[u8], partition: i32) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(correlation.to_be_bytes());
    out.extend([0, 2]); // no tags; one topic
    length(&mut out, topic.len() + 1);
    out.extend(topic);
    out.push(2); // one partition
    out.extend(partition.to_be_bytes());
    out.extend(ERROR.to_be_bytes());
    (0..3).for_each(|_| out.extend((-1i64).to_be_bytes())); // offset, time, start of the log
    out.extend([1, 0, 0, 0]); // no errors of records, no message, no tags twice
    out.extend(0i32.to_be_bytes()); // not throttled
    out.push(0);
    out
}

/// Seven bits a byte, the least first.
fn length(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads the fields of a request that is known to be whole.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    /// A length that is written as one more; null is none.
    fn length(&mut self) -> usize {
        self.varint().saturating_sub(1)
    }

    fn text(&mut self) -> &'a [u8] {
        let length = self.length();
        self.take(length)
    }

    fn tags(&mut self) {
        assert_eq!(self.varint(), 0, "a request with tags");
    }

    fn varint(&mut self) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.take(1)[0];
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
}
