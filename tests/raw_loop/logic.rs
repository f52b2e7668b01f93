//! The two jobs: everything unchanged, or the count of each key. The counts of all partitions are in one hash map, which is right for one member
//! that owns them all, and is never restored.

use std::collections::HashMap;
use std::io::Write;

pub(crate) struct Logic {
    counts: Option<Counts>,
}

#[derive(Default)]
struct Counts {
    places: HashMap<Box<[u8]>, u32>,
    entries: Vec<Entry>,
    /// Entries changed since the last commit, once each.
    changed: Vec<u32>,
    text: Vec<u8>,
}

struct Entry {
    key: Box<[u8]>,
    count: u64,
    changed: bool,
}

impl Logic {
    pub(crate) fn new(counts: bool) -> Logic {
        Logic { counts: counts.then(Counts::default) }
    }

    /// The value of the output.
    pub(crate) fn apply<'a>(&'a mut self, key: Option<&[u8]>, value: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match &mut self.counts {
            None => value,
            Some(counts) => Some(counts.add(key.unwrap_or_default())),
        }
    }

    /// Hands over each key that changed since the last call, with its count.
    pub(crate) fn drain_changes(&mut self, mut each: impl FnMut(&[u8], u64)) {
        let Some(counts) = &mut self.counts else { return };
        for place in counts.changed.drain(..) {
            let entry = &mut counts.entries[place as usize];
            entry.changed = false;
            each(&entry.key, entry.count);
        }
    }
}

impl Counts {
    /// Counts one more; gives the count as text.
    fn add(&mut self, key: &[u8]) -> &[u8] {
        let place = self.place(key);
        let entry = &mut self.entries[place as usize];
        entry.count += 1;
        if !entry.changed {
            entry.changed = true;
            self.changed.push(place);
        }
        self.text.clear();
        write!(self.text, "{}", entry.count).expect("memory takes everything");
        &self.text
    }

    fn place(&mut self, key: &[u8]) -> u32 {
        if let Some(&place) = self.places.get(key) {
            return place;
        }
        let place = self.entries.len() as u32;
        self.places.insert(key.into(), place);
        self.entries.push(Entry { key: key.into(), count: 0, changed: false });
        place
    }
}
