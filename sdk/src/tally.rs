//! What a plugin counts and measures itself: gathered over a call, and handed to the host at its end, since a call of the host costs as
//! much as many additions.

/// Most values that are handed over at a time.
const AT_A_TIME: usize = 1 << 14;
/// Most names of a call, of counts and of values. The host takes fewer, and says so.
const NAMES: usize = 64;

/// Takes counts and values.
pub(crate) type Report = fn(counts: &[(String, u64)], values: &[(String, Vec<f64>)]);

/// The numbers of a call so far.
pub(crate) struct Tally {
    report: Report,
    counts: Vec<(String, u64)>,
    values: Vec<(String, Vec<f64>)>,
    /// What the record that counted last has done, so that it can be undone.
    last: (u32, Vec<Deed>),
    changed: bool,
}

/// An addition, by the number of its name.
#[derive(Clone, Copy)]
enum Deed {
    Counted(usize, u64),
    Observed(usize),
}

impl Tally {
    #[cold]
    pub(crate) fn new(report: Report) -> Tally {
        Tally { report, counts: Vec::new(), values: Vec::new(), last: (0, Vec::new()), changed: false }
    }

    pub(crate) fn count(&mut self, entry: u32, name: &str, more: u64) {
        if let Some(at) = number(&mut self.counts, name) {
            let count = &mut self.counts[at].1;
            // what the counter has no room for is not undone either
            let more = more.min(u64::MAX - *count);
            *count += more;
            self.note(entry, Deed::Counted(at, more));
        }
    }

    pub(crate) fn observe(&mut self, entry: u32, name: &str, value: f64) {
        if let Some(at) = number(&mut self.values, name) {
            self.values[at].1.push(value);
            self.note(entry, Deed::Observed(at));
        }
    }

    /// Takes back what the record `entry` has counted; it is the last one that did anything.
    pub(crate) fn undo(&mut self, entry: u32) {
        if self.last.0 == entry {
            for deed in self.last.1.drain(..) {
                match deed {
                    Deed::Counted(at, more) => self.counts[at].1 -= more,
                    Deed::Observed(at) => drop(self.values[at].1.pop()),
                }
            }
        }
    }

    /// Ends the call. Nothing of it is kept: what the next one does not count, it does not say.
    pub(crate) fn hand_over(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        match self.values.iter().map(|(_, values)| values.len()).sum::<usize>() {
            0..=AT_A_TIME => (self.report)(&self.counts, &self.values),
            _ => self.hand_over_in_parts(),
        }
        self.counts.clear();
        self.values.clear();
        self.last.1.clear();
    }

    #[cold]
    fn hand_over_in_parts(&self) {
        (self.report)(&self.counts, &[]);
        for (name, values) in &self.values {
            for part in values.chunks(AT_A_TIME) {
                (self.report)(&[], &[(name.clone(), part.to_vec())]);
            }
        }
    }

    fn note(&mut self, entry: u32, deed: Deed) {
        if self.last.0 != entry {
            self.last.0 = entry;
            self.last.1.clear();
        }
        self.last.1.push(deed);
        self.changed = true;
    }
}

/// The number of a name, which is made where there is room.
fn number<T: Default>(names: &mut Vec<(String, T)>, name: &str) -> Option<usize> {
    if let Some(at) = names.iter().position(|(known, _)| known == name) {
        return Some(at);
    }
    (names.len() < NAMES).then(|| {
        names.push((name.to_owned(), T::default()));
        names.len() - 1
    })
}

/// Hands over to the host. In native tests of a plugin, where there is none, it goes nowhere.
pub(crate) fn report(counts: &[(String, u64)], values: &[(String, Vec<f64>)]) {
    #[cfg(target_arch = "wasm32")]
    pelton_bindings_transform::pelton::plugin::metrics::report(counts, values);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (counts, values);
}
