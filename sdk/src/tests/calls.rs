//! Calls: order, all or nothing, state in view, endings.

use std::marker::PhantomData;

use pelton_bindings_transform::pelton::plugin::types::{Ending, Progress};

use super::batch::{Entry, batch, core, emits, keyed, rejected, writes};
use super::host::MemoryHost;
use crate::call::Core;
use crate::{Context, Error, KeyStore, Null, Outcome, Output, PartitionStore, Record};

const OUT: Output = Output(0);

fn store(at: usize) -> KeyStore<String> {
    KeyStore { at, codec: PhantomData }
}

fn table() -> PartitionStore<String> {
    PartitionStore { at: 0, codec: PhantomData }
}

fn run(
    core: &mut Core,
    host: &MemoryHost,
    keys: &[&str],
    process: impl FnMut(&Record<'_>, &mut Context<'_>) -> Outcome,
) -> Progress {
    let batch = keyed(keys);
    core.begin(&batch);
    core.run(host, &batch, process)
}

/// Appends a mark to the key's value and emits it.
fn append(_record: &Record<'_>, ctx: &mut Context<'_>) -> Outcome {
    let value = store(0).get(ctx)?.unwrap_or_default() + "x";
    store(0).put(ctx, &value)?;
    ctx.emit(OUT).value(&value);
    Ok(())
}

#[test]
fn state_is_read_once_for_the_distinct_keys_and_own_writes_are_seen() {
    let host = MemoryHost::with(10, &[("a", "1")]);
    let progress = run(&mut core(1, 0), &host, &["a", "b", "a", "a"], append);
    assert_eq!(emits(&progress), ["0:a=1x", "1:b=x", "2:a=1xx", "3:a=1xxx"]);
    assert_eq!(writes(&progress), ["1:10:b=x", "3:10:a=1xxx"]);
    assert_eq!((host.reads.get(), host.keys_read.get()), (1, 2));
    assert_eq!(progress.done, 4);
}

#[test]
fn a_call_forgets_what_the_last_one_read_and_wrote() {
    let (mut core, host) = (core(1, 0), MemoryHost::default());
    run(&mut core, &host, &["a"], append);
    let progress = run(&mut core, &host, &["a", "b"], append);
    assert_eq!(emits(&progress), ["0:a=x", "1:b=x"]);
    assert_eq!(host.reads.get(), 2);
}

#[test]
fn a_rejected_record_leaves_nothing() {
    let host = MemoryHost::with(10, &[("a", "1")]);
    let progress = run(&mut core(1, 1), &host, &["a", "a", "a"], |record, ctx| {
        append(record, ctx)?;
        table().put(ctx, "t", "v")?;
        table().delete(ctx, "u");
        ctx.emit(OUT).header("h", "v").value("extra");
        if record.offset() == 101 { Err(Error::reject("no", "no")) } else { Ok(()) }
    });
    assert_eq!(emits(&progress), ["0:a=1x", "0:a=extra", "2:a=1xx", "2:a=extra"]);
    assert_eq!(writes(&progress), ["2:10:a=1xx", "2:20:t=v", "2:20:u=-"]);
    assert_eq!(rejected(&progress), ["1:no"]);
    assert_eq!(progress.effects.emits.headers.names.lengths.len(), 2);
    assert_eq!(progress.done, 3);
}

#[test]
fn the_only_writer_rejected_writes_nothing() {
    let progress = run(&mut core(1, 1), &MemoryHost::default(), &["a"], |record, ctx| {
        append(record, ctx)?;
        table().put(ctx, "t", "v")?;
        Err(Error::reject("no", "no"))
    });
    assert!(writes(&progress).is_empty() && emits(&progress).is_empty());
}

#[test]
fn retry_and_stop_end_the_call_at_their_entry() {
    for stop in [false, true] {
        let progress = run(&mut core(1, 0), &MemoryHost::default(), &["a", "b", "c"], |record, ctx| {
            append(record, ctx)?;
            match (record.offset(), stop) {
                (101, false) => Err(Error::retry("later", "busy").after(std::time::Duration::from_millis(250))),
                (101, true) => Err(Error::stop("never", "broken").detail("part", 7)),
                _ => Ok(()),
            }
        });
        assert_eq!(
            (progress.done, emits(&progress), writes(&progress)),
            (1, vec!["0:a=x".into()], vec!["0:10:a=x".into()])
        );
        match progress.ending {
            Ending::Retry(failure) => assert_eq!((failure.code.as_str(), failure.retry_after_ms), ("later", Some(250))),
            Ending::Stop(failure) => assert_eq!(failure.details, [("part".to_owned(), "7".to_owned())]),
            Ending::Complete => panic!("the call must have ended"),
        }
    }
}

#[test]
fn only_the_first_record_can_have_been_tried_before() {
    let progress = run(&mut core(0, 0), &MemoryHost::default(), &["a", "b"], |_, ctx| {
        let attempt = ctx.attempt();
        ctx.emit(OUT).text(attempt)
    });
    assert_eq!(emits(&progress), ["0:a=2", "1:b=0"]);
}

#[test]
fn a_null_key_at_key_state_is_rejected_and_an_empty_one_is_a_key() {
    let progress = run(&mut core(1, 0), &MemoryHost::default(), &["-", "", "-"], append);
    assert_eq!(rejected(&progress), ["0:null-key", "2:null-key"]);
    assert_eq!(writes(&progress), ["1:10:=x"]);
}

