//! What a plugin counts itself: once per call, of records whose handling is final.

use std::cell::RefCell;

use super::batch::{core, keyed};
use super::host::MemoryHost;
use crate::call::Core;
use crate::tally::Tally;
use crate::{Context, Error, Outcome, Record};

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn hear(counts: &[(String, u64)], values: &[(String, Vec<f64>)]) {
    let lines = counts.iter().map(|(name, count)| format!("{name}={count}"));
    let lines: Vec<String> = lines.chain(values.iter().map(|(name, values)| format!("{name}:{values:?}"))).collect();
    SAID.with_borrow_mut(|said| said.push(lines.join(" ")));
}

fn counting() -> Core {
    let mut core = core(0, 0);
    core.tally = Some(Box::new(Tally::new(hear)));
    core
}

/// What the host hears of a call over these keys.
fn said(core: &mut Core, keys: &[&str], process: impl FnMut(&Record<'_>, &mut Context<'_>) -> Outcome) -> Vec<String> {
    let batch = keyed(keys);
    core.begin(&batch);
    core.run(&MemoryHost::default(), &batch, process);
    SAID.take()
}

fn twice(record: &Record<'_>, ctx: &mut Context<'_>) -> Outcome {
    ctx.count("records", 1);
    ctx.count("letters", record.key().unwrap_or_default().len() as u64);
    ctx.observe("size", record.key().unwrap_or_default().len() as f64);
    Ok(())
}

#[test]
fn a_call_is_told_once_and_the_next_begins_at_nothing() {
    let mut core = counting();
    assert_eq!(said(&mut core, &["a", "bb"], twice), ["records=2 letters=3 size:[1.0, 2.0]"]);
    assert_eq!(said(&mut core, &["ccc"], twice), ["records=1 letters=3 size:[3.0]"]);
    assert_eq!(said(&mut core, &["d"], |_, _| Ok(())), [""; 0], "nothing to tell costs no call");
    let other = |_: &Record<'_>, ctx: &mut Context<'_>| {
        ctx.count("other", 1);
        Ok(())
    };
    assert_eq!(said(&mut core, &["e"], other), ["other=1"], "what is not counted is not said");
}

#[test]
fn a_rejected_record_counts_and_one_that_is_tried_again_does_not() {
    let failing = |error: fn() -> Error| {
        move |record: &Record<'_>, ctx: &mut Context<'_>| {
            twice(record, ctx)?;
            if record.key() == Some(b"bb") { Err(error()) } else { Ok(()) }
        }
    };
    let keys = ["a", "bb", "ccc"];
    let rejected = said(&mut counting(), &keys, failing(|| Error::reject("no", "no")));
    assert_eq!(rejected, ["records=3 letters=6 size:[1.0, 2.0, 3.0]"]);
    for error in [|| Error::retry("later", "later"), || Error::stop("never", "never")] {
        assert_eq!(said(&mut counting(), &keys, failing(error)), ["records=1 letters=1 size:[1.0]"]);
    }
    let quiet = |record: &Record<'_>, ctx: &mut Context<'_>| match record.key() {
        Some(b"a") => twice(record, ctx),
        _ => Err(Error::retry("later", "later")),
    };
    assert_eq!(said(&mut counting(), &keys, quiet), ["records=1 letters=1 size:[1.0]"], "others' counts stay");
}

#[test]
fn neither_values_nor_names_are_handed_over_without_bound() {
    let many = |_: &Record<'_>, ctx: &mut Context<'_>| {
        (0..40_000).for_each(|_| ctx.observe("v", 1.0));
        Ok(())
    };
    let parts = said(&mut counting(), &["a"], many);
    assert_eq!(parts.len(), 4);
    let values: usize = parts.iter().map(|part| part.matches("1.0").count()).sum();
    assert_eq!(values, 40_000);
    let names: Vec<&'static str> = (0..100).map(|n| &*format!("n{n}").leak()).collect();
    let wild = said(&mut counting(), &["a"], |_, ctx| {
        names.iter().for_each(|name| ctx.count(name, 1));
        Ok(())
    });
    assert_eq!(wild[0].matches('=').count(), 64);
}

#[test]
fn counts_stop_at_the_top() {
    let top = |_: &Record<'_>, ctx: &mut Context<'_>| {
        ctx.count("c", u64::MAX);
        ctx.count("c", 7);
        Ok(())
    };
    assert_eq!(said(&mut counting(), &["a"], top), [format!("c={}", u64::MAX)]);
}
