//! Records as columns: one flat list per field, the shape in which they cross into a plugin (`wit/plugin.wit`, interface `types`).

/// Byte strings laid end to end. A length of -1 is null, as on Kafka's wire; 0 is an empty string, which is not the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub bytes: Vec<u8>,
    pub lengths: Vec<i32>,
}

/// Record i owns the next `counts[i]` headers. Names may repeat; order is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    pub counts: Vec<u32>,
    pub names: Column,
    pub values: Column,
}

/// Consecutive records of one input partition, in offset order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Index into the processor's inputs.
    pub input: u32,
    pub partition: u32,
    pub offsets: Vec<i64>,
    /// Milliseconds since the epoch; -1 where the record has none.
    pub timestamps: Vec<i64>,
    pub keys: Column,
    pub values: Column,
    pub headers: Headers,
    /// The wall clock when the batch was formed, in milliseconds. Kept when the batch is run again.
    pub now: i64,
    /// How often the first entry was tried before and asked for a retry; 0 the first time. The other entries are at their first try.
    pub attempt: u32,
}

/// One record, borrowed from columns or from a client's buffer.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: HeadersRef<'a>,
    /// Milliseconds since the epoch; -1 for none.
    pub timestamp: i64,
}

/// The headers of one record, borrowed. Names and values run in step.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadersRef<'a> {
    names: ColumnRef<'a>,
    values: ColumnRef<'a>,
}

/// A run of a column's entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColumnRef<'a> {
    bytes: &'a [u8],
    lengths: &'a [i32],
}

impl Column {
    /// Appends one byte string; `None` is null. A string longer than `i32::MAX` cannot come from a log and is cut there.
    pub fn push(&mut self, item: Option<&[u8]>) {
        match item {
            None => self.lengths.push(-1),
            Some(bytes) => {
                let bytes = &bytes[..bytes.len().min(i32::MAX as usize)];
                self.bytes.extend_from_slice(bytes);
                self.lengths.push(bytes.len() as i32);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }

    /// All entries in order, nulls as `None`. Stops early where lengths lie: call [`Column::check`] first on what a guest made.
    pub fn iter(&self) -> Items<'_> {
        self.view().iter()
    }

    pub fn view(&self) -> ColumnRef<'_> {
        ColumnRef { bytes: &self.bytes, lengths: &self.lengths }
    }

    /// Whether the lengths are -1 or more and add up to exactly the bytes that are there.
    pub fn check(&self) -> bool {
        let mut total = 0u64;
        for &length in &self.lengths {
            if length < -1 {
                return false;
            }
            total += length.max(0) as u64;
        }
        total == self.bytes.len() as u64
    }
}

impl<'a> FromIterator<Option<&'a [u8]>> for Column {
    fn from_iter<I: IntoIterator<Item = Option<&'a [u8]>>>(items: I) -> Self {
        let mut column = Column::default();
        items.into_iter().for_each(|item| column.push(item));
        column
    }
}

impl<'a> ColumnRef<'a> {
    pub fn iter(self) -> Items<'a> {
        Items { bytes: self.bytes, lengths: self.lengths.iter() }
    }

    pub fn len(self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(self) -> bool {
        self.lengths.is_empty()
    }
}

/// Entries of a column, in order.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    bytes: &'a [u8],
    lengths: std::slice::Iter<'a, i32>,
}

impl<'a> Items<'a> {
    /// The next `count` entries as a view of their own, skipped here.
    pub fn take_view(&mut self, count: usize) -> ColumnRef<'a> {
        let lengths = self.lengths.as_slice();
        let lengths = &lengths[..count.min(lengths.len())];
        let size = lengths.iter().map(|&n| n.max(0) as usize).sum::<usize>().min(self.bytes.len());
        let (bytes, rest) = self.bytes.split_at(size);
        self.bytes = rest;
        if count > 0 {
            self.lengths.nth(count - 1);
        }
        ColumnRef { bytes, lengths }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let &length = self.lengths.next()?;
        if length < 0 {
            return Some(None);
        }
        let (item, rest) = self.bytes.split_at_checked(length as usize)?;
        self.bytes = rest;
        Some(Some(item))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.lengths.size_hint()
    }
}

impl<'a> HeadersRef<'a> {
    /// Names and values must have the same number of entries; what is over is not seen.
    pub fn new(names: ColumnRef<'a>, values: ColumnRef<'a>) -> Self {
        HeadersRef { names, values }
    }

    pub fn len(self) -> usize {
        self.names.len()
    }

    pub fn is_empty(self) -> bool {
        self.names.is_empty()
    }

    /// Name (never null on a log; null reads as empty) and value of each header in order.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        self.names.iter().map(Option::unwrap_or_default).zip(self.values.iter())
    }
}

