//! What a plugin may do while it handles a record.

use pelton_bindings_transform::pelton::plugin::types::Batch;

use crate::call::Core;
use crate::declaration::Output;
use crate::emit::Emit;
use crate::host::Host;
use crate::identity::{Id, Origin, Random};
use crate::state::Access;
use crate::tally::{self, Tally};

/// The record's surroundings: emits, state, time, ids.
pub struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) host: &'a dyn Host,
    pub(crate) batch: &'a Batch,
    pub(crate) entry: u32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) random: Option<Random>,
}

impl<'a> Context<'a> {
    /// Starts an emit to `output`, with the record's key and timestamp unless told otherwise.
    #[inline]
    pub fn emit<'b>(&'b mut self, output: Output) -> Emit<'b> {
        let log = &mut self.core.emits;
        log.tidy();
        let output = self.core.names.outputs[output.0 as usize];
        Emit { log, entry: self.entry, output, key: self.key, timestamp: -1, headers: 0 }
    }

    /// The output of that name: a declared one, or one that only the application names
    /// (see [`crate::Declaration::other_outputs`]).
    pub fn output(&self, name: &str) -> Option<Output> {
        let at = self.core.names.output_names.iter().position(|known| known == name)?;
        u32::try_from(at).ok().map(Output)
    }

    /// Adds to a counter of the plugin's own, which the host shows with its metrics as `pelton_plugin_custom_total` with this name.
    ///
    /// It counts once, with the commit, however often the record was handled before; also for a record that is rejected, since its
    /// handling is final. A name is 1 to 64 of `a-z`, `0-9` and `_`; a processor has 50 at most, and what is beyond is left out.
    #[inline]
    pub fn count(&mut self, name: &'static str, more: u64) {
        let entry = self.entry;
        self.tally().count(entry, name, more);
    }

    /// Adds a value to a histogram of the plugin's own, which the host shows as `pelton_plugin_custom` with this name. Say the unit in the
    /// name, such as `price_euros`; its buckets reach from 0.001 to 10,000. A value that is negative, not finite or above 1e15 is left out.
    /// Otherwise as [`Context::count`].
    #[inline]
    pub fn observe(&mut self, name: &'static str, value: f64) {
        let entry = self.entry;
        self.tally().observe(entry, name, value);
    }

    /// The wall clock when the batch was formed, in milliseconds since the epoch.
    ///
    /// It is the same for all records of a batch, and again when the batch is run again. After a restart, when nobody has seen
    /// effects of the earlier run, it is new; what must never change belongs on [`crate::Record::timestamp`].
    pub fn now(&self) -> i64 {
        self.batch.now
    }

    /// How often this record was handled before and asked for a retry: 0 the first time. The host keeps the count, also over a restart.
    pub fn attempt(&self) -> u32 {
        // Only the batch's first entry can have been tried before: a retry ends its call, and the next one begins with it.
        if self.entry == 0 { self.batch.attempt } else { 0 }
    }

    /// An id that no other record of this application and processor gets, and that this record gets again whenever it is
    /// handled. `n` tells the ids of one record apart.
    pub fn id(&self, n: u32) -> Id {
        self.origin().id(n)
    }

    /// The record's next random number; a replay gets the same ones. Not for secrets.
    pub fn random(&mut self) -> u64 {
        let mut random = self.random.unwrap_or_else(|| self.origin().random());
        let number = random.next();
        self.random = Some(random);
        number
    }

    /// The application's id.
    pub fn application(&self) -> &str {
        &self.core.names.application
    }

    /// The processor's name.
    pub fn processor(&self) -> &str {
        &self.core.names.processor
    }

    /// The topic that the record came from.
    pub fn topic(&self) -> &str {
        self.core.names.topics.get(self.batch.input as usize).map_or("", String::as_str)
    }

    #[inline]
    pub(crate) fn access(&self) -> Access<'a> {
        Access { host: self.host, batch: self.batch, entry: self.entry }
    }

    /// Only what counts something names the host's import, so that the component of a plugin that does not imports nothing.
    #[inline]
    fn tally(&mut self) -> &mut Tally {
        self.core.tally.get_or_insert_with(|| Box::new(Tally::new(tally::report)))
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            application: self.application(),
            processor: self.processor(),
            topic: self.topic(),
            partition: self.batch.partition,
            offset: self.batch.offsets[self.entry as usize],
        }
    }
}
