//! Counts the records of each key, and says in a header which version of it did so: for tests of deploys, which make versions of one
//! build by writing over [`MARK`] in the component.

use pelton_sdk::prelude::*;
use pelton_sdk::{NoSettings, Schema};
use std::hint::black_box;

/// What makes a version: its number, what it does wrong, and its store. Of one length, whatever it says.
static MARK: [u8; 81] = *b"@versioned number=0001 deed=none.... schema=1 reads=1 store=counts.. ...........@";

struct Versioned {
    out: Output,
    counts: KeyStore<u64>,
    number: String,
    deed: String,
}

impl Aggregate for Versioned {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        let number = |name| field(name).parse().unwrap_or(1);
        let schema = Schema { version: number("schema"), reads_from: number("reads") };
        Self {
            out: declaration.output("out"),
            counts: declaration.versioned_key_store(&field("store"), schema),
            number: field("number"),
            deed: field("deed"),
        }
    }

    fn configure(&mut self, _: NoSettings) -> Result<(), Error> {
        match &*self.deed {
            "init" => Err(Error::stop("unwilling", "this version does not start")),
            "hungry" => {
                black_box(vec![1u8; 128 << 20]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        let odd = record.text().is_ok_and(|text| text.starts_with("odd"));
        match &*self.deed {
            "trap" => broken(),
            "odd" if odd => broken(),
            "loop" => while black_box(true) {},
            "later" if odd => return Err(Error::retry("not-yet", "this version cannot do it yet")),
            _ => {}
        }
        let count = self.counts.get(ctx)?.unwrap_or(0) + 1;
        self.counts.put(ctx, &count)?;
        ctx.emit(self.out).header("version", &*self.number).text(count)
    }
}

/// A trap, by what every compiler makes of it.
fn broken() {
    let zero = black_box(0u32);
    black_box([1u32, 2][2 + black_box(zero as usize)]);
}

fn field(name: &str) -> String {
    let mark = black_box(&MARK);
    let text = String::from_utf8_lossy(mark);
    let value = text.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().trim_end_matches('.').to_owned()
}

pelton_sdk::aggregate!(Versioned);
