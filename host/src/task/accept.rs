//! Taking a call's effects: bounds checked, writes staged, emits handed to the log, each traced to its record.

use super::outbox::Bounds;
use super::work::Work;
use super::{Outbox, PARKED, Task};
use crate::model::log::Origin;
use crate::model::{Batch, Failure, Fault, HeadersRef, Progress, RecordRef};

impl Task {
    /// The first entry with an output that its topic would refuse, or a write that the changelog would. `now` in wall-clock ms.
    pub(super) fn breach(&self, batch: &Batch, progress: &Progress, out: &Outbox, now: i64) -> Option<(u32, Failure)> {
        if self.is_harmless(batch, progress, out, now) {
            return None;
        }
        self.first_breach(batch, progress, out, now)
    }

    /// The same, looking at every record.
    pub(super) fn first_breach(
        &self,
        batch: &Batch,
        progress: &Progress,
        out: &Outbox,
        now: i64,
    ) -> Option<(u32, Failure)> {
        let emitted = progress.effects.emits.iter().find_map(|emit| {
            let made = emit.record.timestamp != -1;
            let record = RecordRef { timestamp: time_of(batch, emit.entry, emit.record.timestamp), ..emit.record };
            let inherited_odd = !made && record.timestamp < -1;
            // an odd timestamp of the input passes unchanged; one that the plugin made is the record's failure
            let probe = if inherited_odd { RecordRef { timestamp: -1, ..record } } else { record };
            out.check(self.routes.outputs[emit.output as usize], &probe, now).err().map(|failure| (emit.entry, failure))
        });
        emitted.into_iter().chain(self.write_breach(progress, out, now)).min_by_key(|(entry, _)| *entry)
    }

    /// Whether nothing can be refused: everything together would fit into one record of every topic, and every time is one that
    /// every topic takes. Nearly all calls are such, and this looks at no record's fields.
    pub(super) fn is_harmless(&self, batch: &Batch, progress: &Progress, out: &Outbox, now: i64) -> bool {
        let (emits, writes) = (&progress.effects.emits, &progress.effects.writes);
        let headers =
            emits.headers.names.bytes.len() + emits.headers.values.bytes.len() + 10 * emits.headers.names.len();
        let emitted = emits.keys.bytes.len() + emits.values.bytes.len() + headers;
        let written = writes.keys.bytes.len() + writes.values.bytes.len();
        // the park's changelog, behind the plugin's, is none of the call's business
        let topics = self.routes.outputs.iter().chain(self.routes.changelogs.iter().take(self.spec.stores.len()));
        let bounds = topics.fold(Bounds::default(), |bounds, &topic| out.narrow(topic, bounds, now));
        let times = emits.entries.iter().zip(&emits.timestamps).map(|(&entry, &own)| time_of(batch, entry, own));
        bounds.takes_keys(&emits.keys)
            && bounds.takes_bytes(emitted.max(written) as u64)
            && times.into_iter().all(|time| bounds.takes_time(time))
    }

    fn write_breach(&self, progress: &Progress, out: &Outbox, now: i64) -> Option<(u32, Failure)> {
        let writes = &progress.effects.writes;
        writes.iter().zip(&writes.entries).find_map(|(write, &entry)| {
            let headers = HeadersRef::default();
            let record = RecordRef { key: Some(write.key), value: write.value, headers, timestamp: -1 };
            let failure = out.check(self.routes.changelogs[write.store as usize], &record, now).err()?;
            Some((entry, Failure { code: "state-too-large".into(), ..failure }))
        })
    }

    pub(super) fn refuse_entry(&mut self, work: &Work, entry: u32, failure: Failure) {
        let Origin { input, offset, .. } = self.origin(work, entry);
        self.refuse(input, offset, failure);
    }

    /// Takes the effects of the first `done` entries: writes into the overlay, emits to the log.
    pub(super) fn accept(&mut self, work: &Work, progress: &Progress, out: &mut Outbox) -> Result<(), Fault> {
        self.tally.traffic.records_in += u64::from(progress.done);
        self.tally.traffic.bytes_in += bytes_of(&work.batch, progress.done as usize);
        if let Some(mut stores) = self.stores() {
            stores.stage(&progress.effects.writes, |entry| self.origin(work, entry));
        }
        self.emit(work, progress, out)
    }

    fn emit(&mut self, work: &Work, progress: &Progress, out: &mut Outbox) -> Result<(), Fault> {
        for emit in progress.effects.emits.iter() {
            let record =
                RecordRef { timestamp: time_of(&work.batch, emit.entry, emit.record.timestamp), ..emit.record };
            self.tally.traffic.timestamps_rewritten += u64::from(record.timestamp == 0);
            let origin = self.origin(work, emit.entry);
            out.send(self.routes.outputs[emit.output as usize], None, record, origin)?;
        }
        let emits = &progress.effects.emits;
        self.tally.traffic.records_out += emits.len() as u64;
        self.tally.traffic.bytes_out += (emits.keys.bytes.len() + emits.values.bytes.len()) as u64;
        Ok(())
    }

    /// Takes note that the only record of `work` is done, without effects.
    pub(super) fn done_without(&mut self, work: &Work) {
        self.tally.traffic.records_in += 1;
        self.tally.traffic.bytes_in += work.batch.bytes() as u64;
    }

    pub(super) fn origin(&self, work: &Work, entry: u32) -> Origin {
        let (batch, mark) = (&work.batch, if work.is_parked() { PARKED } else { 0 });
        Origin { slot: self.slot, input: batch.input as u16 | mark, offset: batch.offsets[entry as usize] }
    }
}

/// Bytes of the first `done` records: the rest is counted when it is accepted, however often it is tried before.
fn bytes_of(batch: &Batch, done: usize) -> u64 {
    let bytes = if done == batch.len() { batch.bytes() } else { batch.slice(0..done).bytes() };
    bytes as u64
}

/// An emit's own timestamp, or the input record's.
fn time_of(batch: &Batch, entry: u32, own: i64) -> i64 {
    if own == -1 { batch.timestamps[entry as usize] } else { own }
}
