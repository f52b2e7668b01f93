//! Emits what crates get that ask the platform for randomness, for tests: one word each from `rand` (by getrandom 0.2), from getrandom 0.3,
//! and from `uuid` (by getrandom 0.4).

use pelton_sdk::prelude::*;
use rand::RngCore;
use rand::rngs::OsRng;
use uuid::Uuid;

struct Random {
    out: Output,
}

impl Transform for Random {
    fn declare(declaration: &mut Declaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out") }
    }

    fn process(&mut self, _record: &Record, ctx: &mut Context) -> Outcome {
        let mut bytes = [0; 8];
        getrandom_03::fill(&mut bytes)?;
        let words = (OsRng.next_u64(), u64::from_le_bytes(bytes), Uuid::new_v4());
        ctx.emit(self.out).text(format_args!("{:016x} {:016x} {}", words.0, words.1, words.2))
    }
}

pelton_sdk::transform!(Random);
