//! What is told of dead letters while a host runs: the first of a code at once, then now and then how many came since.

use super::Reason;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between two lines about one code.
const PACE: Duration = Duration::from_secs(30);
/// Longest message of an example, in bytes; more is cut.
const MESSAGE_BYTES: usize = 300;

/// Counts a processor's committed dead letters until they are told, of all its tasks in this process.
#[derive(Debug, Default)]
pub struct LetterNews {
    codes: BTreeMap<&'static str, Code>,
}

#[derive(Debug, Default)]
struct Code {
    /// Since the last line.
    count: u64,
    /// The first of them.
    example: Example,
    /// On the monotonic clock.
    told: Option<Duration>,
}

/// One record that became a dead letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// `topic/partition@offset`.
    pub place: String,
    pub message: String,
    /// When it failed last, in milliseconds since the epoch.
    pub time_ms: i64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub struct News {
    pub code: &'static str,
    pub count: u64,
    pub example: Example,
}

impl LetterNews {
    /// So many more of this code are committed, one of them `example`.
    pub fn add(&mut self, code: &'static str, count: u64, example: Example) {
        let known = self.codes.entry(code).or_default();
        if known.count == 0 {
            known.example = example;
        }
        known.count += count;
    }

    /// What is to be told at `now` of a monotonic clock; `last`: everything, as nothing is told later.
    pub fn due(&mut self, now: Duration, last: bool) -> Vec<News> {
        let is_due = |code: &Code| last || code.told.is_none_or(|told| now.saturating_sub(told) >= PACE);
        let due = self.codes.iter_mut().filter(|(_, code)| code.count > 0 && is_due(code));
        due.map(|(name, code)| {
            code.told = Some(now);
            News { code: name, count: std::mem::take(&mut code.count), example: std::mem::take(&mut code.example) }
        })
        .collect()
    }
}

impl Example {
    /// The record of a letter that says this of itself. The plugin's own code stands behind its message.
    pub fn of(reason: &Reason) -> Example {
        let Reason { topic, partition, offset, message, code, last_failure, .. } = reason;
        let cut = if message.len() > MESSAGE_BYTES { "…" } else { "" };
        let message = &message[..message.floor_char_boundary(MESSAGE_BYTES)];
        let (place, message) = (format!("{topic}/{partition}@{offset}"), format!("{message}{cut} ({code})"));
        Example { place, message, time_ms: last_failure.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(offset: i64) -> Example {
        Example { place: format!("in/0@{offset}"), message: "why (bad)".into(), time_ms: 0 }
    }

    fn told(news: &mut LetterNews, secs: u64, last: bool) -> Vec<(&'static str, u64, String)> {
        let due = news.due(Duration::from_secs(secs), last).into_iter();
        due.map(|news| (news.code, news.count, news.example.place)).collect()
    }

    #[test]
    fn a_million_letters_are_a_few_lines() {
        let mut news = LetterNews::default();
        let mut lines = Vec::new();
        for offset in 0..1_000_000 {
            news.add("plugin", 1, example(offset));
            // a hundred seconds
            lines.extend(told(&mut news, 7 + offset as u64 / 10_000, false));
        }
        lines.extend(told(&mut news, 107, true));
        assert_eq!(lines.iter().map(|line| line.1).collect::<Vec<_>>(), [1, 300_000, 300_000, 300_000, 99_999]);
        assert_eq!(lines[1].2, "in/0@1", "the first that was not told");
    }

    #[test]
    fn each_code_is_told_at_once_and_what_came_since_though_no_more_comes() {
        let mut news = LetterNews::default();
        assert_eq!(told(&mut news, 1, true), []);
        news.add("plugin", 2, example(5));
        assert_eq!(told(&mut news, 1, false), [("plugin", 2, "in/0@5".into())]);
        news.add("plugin", 3, example(7));
        news.add("trap", 1, example(9));
        assert_eq!(told(&mut news, 2, false), [("trap", 1, "in/0@9".into())]);
        assert_eq!(told(&mut news, 30, false), []);
        assert_eq!(told(&mut news, 31, false), [("plugin", 3, "in/0@7".into())]);
        assert_eq!(told(&mut news, 90, true), []);
    }

    #[test]
    fn a_long_message_is_cut_and_keeps_its_code() {
        let reason = Reason {
            topic: "in".into(),
            offset: 7,
            message: "é".repeat(1000),
            code: "bad".into(),
            ..Reason::default()
        };
        let Example { place, message, .. } = Example::of(&reason);
        assert_eq!((&*place, message.len()), ("in/0@7", MESSAGE_BYTES + "… (bad)".len()));
    }
}
