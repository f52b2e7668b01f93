//! What an instance sees of the world through WASI: the batch's time, randomness that a replay repeats, and two streams to its log.

use crate::model::Batch;
use sha2::{Digest, Sha256};

/// Longest line kept while its end has not come, in bytes.
const LINE_BYTES: usize = 16 << 10;

/// `wasi:io/streams`: input that is always at its end.
pub(super) struct InputStream;
/// `wasi:io/streams`: output to the log, numbered as [`Output`].
pub(super) struct OutputStream;
/// `wasi:io/error`; there is never one.
pub(super) struct IoError;
/// `wasi:io/poll`: something that is always ready.
pub(super) struct Pollable;
/// `wasi:filesystem/types`; there is never one.
pub(super) struct Descriptor;
/// `wasi:cli/terminal-input` (0) and `terminal-output` (1); there is never one.
pub(super) struct Terminal<const KIND: u32>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Stdout = 0,
    Stderr = 1,
}

/// What randomness is derived from, beside the batch: the same for every instance of a task.
#[derive(Clone, Debug, Default)]
pub(in crate::plugin) struct Seed(String);

/// The world of one instance. Between batches it stands still.
#[derive(Debug, Default)]
pub(in crate::plugin) struct Wasi {
    seed: Seed,
    now_ms: u64,
    /// Input and first offset of the batch.
    at: Option<(u32, i64)>,
    /// Nanoseconds that the guest has waited in this call: no time passes, but its clock moves on.
    waited_ns: u64,
    /// State of the generator; made at first use.
    random: Option<u64>,
    lines: [Vec<u8>; 2],
}

impl Seed {
    pub(in crate::plugin) fn new(application: &str, processor: &str, partition: u32) -> Seed {
        Seed(format!("{application}\n{processor}\n{partition}"))
    }
}

impl Wasi {
    pub(in crate::plugin) fn new(seed: Seed) -> Wasi {
        Wasi { seed, ..Wasi::default() }
    }

    /// Moves the world on to a batch.
    pub(in crate::plugin) fn enter(&mut self, batch: &Batch) {
        self.now_ms = batch.now.max(0) as u64;
        self.at = batch.offsets.first().map(|&offset| (batch.input, offset));
        self.waited_ns = 0;
        self.random = None;
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms.saturating_add(self.waited_ns / 1_000_000)
    }

    pub(super) fn monotonic_ns(&self) -> u64 {
        self.now_ms.saturating_mul(1_000_000).saturating_add(self.waited_ns)
    }

    pub(super) fn skip(&mut self, ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(ns);
    }

    /// SplitMix64 (Steele, Lea and Flood, 2014): small, and good enough for what no secret may rest on.
    pub(super) fn random_u64(&mut self) -> u64 {
        let state = self.random.unwrap_or_else(|| self.first()).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random = Some(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn random_bytes(&mut self, length: usize) -> Vec<u8> {
        let words = length.div_ceil(8);
        let mut bytes: Vec<u8> = (0..words).flat_map(|_| self.random_u64().to_le_bytes()).collect();
        bytes.truncate(length);
        bytes
    }

    /// Adds output; returns the lines that are complete now.
    pub(super) fn print(&mut self, to: Output, bytes: &[u8]) -> Vec<String> {
        let line = &mut self.lines[to as usize];
        let mut whole = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(part);
            if line.ends_with(b"\n") || line.len() >= LINE_BYTES {
                whole.push(String::from_utf8_lossy(line).trim_end_matches('\n').to_owned());
                line.clear();
            }
        }
        whole
    }

    fn first(&self) -> u64 {
        let text = format!("{}\n{:?}", self.seed.0, self.at);
        Sha256::digest(text.as_bytes()).iter().take(8).fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wasi(partition: u32, offset: i64) -> Wasi {
        let mut wasi = Wasi::new(Seed::new("app", "proc", partition));
        wasi.enter(&Batch { now: 5, offsets: vec![offset], ..Batch::default() });
        wasi
    }

    #[test]
    fn randomness_repeats_with_the_batch_and_differs_between_batches() {
        assert_eq!(wasi(0, 7).random_bytes(20), wasi(0, 7).random_bytes(20));
        assert_ne!(wasi(0, 7).random_u64(), wasi(0, 8).random_u64());
        assert_ne!(wasi(0, 7).random_u64(), wasi(1, 7).random_u64());
        let mut again = wasi(0, 7);
        let first = again.random_u64();
        assert_ne!(again.random_u64(), first);
        again.enter(&Batch { now: 9, offsets: vec![7], ..Batch::default() });
        assert_eq!(again.random_u64(), first);
        assert_eq!(again.random_bytes(13).len(), 13);
    }

    #[test]
    fn waiting_moves_the_clock_and_the_next_batch_sets_it() {
        let mut wasi = wasi(0, 0);
        wasi.skip(2_000_000_000);
        assert_eq!((wasi.now_ms(), wasi.monotonic_ns()), (2005, 2_005_000_000));
        wasi.skip(u64::MAX);
        assert_eq!(wasi.monotonic_ns(), u64::MAX);
        wasi.enter(&Batch { now: -1, ..Batch::default() });
        assert_eq!(wasi.now_ms(), 0);
    }

    #[test]
    fn output_becomes_lines() {
        let mut wasi = Wasi::default();
        assert_eq!(wasi.print(Output::Stdout, b"one\ntw"), ["one"]);
        assert_eq!(wasi.print(Output::Stderr, b"other\n"), ["other"]);
        assert_eq!(wasi.print(Output::Stdout, b"o\n\n"), ["two", ""]);
        assert_eq!(wasi.print(Output::Stdout, &[b'x'; LINE_BYTES]).len(), 1, "a line without end is cut");
    }
}
