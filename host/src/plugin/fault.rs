//! How a call can fail, and how wasmtime's errors are told apart.

use super::host::{Data, Refusal};
use super::limits::{Breach, Limit};
use super::log::cut;
use crate::model::{Failure, Fault};
use std::fmt;
use wasmtime::{Trap, WasmBacktrace};

/// Most frames of a stack that a fault carries.
pub(super) const FRAMES: usize = 32;
/// Longest function, and longest place, of a frame in bytes.
const FRAME_BYTES: usize = 256;
/// Longest text of a guest's or of the engine's that a fault carries, in bytes.
const TEXT_BYTES: usize = 4 << 10;

/// Why a call gave no progress. Its instance is gone; the next call gets a fresh one.
#[derive(Clone, Debug, PartialEq)]
pub enum CallFault {
    Trap {
        message: String,
        /// Innermost first: `module!function`, or `function (file:line:column)` where the component keeps its line tables.
        stack: Vec<String>,
    },
    /// A trap that the guest announced, with its own words and place.
    Panic {
        message: String,
        location: String,
        stack: Vec<String>,
    },
    /// The call took longer than `record_deadline`.
    Deadline,
    Limit {
        limit: Limit,
        message: String,
        stack: Vec<String>,
    },
    /// What the guest handed over breaks the interface's rules.
    Malformed(String),
    /// No instance could be made, or its `init` refused the context, trapped or took too long. Says nothing about any record.
    Init(String),
    /// The host's own trouble while the guest waited for state. Says nothing about any record.
    Host(Fault),
}

impl CallFault {
    /// Stable and documented; safe to match, to count and to put into a dead letter.
    pub fn code(&self) -> &'static str {
        match self {
            CallFault::Trap { .. } => "trap",
            CallFault::Panic { .. } => "panic",
            CallFault::Deadline => "deadline",
            CallFault::Limit { limit, .. } => limit.code(),
            CallFault::Malformed(_) => "malformed-result",
            CallFault::Init(_) => "init-failed",
            CallFault::Host(fault) => fault.code,
        }
    }

    /// Whether a record of the batch may be to blame. Where not, running records one by one finds nobody.
    pub fn blames_a_record(&self) -> bool {
        !matches!(self, CallFault::Init(_) | CallFault::Host(_))
    }

    /// Whether a smaller batch may go through: it was the amount that broke the call.
    pub fn is_size(&self) -> bool {
        matches!(self, CallFault::Limit { limit: Limit::Memory | Limit::Output | Limit::Emits | Limit::Writes, .. })
    }

    /// Innermost first; empty where the guest was not running.
    pub fn stack(&self) -> &[String] {
        match self {
            CallFault::Trap { stack, .. } | CallFault::Panic { stack, .. } | CallFault::Limit { stack, .. } => stack,
            _ => &[],
        }
    }

    /// This fault as the failure of one record.
    pub fn failure(&self) -> Failure {
        let mut failure = Failure::new(self.code(), self.to_string());
        if let CallFault::Panic { location, .. } = self {
            failure.details.push(("location".to_owned(), location.clone()));
        }
        if !self.stack().is_empty() {
            failure.details.push(("stack".to_owned(), self.stack().join("\n")));
        }
        failure
    }

    pub(super) fn breach(breach: Breach) -> Self {
        CallFault::Limit { limit: breach.limit, message: breach.to_string(), stack: Vec::new() }
    }

    /// Reads an error that ended a guest, by type.
    pub(super) fn of(error: &wasmtime::Error, data: &mut Data) -> Self {
        let panicked = data.take_panic();
        let stack = stack(error);
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            return match refusal {
                Refusal::Host(fault) => CallFault::Host(fault.clone()),
                Refusal::Malformed(what) => CallFault::Malformed(what.clone()),
                Refusal::Exit => CallFault::Trap { message: "it called exit".to_owned(), stack },
            };
        }
        if let Some(breach) = breach(error, data) {
            return CallFault::Limit { limit: breach.limit, message: breach.to_string(), stack };
        }
        match (error.downcast_ref::<Trap>(), panicked) {
            (Some(_), Some((message, location))) => CallFault::Panic { message, location, stack },
            (Some(trap), None) => CallFault::Trap { message: plain(*trap), stack },
            // Every other error comes from reading what the guest handed over: a bad address, a bad string, a bad case.
            (None, _) => CallFault::Malformed(short(error.root_cause().to_string())),
        }
    }
}

/// Cuts a text that the guest may have chosen.
pub(super) fn short(mut text: String) -> String {
    cut(&mut text, TEXT_BYTES);
    text
}

/// A trap's own words, without "wasm trap: " before them.
fn plain(trap: Trap) -> String {
    let text = trap.to_string();
    text.strip_prefix("wasm trap: ").map_or_else(|| text.clone(), str::to_owned)
}

