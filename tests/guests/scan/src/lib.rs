//! Writes and scans a partition store, for tests: the verbs are in a record's value, separated by `;` and done in order.
//!
//! `put K V` · `del K` · `get K` emits `V` or `-` · `scan PREFIX [LIMIT]` and `rscan PREFIX [LIMIT]` emit `K=V,K=V`, with `,...` behind when
//! more follow · `reject` rejects the record. Emits have the input's key.

use pelton_sdk::prelude::*;

struct Table {
    out: Output,
    table: PartitionStore<String>,
}

impl Aggregate for Table {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out"), table: declaration.partition_store("table") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        for verb in record.text()?.split(';') {
            self.verb(&verb.split_whitespace().collect::<Vec<_>>(), ctx)?;
        }
        Ok(())
    }
}

impl Table {
    fn verb(&self, words: &[&str], ctx: &mut Context) -> Outcome {
        match words {
            ["put", key, value] => self.table.put(ctx, key, value)?,
            ["del", key] => self.table.delete(ctx, key),
            ["get", key] => {
                let value = self.table.get(ctx, key)?;
                ctx.emit(self.out).value(value.as_deref().unwrap_or("-"));
            }
            ["scan", rest @ ..] => self.list(scan(rest)?, ctx)?,
            ["rscan", rest @ ..] => self.list(scan(rest)?.reverse(), ctx)?,
            ["reject"] => return Err(Error::reject("asked-to-reject", "record asks to be rejected")),
            _ => return Err(Error::reject("unknown-verb", format!("verb {words:?} is unknown"))),
        }
        Ok(())
    }

    fn list(&self, scan: Scan, ctx: &mut Context) -> Outcome {
        let page = self.table.scan(ctx, &scan)?;
        let mut entries: Vec<String> =
            page.entries.iter().map(|(key, value)| format!("{}={value}", String::from_utf8_lossy(key))).collect();
        if page.more {
            entries.push("...".to_owned());
        }
        ctx.emit(self.out).value(&entries.join(","));
        Ok(())
    }
}

fn scan(words: &[&str]) -> Result<Scan, Error> {
    Ok(match words {
        [] => Scan::all(),
        [prefix] => Scan::prefix(prefix),
        [prefix, limit, ..] => Scan::prefix(prefix).limit(limit.parse()?),
    })
}

pelton_sdk::aggregate!(Table);
