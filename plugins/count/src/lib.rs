//! Counts the records of each key, and emits the key with the count so far as decimal text. The store holds it as `u64`.

use pelton_sdk::prelude::*;

struct Count {
    out: Output,
    counts: KeyStore<u64>,
}

impl Aggregate for Count {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out"), counts: declaration.key_store("counts") }
    }

    fn process(&mut self, _record: &Record, ctx: &mut Context) -> Outcome {
        let count = self.counts.get(ctx)?.unwrap_or(0) + 1;
        self.counts.put(ctx, &count)?;
        ctx.emit(self.out).text(count)
    }
}

pelton_sdk::aggregate!(Count);