fn breach(error: &wasmtime::Error, data: &Data) -> Option<Breach> {
    if let Some(breach) = error.downcast_ref::<Breach>() {
        return Some(*breach);
    }
    if matches!(error.downcast_ref::<Trap>(), Some(Trap::StackOverflow)) {
        let bound = data.quota.stack_bytes;
        return Some(Breach { limit: Limit::Stack, asked: bound, bound });
    }
    is_too_much_output(error).then_some(Breach { limit: Limit::Output, asked: 0, bound: data.quota.output_bytes })
}

/// The one error that has no public type in wasmtime 48 (`HostcallFuelExhausted`): told by its text. The test
/// `huge_output_is_refused_before_it_is_copied` fails should the text change.
fn is_too_much_output(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted")
}

fn stack(error: &wasmtime::Error) -> Vec<String> {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    // The frames' own names are mangled; only the whole trace's text has them readable. Its first line is a title.
    frames(trace.to_string().lines().skip(1))
}

/// One frame per function. Where the component has line tables a function's place follows on a line of its own, and functions that
/// were inlined follow without a number.
fn frames<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for line in lines {
        match line.trim_start().strip_prefix("at ") {
            Some(place) => frames.last_mut().into_iter().for_each(|frame| add_place(frame, place)),
            None if frames.len() == FRAMES => break,
            None => frames.push(frame(line)),
        }
    }
    frames
}

fn add_place(frame: &mut String, place: &str) {
    let mut place = place.to_owned();
    cut(&mut place, FRAME_BYTES);
    frame.push_str(&format!(" ({place})"));
}

/// `   3:   0x1f2 - module!crate[4e7f5002c0a51c87]::function::h9f667a849ac8085e` without number, address and hashes.
fn frame(line: &str) -> String {
    let line = line.trim_start();
    let name = line.strip_prefix("- ").or_else(|| line.split_once(" - ").map(|(_, name)| name)).unwrap_or(line).trim();
    // the frame that ran out of stack has a number and no address
    let name =
        name.split_once(": ").filter(|(n, _)| n.bytes().all(|b| b.is_ascii_digit())).map_or(name, |(_, name)| name);
    let mut parts = name.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((hash, rest)) if is_hash(hash) => text.push_str(rest),
            _ => text.extend(["[", part]),
        }
    }
    if let Some((function, hash)) = text.rsplit_once("::h")
        && hash.len() == 16
        && is_hash(hash)
    {
        text.truncate(function.len());
    }
    cut(&mut text, FRAME_BYTES);
    text
}

fn is_hash(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallFault::Trap { message, .. } => write!(f, "plugin trapped: {message}"),
            CallFault::Panic { message, location, .. } => write!(f, "plugin panicked at {location}: {message}"),
            CallFault::Deadline => f.write_str("plugin missed the deadline of its call"),
            CallFault::Limit { message, .. } => f.write_str(message),
            CallFault::Malformed(what) => write!(f, "plugin broke the interface: {what}"),
            CallFault::Init(what) => write!(f, "plugin could not be started: {what}"),
            CallFault::Host(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for CallFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_readable() {
        let line =
            "    0:   0x1f2 - bad.wasm!<bad[4e7f5002c0a51c87]::Bad as sdk[905ae69b783795c3]::Transform>::process";
        assert_eq!(frame(line), "bad.wasm!<bad::Bad as sdk::Transform>::process");
        assert_eq!(frame("  1: m!f::<[u8; 4]>"), "m!f::<[u8; 4]>");
        assert_eq!(frame("  1:  0x1 - m!f::<[u8]>[0]"), "m!f::<[u8]>[0]");
        assert_eq!(frame("  1:  0x1 - bad.wasm!bad::trap::h9f667a849ac8085e"), "bad.wasm!bad::trap");
        assert_eq!(frame("  1:  0x1 - bad.wasm!bad::house"), "bad.wasm!bad::house");
    }

    #[test]
    fn places_join_their_functions_and_what_was_inlined_is_a_frame() {
        let text = "    0:   0x1f2 - core::hint::black_box\n                    at /lib/hint.rs:3:5\n                - bad::spin\n                    at src/lib.rs:7\n    1:    0x9 - bad.wasm!apply";
        let expected = ["core::hint::black_box (/lib/hint.rs:3:5)", "bad::spin (src/lib.rs:7)", "bad.wasm!apply"];
        assert_eq!(frames(text.lines()), expected);
        let deep = "  1: 0x9 - m!f\n      at a.rs:1\n".repeat(FRAMES + 9);
        assert_eq!(frames(deep.lines()), vec!["m!f (a.rs:1)"; FRAMES]);
    }
}
