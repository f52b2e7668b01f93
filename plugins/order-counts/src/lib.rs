//! Running totals of orders and CDs per customer.

use pelton_sdk::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Order {
    number_of_cds: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Totals {
    orders: u64,
    cds: u64,
}

struct OrderCounts {
    counts: Output,
    totals: KeyStore<Json<Totals>>,
}

impl Aggregate for OrderCounts {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("orders");
        Self { counts: declaration.output("counts"), totals: declaration.key_store("totals") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        let order: Order = record.json()?;
        let mut totals = self.totals.get(ctx)?.unwrap_or_default();
        totals.orders += 1;
        totals.cds += order.number_of_cds;
        self.totals.put(ctx, &totals)?;
        ctx.observe("cds_per_order", order.number_of_cds as f64);
        ctx.emit(self.counts).json(&totals)
    }
}

pelton_sdk::aggregate!(OrderCounts);
