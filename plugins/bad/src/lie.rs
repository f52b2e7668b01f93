//! Lies about a result. The SDK keeps its columns in step, so they are told behind its back: a record says which, and the export
//! spoils what the SDK made of the whole call.

use std::cell::Cell;

use pelton_sdk::bindings::transform::pelton::plugin::types::Progress;

/// What is wrong with the call's last emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Its value is longer than its bytes.
    Lengths,
    /// It has more headers than there are.
    Counts,
    /// It goes to an output that is not there.
    Indices,
}

thread_local! {
    static INTENDED: Cell<Option<Lie>> = const { Cell::new(None) };
}

impl Lie {
    pub(crate) fn parse(word: &[u8]) -> Option<Lie> {
        match word {
            b"lengths" => Some(Lie::Lengths),
            b"counts" => Some(Lie::Counts),
            b"indices" => Some(Lie::Indices),
            _ => None,
        }
    }

    fn spoil(self, progress: &mut Progress) {
        let emits = &mut progress.effects.emits;
        match self {
            Lie::Lengths => replace_last(&mut emits.values.lengths, i32::MAX),
            Lie::Counts => replace_last(&mut emits.headers.counts, u32::MAX),
            Lie::Indices => replace_last(&mut emits.outputs, u32::MAX),
        }
    }
}

/// The result of the call that runs now will lie.
pub(crate) fn intend(lie: Lie) {
    INTENDED.set(Some(lie));
}

/// Tells the lie that a record of this call asked for, if one did.
pub(crate) fn tell(mut progress: Progress) -> Progress {
    if let Some(lie) = INTENDED.take() {
        lie.spoil(&mut progress);
    }
    progress
}

fn replace_last<T>(column: &mut [T], with: T) {
    if let Some(last) = column.last_mut() {
        *last = with;
    }
}

#[cfg(test)]
mod tests {
    use pelton_sdk::bindings::transform::pelton::plugin::types::{Column, Effects, Emits, Ending, Headers, Writes};

    use super::*;

    fn progress() -> Progress {
        let none = || Column { bytes: Vec::new(), lengths: Vec::new() };
        let one = || Column { bytes: vec![7], lengths: vec![1] };
        let headers = Headers { counts: vec![0], names: none(), values: none() };
        let emits =
            Emits { entries: vec![0], outputs: vec![0], timestamps: vec![-1], keys: one(), values: one(), headers };
        let writes = Writes { entries: Vec::new(), stores: Vec::new(), keys: none(), values: none() };
        Progress { done: 1, effects: Effects { emits, writes }, rejected: Vec::new(), ending: Ending::Complete }
    }

    #[test]
    fn a_lie_is_told_once() {
        for (word, wrong) in
            [("lengths", (i32::MAX, 0, 0)), ("counts", (1, u32::MAX, 0)), ("indices", (1, 0, u32::MAX))]
        {
            intend(Lie::parse(word.as_bytes()).unwrap());
            let seen = |told: Progress| {
                let emits = told.effects.emits;
                (emits.values.lengths[0], emits.headers.counts[0], emits.outputs[0])
            };
            assert_eq!(seen(tell(progress())), wrong);
            assert_eq!(seen(tell(progress())), (1, 0, 0));
        }
    }
}
