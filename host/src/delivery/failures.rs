//! The last failures of a processor, for whoever asks a running host: few in all and few of one code, so that a flood of one kind
//! hides no other.

use std::collections::VecDeque;

/// Most that are kept, and most of one code.
const MOST: usize = 20;
const MOST_OF_A_CODE: usize = 5;
/// Longest message, in bytes; more is cut.
const MESSAGE_BYTES: usize = 500;

/// A failure that was handled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mishap {
    /// When, in milliseconds since the epoch.
    pub time_ms: i64,
    /// Stable.
    pub code: String,
    pub message: String,
    /// `topic/partition:offset` of the record, where one is to blame.
    pub place: Option<String>,
}

/// What went wrong lately.
#[derive(Debug, Default)]
pub struct Failures {
    /// Oldest first.
    kept: VecDeque<Mishap>,
}

impl Failures {
    pub fn note(&mut self, mut mishap: Mishap) {
        if mishap.message.len() > MESSAGE_BYTES {
            mishap.message.truncate(mishap.message.floor_char_boundary(MESSAGE_BYTES));
            mishap.message.push('…');
        }
        let of_code = self.kept.iter().filter(|kept| kept.code == mishap.code).count();
        let gone = match of_code >= MOST_OF_A_CODE {
            true => self.kept.iter().position(|kept| kept.code == mishap.code),
            false => (self.kept.len() >= MOST).then_some(0),
        };
        gone.map(|at| self.kept.remove(at));
        self.kept.push_back(mishap);
    }

    /// Newest first.
    pub fn latest(&self) -> Vec<Mishap> {
        self.kept.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(codes: impl Iterator<Item = String>) -> Vec<(i64, String)> {
        let mut failures = Failures::default();
        for (time_ms, code) in (0..).zip(codes) {
            failures.note(Mishap { time_ms, code, ..Mishap::default() });
        }
        failures.latest().into_iter().map(|mishap| (mishap.time_ms, mishap.code)).collect()
    }

    #[test]
    fn a_flood_of_one_code_leaves_the_others_where_they_are() {
        let latest = noted(["halt".to_owned()].into_iter().chain((0..100_000).map(|_| "trap".to_owned())));
        let times: Vec<i64> = latest.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [100_000, 99_999, 99_998, 99_997, 99_996, 0], "newest first");
        assert_eq!(latest[5].1, "halt");
    }

    #[test]
    fn many_codes_are_bounded_too_and_the_oldest_goes() {
        let latest = noted((0..1000).map(|code| code.to_string()));
        assert_eq!((latest.len(), latest[0].0, latest[19].0), (20, 999, 980));
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut failures = Failures::default();
        failures.note(Mishap { message: "é".repeat(1000), ..Mishap::default() });
        assert_eq!(failures.latest()[0].message.len(), 500 + "…".len());
    }
}
