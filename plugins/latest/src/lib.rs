//! Keeps the latest value of each key; a null value deletes it. Emits the key with what is stored now, a tombstone after a delete.

use pelton_sdk::prelude::*;

struct Latest {
    out: Output,
    values: KeyStore<Vec<u8>>,
}

impl Aggregate for Latest {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out"), values: declaration.key_store("values") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        match record.value() {
            Some(value) => self.values.put(ctx, value)?,
            None => self.values.delete(ctx)?,
        }
        let stored = self.values.get(ctx)?;
        ctx.emit(self.out).value(stored.as_ref());
        Ok(())
    }
}

pelton_sdk::aggregate!(Latest);
