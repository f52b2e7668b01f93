//! Whatever bytes a guest leaves for its result, reading them ends in a progress that keeps every promise or in a fault: never in a
//! panic, and never in memory that was not granted.
//!
//! The puppet's verb `f` returns 208 bytes as they are, which is the size of a progress in memory. `corpus/` keeps results worth
//! remembering, one in each file: the code that it ends with (or `ok`), and the bytes in hex. A result that a test found belongs there.

use super::malformed::holds;
use super::puppet::{Stage, batch};
use crate::config::Limits;
use crate::model::{Batch, HeadersRef, RecordRef};
use crate::plugin::validate::Bounds;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::time::Duration;

/// Words of a progress in memory.
const WORDS: usize = 52;
/// Where the words of `done`, of the emits and of the writes are; rejections follow at 37, the ending at 40.
const DONE: usize = 0;
/// One emit of entry 0 to output 0 without key, value and headers, and one write of an empty key: as the puppet's own memory has it.
/// 64 is a -1 of 8 bytes, 0 are zeros, 128 is text.
fn plain() -> [u32; WORDS] {
    let mut words = [0; WORDS];
    words[DONE] = 1;
    // entries, outputs, timestamps; keys, values; counts
    let emit = [0, 1, 0, 1, 64, 1, 0, 0, 64, 1, 0, 0, 64, 1, 0, 1];
    words[1..17].copy_from_slice(&emit);
    // entries, stores, keys, values of the writes
    let write = [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 64, 1];
    words[25..37].copy_from_slice(&write);
    words
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn limits() -> Limits {
    Limits { output_bytes: 32 << 10, memory: 1 << 20, ..Limits::default() }
}

fn bounds() -> Bounds {
    Bounds { entries: 1, outputs: 1, stores: 1, effects: limits().emits, bytes: limits().output_bytes }
}

/// What the host makes of these bytes: `ok`, or the fault's code.
fn read(stage: &mut Stage, bytes: &[u8]) -> &'static str {
    let mut batch = Batch { offsets: Vec::new(), ..batch(&[]) };
    let value = [b"f", bytes].concat();
    batch.push(0, RecordRef { key: None, value: Some(&value), headers: HeadersRef::default(), timestamp: 0 });
    // No ticks are needed: this verb has no loop.
    let outcome = stage.guest.call(batch, Duration::ZERO).poll(Duration::ZERO).unwrap();
    match outcome.result {
        Ok(progress) => {
            holds(&progress, &bounds());
            "ok"
        }
        Err(fault) => {
            assert!(fault.blames_a_record() && !fault.to_string().is_empty(), "{fault:?}");
            fault.code()
        }
    }
}

/// Numbers that a layout has, and some that it should not.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0..3u32,
        2 => Just(64u32),
        2 => prop::sample::select(vec![1u32, 2, 128, 208, 0xfff8, 0x1_0000, 0x1_fff8, 0xf_ffff]),
        1 => any::<u32>(),
        1 => prop::sample::select(vec![u32::MAX, i32::MAX as u32, 0x8000_0000]),
    ]
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((0..WORDS, word()), 0..4).prop_map(|changes| {
        let mut words = plain();
        changes.into_iter().for_each(|(at, word)| words[at] = word);
        bytes(&words)
    })
}

fn any_words() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(word(), WORDS).prop_map(|words| bytes(&words))
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 4 * WORDS)
}

#[test]
fn any_bytes_end_in_a_progress_or_in_a_fault() {
    let stage = RefCell::new(Stage::new(limits()));
    let strategy = prop_oneof![6 => mutated(), 1 => any_words(), 1 => any_bytes()];
    let seen = RefCell::new(std::collections::BTreeMap::<&str, u32>::new());
    let config = ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(4000) };
    let result = TestRunner::new(config).run(&strategy, |bytes| {
        *seen.borrow_mut().entry(read(&mut stage.borrow_mut(), &bytes)).or_default() += 1;
        Ok(())
    });
    result.unwrap();
    let seen = seen.into_inner();
    assert!(seen["ok"] > 200 && seen["malformed-result"] > 200, "the bytes show nothing: {seen:?}");
}

#[test]
fn the_corpus_ends_as_it_says() {
    let mut stage = Stage::new(limits());
    // As cargo says it when it runs this: what was compiled may come from another clone that shares the target folder.
    let crate_dir = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let folder = crate_dir.join("src/plugin/tests/corpus");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (expected, digits) = text.split_once('\n').unwrap();
        let bytes = hex::decode(digits.split_whitespace().collect::<String>()).unwrap();
        assert_eq!(bytes.len(), 4 * WORDS, "{}", path.display());
        assert_eq!(read(&mut stage, &bytes), expected, "{}", path.display());
        files += 1;
    }
    assert!(files >= 12, "only {files} files");
}
