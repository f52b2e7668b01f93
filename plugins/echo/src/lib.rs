//! Emits every record unchanged: key, value, headers, timestamp.

use pelton_sdk::prelude::*;

struct Echo {
    out: Output,
}

impl Transform for Echo {
    fn declare(declaration: &mut Declaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        // Key and timestamp of an emit are the record's unless told otherwise.
        ctx.emit(self.out).headers(record.headers()).value(record.value());
        Ok(())
    }
}

pelton_sdk::transform!(Echo);
