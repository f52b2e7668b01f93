//! Counts the records of each key over two inputs, for tests: right only where equal partitions of both are on one host.
//!
//! Emits the count; a record that says `flaky N MS` asks for a retry after so long until attempt N, counted from 1.

use pelton_sdk::prelude::*;
use std::time::Duration;

struct Merge {
    out: Output,
    counts: KeyStore<u64>,
}

impl Aggregate for Merge {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("left");
        declaration.input("right");
        Self { out: declaration.output("out"), counts: declaration.key_store("counts") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        if let Some((attempts, ms)) = flaky(record)
            && ctx.attempt() + 1 < attempts
        {
            pelton_sdk::warn!("attempt {} of a record", ctx.attempt() + 1);
            return Err(
                Error::retry("asked-to-retry", "record asks to be tried again").after(Duration::from_millis(ms))
            );
        }
        let count = self.counts.get(ctx)?.unwrap_or(0) + 1;
        self.counts.put(ctx, &count)?;
        ctx.emit(self.out).text(count)
    }
}

fn flaky(record: &Record) -> Option<(u32, u64)> {
    let (attempts, ms) = record.text().ok()?.strip_prefix("flaky ")?.split_once(' ')?;
    Some((attempts.parse().ok()?, ms.parse().ok()?))
}

pelton_sdk::aggregate!(Merge);
