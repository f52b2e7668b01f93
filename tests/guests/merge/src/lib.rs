//! Counts the records of each key over two inputs, for tests: right only where equal partitions of both are on one host.

use pelton_sdk::prelude::*;

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

    fn process(&mut self, _record: &Record, ctx: &mut Context) -> Outcome {
        let count = self.counts.get(ctx)?.unwrap_or(0) + 1;
        self.counts.put(ctx, &count)?;
        ctx.emit(self.out).text(count)
    }
}

pelton_sdk::aggregate!(Merge);
