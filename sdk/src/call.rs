//! The walk over a batch: each record in order, its effects all or nothing, until one says that the call must end.

use pelton_bindings_transform::pelton::plugin::types::{Batch, Effects, Ending, Progress, Rejection};

use crate::context::Context;
use crate::declaration::Input;
use crate::emit::EmitLog;
use crate::entropy;
use crate::error::{Error, Outcome, Verdict};
use crate::host::Host;
use crate::record::{Record, Records};
use crate::state::State;
use crate::store::Wanted;
use crate::tally::Tally;

/// Everything that outlives a record: effects of the call so far, state in view, and the buffers of both.
pub(crate) struct Core {
    pub(crate) emits: EmitLog,
    pub(crate) state: State,
    pub(crate) names: Names,
    /// Made by the first record that counts something.
    pub(crate) tally: Option<Box<Tally>>,
}

/// The application's names and numbers, by the plugin's own.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) application: String,
    pub(crate) processor: String,
    /// By the host's number of an input.
    pub(crate) topics: Vec<String>,
    /// By the host's number of an input.
    pub(crate) inputs: Vec<Input>,
    /// The host's number of an output, by the plugin's.
    pub(crate) outputs: Vec<u32>,
    pub(crate) output_names: Vec<String>,
}

impl Core {
    pub(crate) fn new(names: Names, state: State) -> Self {
        Self { emits: EmitLog::new(), state, names, tally: None }
    }

    /// Starts a call.
    pub(crate) fn begin(&mut self, batch: &Batch) {
        entropy::begin(batch);
        self.emits.begin(batch);
        self.state.begin();
    }

    /// Asks `want` for the keys that each record will need, and reads them: one call per store.
    pub(crate) fn read_ahead(&mut self, host: &dyn Host, batch: &Batch, want: impl Fn(&Record<'_>, &mut Wanted)) {
        if self.state.partition.is_empty() {
            return;
        }
        let mut wanted = Wanted { keys: vec![Vec::new(); self.state.partition.len()] };
        Records::new(batch, self.input(batch)).for_each(|record| want(&record, &mut wanted));
        for (store, keys) in self.state.partition.iter_mut().zip(&wanted.keys) {
            store.read_ahead(host, keys.iter().map(Vec::as_slice));
        }
    }

    /// Runs the batch through `process`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        host: &dyn Host,
        batch: &Batch,
        mut process: impl FnMut(&Record<'_>, &mut Context<'_>) -> Outcome,
    ) -> Progress {
        let mut rejected = Vec::new();
        let mut entry = 0;
        let mut ending = Ending::Complete;
        for record in Records::new(batch, self.input(batch)) {
            entropy::at(record.offset());
            let mark = self.emits.len();
            let outcome =
                process(&record, &mut Context { core: self, host, batch, entry, key: record.key(), random: None });
            match outcome {
                Ok(()) => self.state.keep(),
                Err(error) => match self.refuse(error, entry, mark, &mut rejected) {
                    None => {}
                    Some(end) => {
                        ending = end;
                        break;
                    }
                },
            }
            entry += 1;
        }
        if let Some(tally) = &mut self.tally {
            tally.hand_over();
        }
        let effects = Effects { emits: self.emits.take(), writes: self.state.take() };
        Progress { done: entry, effects, rejected, ending }
    }

    /// Undoes the record. A reject is noted and the call goes on; what is returned ends it.
    #[cold]
    fn refuse(&mut self, error: Error, entry: u32, mark: usize, rejected: &mut Vec<Rejection>) -> Option<Ending> {
        self.emits.cut(mark);
        self.state.undo();
        let verdict = error.verdict();
        let failure = error.into_failure();
        match verdict {
            Verdict::Reject => {
                rejected.push(Rejection { entry, failure });
                None
            }
            Verdict::Retry => {
                self.uncount(entry);
                Some(Ending::Retry(failure))
            }
            Verdict::Stop => {
                self.uncount(entry);
                Some(Ending::Stop(failure))
            }
        }
    }

    /// A record that is handled again counts then.
    fn uncount(&mut self, entry: u32) {
        if let Some(tally) = &mut self.tally {
            tally.undo(entry);
        }
    }

    fn input(&self, batch: &Batch) -> Input {
        self.names.inputs.get(batch.input as usize).copied().unwrap_or(Input(batch.input))
    }
}