impl Headers {
    /// Begins the headers of the next record; [`Headers::add`] fills them.
    pub fn start(&mut self) {
        self.counts.push(0);
    }

    /// Adds a header to the record begun last.
    pub fn add(&mut self, name: &[u8], value: Option<&[u8]>) {
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
            self.names.push(Some(name));
            self.values.push(value);
        }
    }

    pub fn push(&mut self, headers: HeadersRef<'_>) {
        self.start();
        headers.iter().for_each(|(name, value)| self.add(name, value));
    }

    pub fn clear(&mut self) {
        self.counts.clear();
        self.names.clear();
        self.values.clear();
    }

    /// Headers record by record.
    pub fn iter(&self) -> impl Iterator<Item = HeadersRef<'_>> {
        let (mut names, mut values) = (self.names.iter(), self.values.iter());
        self.counts
            .iter()
            .map(move |&count| HeadersRef::new(names.take_view(count as usize), values.take_view(count as usize)))
    }

    /// Whether counts, names and values agree, and no name is null.
    pub fn check(&self) -> bool {
        let total = self.counts.iter().map(|&n| n as u64).sum::<u64>();
        total == self.names.len() as u64
            && total == self.values.len() as u64
            && self.names.check()
            && self.values.check()
            && self.names.lengths.iter().all(|&n| n >= 0)
    }
}

impl Batch {
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Bytes of keys, values and headers.
    pub fn bytes(&self) -> usize {
        let headers = self.headers.names.bytes.len() + self.headers.values.bytes.len();
        self.keys.bytes.len() + self.values.bytes.len() + headers
    }

    pub fn push(&mut self, offset: i64, record: RecordRef<'_>) {
        self.offsets.push(offset);
        self.timestamps.push(record.timestamp);
        self.keys.push(record.key);
        self.values.push(record.value);
        self.headers.push(record.headers);
    }

    /// Empties the batch and keeps its buffers; input and partition stay. What is filled in next is at its first try.
    pub fn clear(&mut self) {
        self.attempt = 0;
        self.offsets.clear();
        self.timestamps.clear();
        self.keys.clear();
        self.values.clear();
        self.headers.clear();
    }

    /// Offset and record, in order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, RecordRef<'_>)> {
        let fields = self.keys.iter().zip(self.values.iter()).zip(self.headers.iter());
        self.offsets.iter().zip(&self.timestamps).zip(fields).map(|((&offset, &timestamp), ((key, value), headers))| {
            (offset, RecordRef { key, value, headers, timestamp })
        })
    }

    /// A batch of its own with the entries `range`, input, partition and `now` kept. The attempt stays with the first entry.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Batch {
        let attempt = if range.start == 0 { self.attempt } else { 0 };
        let mut part =
            Batch { input: self.input, partition: self.partition, now: self.now, attempt, ..Batch::default() };
        self.iter().skip(range.start).take(range.len()).for_each(|(offset, record)| part.push(offset, record));
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_empty_stay_apart() {
        let column: Column = [None, Some(&b""[..]), Some(&b"ab"[..])].into_iter().collect();
        assert_eq!(column.iter().collect::<Vec<_>>(), [None, Some(&b""[..]), Some(&b"ab"[..])]);
        assert!(column.check());
    }

    #[test]
    fn lying_lengths_are_seen_and_never_panic() {
        for lengths in [vec![3], vec![-2], vec![i32::MAX, i32::MAX], vec![1, 0]] {
            let column = Column { bytes: vec![1, 2], lengths };
            assert!(!column.check());
            assert!(column.iter().count() <= 2);
        }
    }

    #[test]
    fn the_attempt_stays_with_the_first_entry() {
        let mut batch = Batch { attempt: 3, ..Batch::default() };
        let record = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: -1 };
        (0..3).for_each(|offset| batch.push(offset, record));
        assert_eq!((batch.slice(0..1).attempt, batch.slice(0..3).attempt, batch.slice(1..3).attempt), (3, 3, 0));
        batch.clear();
        assert_eq!(batch.attempt, 0);
    }

    #[test]
    fn slices_keep_headers_with_their_records() {
        let mut batch = Batch::default();
        for i in 0..4u8 {
            let names: Column = (0..i).map(|_| Some(&b"n"[..])).collect();
            let values: Column = (0..i).map(|n| if n == 1 { None } else { Some(&b"v"[..]) }).collect();
            let headers = HeadersRef::new(names.view(), values.view());
            batch.push(i as i64, RecordRef { key: Some(&[i]), value: None, headers, timestamp: -1 });
        }
        let part = batch.slice(2..4);
        assert_eq!(part.offsets, [2, 3]);
        assert_eq!(part.headers.counts, [2, 3]);
        assert_eq!(part.iter().nth(1).map(|(_, r)| r.headers.iter().nth(1)), Some(Some((&b"n"[..], None))));
        assert!(part.headers.check());
    }
}
