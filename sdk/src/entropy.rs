//! Randomness for crates that ask the platform for it: `getrandom` 0.2, 0.3 and 0.4, and so `rand`, `uuid` and most others.
//!
//! A guest's platform has no randomness of its own, and a replay must not see other numbers. So what such a crate gets derives from
//! where the record being handled comes from, as [`crate::Context::random`] does, but as another sequence: the same record gets the
//! same bytes whenever it is handled. Outside of a record (in `declare` and `configure`) bytes derive from application, processor and
//! partition. Nothing of this is fit for secrets.
//!
//! A generator that is kept from record to record (a field of the plugin, `rand`'s thread generator) is seeded once per instance, so
//! its numbers depend on what the instance did before: seed one for each record, or use [`crate::Context::random`].
//!
//! `pelton build` selects this for `getrandom` 0.3 and later; a plain `cargo build` needs
//! `RUSTFLAGS='--cfg getrandom_backend="custom"'`. Without this crate's feature `getrandom` (on by default) none of it is there, and a
//! plugin may define the functions that `getrandom` calls itself.

use std::cell::{Cell, RefCell};

use pelton_bindings_transform::pelton::plugin::types::Batch;

use crate::identity::Origin;

/// Where everything of a task comes from.
struct Home {
    application: String,
    processor: String,
    /// By the host's number of an input.
    topics: Vec<String>,
    partition: u32,
}

/// The bytes of one record, in order.
#[derive(Clone, Copy)]
struct Sequence {
    offset: i64,
    /// Parts made so far; the last of them is `part`, of which so many bytes were used.
    parts: u32,
    part: [u8; 32],
    used: usize,
}

thread_local! {
    static HOME: RefCell<Home> = const {
        RefCell::new(Home { application: String::new(), processor: String::new(), topics: Vec::new(), partition: 0 })
    };
    static INPUT: Cell<Option<u32>> = const { Cell::new(None) };
    static OFFSET: Cell<i64> = const { Cell::new(NOWHERE) };
    static SEQUENCE: Cell<Option<Sequence>> = const { Cell::new(None) };
}

/// No record is being handled.
const NOWHERE: i64 = -1;

/// Fills `bytes` with the next random bytes of the record being handled: for crates that want them through a hook of their own.
pub fn fill(bytes: &mut [u8]) {
    let offset = OFFSET.get();
    let mut sequence =
        SEQUENCE.get().filter(|sequence| sequence.offset == offset).unwrap_or_else(|| Sequence::new(offset));
    bytes.iter_mut().for_each(|byte| *byte = sequence.next());
    SEQUENCE.set(Some(sequence));
}

/// Says whose instance this is.
pub(crate) fn settle(application: &str, processor: &str, inputs: &[(String, String)], partition: u32) {
    let topics = inputs.iter().map(|(_, topic)| topic.clone()).collect();
    HOME.replace(Home { application: application.to_owned(), processor: processor.to_owned(), topics, partition });
    SEQUENCE.set(None);
}

/// Starts a call: its records get the bytes that they got before, if they were handled before.
pub(crate) fn begin(batch: &Batch) {
    INPUT.set(Some(batch.input));
    OFFSET.set(NOWHERE);
    SEQUENCE.set(None);
}

/// Moves on to the record at `offset`.
#[inline]
pub(crate) fn at(offset: i64) {
    OFFSET.set(offset);
}

/// The offset of the record being handled, if one is.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "only a guest has a host to tell"))]
pub(crate) fn offset() -> Option<i64> {
    Some(OFFSET.get()).filter(|&offset| offset != NOWHERE)
}

impl Sequence {
    fn new(offset: i64) -> Sequence {
        Sequence { offset, parts: 0, part: [0; 32], used: 32 }
    }

    fn next(&mut self) -> u8 {
        if self.used == self.part.len() {
            self.part = part(self.offset, self.parts);
            self.parts = self.parts.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.part[self.used - 1]
    }
}

fn part(offset: i64, number: u32) -> [u8; 32] {
    HOME.with_borrow(|home| {
        let Home { application, processor, topics, partition } = home;
        let topic = INPUT.get().and_then(|input| topics.get(input as usize)).map_or("", String::as_str);
        Origin { application, processor, topic, partition: *partition, offset }.entropy(number)
    })
}

/// What `getrandom` calls. It looks for functions of these names and types, which only this can define.
#[cfg(all(feature = "getrandom", target_arch = "wasm32", target_os = "unknown"))]
#[allow(unsafe_code, reason = "functions that another crate finds by name and hands a raw buffer")]
mod symbols {
    use std::num::NonZeroI32;

    /// `getrandom` 0.2, whose feature `custom` comes with this crate's dependency on it.
    #[unsafe(no_mangle)]
    unsafe fn __getrandom_custom(bytes: *mut u8, length: usize) -> u32 {
        // SAFETY: the caller hands over `length` bytes that are its own and initialised (getrandom 0.2, `custom.rs`).
        super::fill(unsafe { std::slice::from_raw_parts_mut(bytes, length) });
        0
    }

    /// `getrandom` 0.3 and later; its error is a number that is not zero, too, and is never returned.
    #[unsafe(no_mangle)]
    unsafe fn __getrandom_v03_custom(bytes: *mut u8, length: usize) -> Result<(), NonZeroI32> {
        // SAFETY: the caller hands over `length` bytes that are its own (getrandom 0.4, `backends/custom.rs`). They need not be
        // initialised, so that is done before a slice is made of them.
        let bytes = unsafe {
            bytes.write_bytes(0, length);
            std::slice::from_raw_parts_mut(bytes, length)
        };
        super::fill(bytes);
        Ok(())
    }
}
