//! Misbehaves on demand: the first word of a record's value says how (`README.md` beside this crate has the table). What it does not
//! know it emits unchanged.

mod deeds;
mod export;
mod lie;
mod verb;

use pelton_sdk::prelude::*;

use verb::Verb;

struct Bad {
    out: Output,
}

impl Transform for Bad {
    fn declare(declaration: &mut Declaration) -> Self {
        declaration.input("in");
        Self { out: declaration.output("out") }
    }

    fn process(&mut self, record: &Record, ctx: &mut Context) -> Outcome {
        let verb = Verb::parse(record.value().unwrap_or_default());
        match verb {
            Verb::Reject => return Err(Error::reject("asked-to-reject", "record asks to be rejected")),
            Verb::Retry => return Err(Error::retry("asked-to-retry", "record asks to be tried again")),
            Verb::Stop => return Err(Error::stop("asked-to-stop", "record asks to stop the stream")),
            Verb::Flaky(wanted) => flaky(wanted, u64::from(ctx.attempt()) + 1)?,
            Verb::Records(count) => return self.many(count, record, ctx),
            Verb::Bytes(count) => return self.large(count, record, ctx),
            Verb::Say => pelton_sdk::info!("{}", record.text()?),
            Verb::Names(count) => deeds::count_names(count, ctx),
            Verb::Measure => deeds::MEASURES.iter().for_each(|value| ctx.observe("measure", *value)),
            other => deeds::perform(other),
        }
        ctx.emit(self.out).headers(record.headers()).value(record.value());
        Ok(())
    }
}

impl Bad {
    fn many(&self, count: u64, record: &Record, ctx: &mut Context) -> Outcome {
        (1..=count).try_for_each(|number| ctx.emit(self.out).headers(record.headers()).text(number))
    }

    fn large(&self, bytes: u64, record: &Record, ctx: &mut Context) -> Outcome {
        let value = vec![b'x'; usize::try_from(bytes).unwrap_or(usize::MAX)];
        ctx.emit(self.out).headers(record.headers()).value(&value);
        Ok(())
    }
}

/// Fails before the attempt that is wanted; the first one has number 1.
fn flaky(wanted: u64, attempt: u64) -> Outcome {
    if attempt >= wanted {
        return Ok(());
    }
    Err(Error::retry("flaky", format!("record works at attempt {wanted}, this is attempt {attempt}")))
}

#[cfg(test)]
mod tests {
    use super::flaky;

    #[test]
    fn flaky_works_from_the_attempt_on_that_is_wanted() {
        assert!(flaky(0, 1).is_ok() && flaky(1, 1).is_ok() && flaky(3, 3).is_ok());
        assert_eq!(flaky(3, 2).unwrap_err().code(), "flaky");
    }
}