#[test]
fn writing_blind_reads_nothing_and_a_later_read_keeps_it() {
    let host = MemoryHost::with(10, &[("a", "old"), ("b", "kept")]);
    let progress = run(&mut core(1, 0), &host, &["a", "a", "b"], |record, ctx| {
        if record.offset() == 100 {
            return store(0).put(ctx, "new");
        }
        let value = store(0).get(ctx)?;
        ctx.emit(OUT).value(value.as_deref());
        Ok(())
    });
    assert_eq!(emits(&progress), ["1:a=new", "2:b=kept"]);
    assert_eq!(host.reads.get(), 1);
    let blind = MemoryHost::default();
    run(&mut core(1, 0), &blind, &["a", "b"], |_, ctx| store(0).delete(ctx));
    assert_eq!(blind.reads.get(), 0);
}

#[test]
fn a_delete_is_seen_and_written_as_null() {
    let host = MemoryHost::with(10, &[("a", "1")]);
    let progress = run(&mut core(1, 0), &host, &["a", "a"], |record, ctx| {
        if record.offset() == 100 {
            store(0).delete(ctx)?;
        }
        let value = store(0).get(ctx)?;
        ctx.emit(OUT).value(value.as_deref());
        Ok(())
    });
    assert_eq!(emits(&progress), ["0:a=-", "1:a=-"]);
    assert_eq!(writes(&progress), ["0:10:a=-"]);
}

#[test]
fn several_stores_keep_apart() {
    let host = MemoryHost::with(11, &[("a", "second")]);
    let progress = run(&mut core(2, 0), &host, &["a"], |_, ctx| {
        let second = store(1).get(ctx)?.unwrap_or_default();
        store(0).put(ctx, &second)
    });
    assert_eq!(writes(&progress), ["0:10:a=second"]);
}

#[test]
fn partition_reads_are_kept_and_can_be_asked_for_ahead() {
    let host = MemoryHost::with(20, &[("a", "1"), ("b", "2")]);
    let mut core = core(0, 1);
    let batch = keyed(&["a", "b", "c", "a"]);
    core.begin(&batch);
    core.read_ahead(&host, &batch, |record, wanted| table().want(wanted, record.key().unwrap()));
    let progress = core.run(&host, &batch, |record, ctx| {
        let value = table().get(ctx, record.key().unwrap())?;
        ctx.emit(OUT).value(value.as_deref());
        Ok(())
    });
    assert_eq!(emits(&progress), ["0:a=1", "1:b=2", "2:c=-", "3:a=1"]);
    assert_eq!((host.reads.get(), host.keys_read.get()), (1, 3));
}

#[test]
fn an_emit_without_a_value_leaves_nothing() {
    let progress = run(&mut core(0, 0), &MemoryHost::default(), &["a"], |_, ctx| {
        let _ = ctx.emit(OUT).header("lost", "v");
        ctx.emit(OUT).key(Null).header("kept", Null).value("v");
        let _ = ctx.emit(OUT).header("lost", "v");
        Ok(())
    });
    assert_eq!(emits(&progress), ["0:-=v"]);
    assert_eq!(progress.effects.emits.headers.names.bytes, b"kept");
    assert_eq!(progress.effects.emits.headers.values.lengths, [-1]);
    assert_eq!(progress.effects.emits.headers.counts, [1]);
}

#[test]
fn records_pass_through_unchanged() {
    let headers: &[(&[u8], Option<&[u8]>)] = &[(b"h", Some(b"1")), (b"h", None), (b"\xff", Some(b""))];
    let entries: [Entry<'_>; 5] = [
        (None, None, &[]),
        (Some(b""), Some(b""), headers),
        (Some(b"\xff\x00"), Some(b"v"), &[]),
        (Some(b"k"), None, &headers[1..]),
        (Some(b"last"), Some(b"end"), &headers[..1]),
    ];
    let (input, mut core) = (batch(&entries), core(0, 0));
    core.begin(&input);
    let progress = core.run(&MemoryHost::default(), &input, |record, ctx| {
        ctx.emit(OUT).headers(record.headers()).value(record.value());
        Ok(())
    });
    let emits = progress.effects.emits;
    assert_eq!((emits.keys.bytes, emits.keys.lengths), (input.keys.bytes, input.keys.lengths));
    assert_eq!((emits.values.bytes, emits.values.lengths), (input.values.bytes, input.values.lengths));
    assert_eq!(emits.headers.counts, input.headers.counts);
    assert_eq!(
        (emits.headers.names.bytes, emits.headers.names.lengths),
        (input.headers.names.bytes, input.headers.names.lengths)
    );
    assert_eq!(
        (emits.headers.values.bytes, emits.headers.values.lengths),
        (input.headers.values.bytes, input.headers.values.lengths)
    );
    assert_eq!((emits.outputs, emits.timestamps), (vec![7; 5], vec![-1; 5]));
}

#[test]
fn any_error_rejects_with_its_causes() {
    let progress = run(&mut core(0, 0), &MemoryHost::default(), &["a"], |_, _| {
        let _: u32 = "x".parse()?;
        Ok(())
    });
    let failure = &progress.rejected[0].failure;
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("error", "invalid digit found in string"));
    assert_eq!(failure.details[0].0, "type");
}

#[test]
fn many_keys_of_one_batch_keep_apart() {
    let keys: Vec<String> = (0..600).map(|number| format!("key-{}", number % 300)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let progress = run(&mut core(1, 0), &MemoryHost::default(), &keys, append);
    assert_eq!(progress.effects.writes.entries.len(), 300);
    assert!(writes(&progress).iter().all(|line| line.ends_with("=xx")));
}
