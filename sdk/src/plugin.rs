//! The traits that a plugin implements.

use serde::Deserialize;

use crate::context::Context;
use crate::declaration::{Declaration, StatefulDeclaration};
use crate::error::{Error, Outcome};
use crate::record::Record;
use crate::store::Wanted;

/// A plugin without state: each record is handled by itself. Its component cannot reach any state.
///
/// `S` is the type of the processor's settings; a plugin without settings leaves it out.
pub trait Transform<S = NoSettings>: Sized {
    /// Says what the plugin reads and writes, and keeps the handles.
    fn declare(declaration: &mut Declaration) -> Self;

    /// Takes the settings, before the first record. An error's message is shown to who starts the application.
    fn configure(&mut self, settings: S) -> Result<(), Error> {
        let _ = settings;
        Ok(())
    }

    /// Handles one record. What it did counts only when it returns `Ok`.
    fn process(&mut self, record: &Record<'_>, ctx: &mut Context<'_>) -> Outcome;
}

/// A plugin with state, by record key or over the partition.
///
/// Fields of the plugin's own type are disposable: state that must last belongs in a store.
/// `S` is the type of the processor's settings; a plugin without settings leaves it out.
pub trait Aggregate<S = NoSettings>: Sized {
    /// Says what the plugin reads, writes and keeps, and keeps the handles.
    fn declare(declaration: &mut StatefulDeclaration) -> Self;

    /// Takes the settings, before the first record. An error's message is shown to who starts the application.
    fn configure(&mut self, settings: S) -> Result<(), Error> {
        let _ = settings;
        Ok(())
    }

    /// Names the keys of partition stores that `record` will need, so that a batch's are read in one call. A hint: leaving it out
    /// costs time only. State by record key needs no hint.
    #[inline]
    fn read_ahead(&self, record: &Record<'_>, wanted: &mut Wanted) {
        let _ = (record, wanted);
    }

    /// Handles one record. What it did counts only when it returns `Ok`.
    fn process(&mut self, record: &Record<'_>, ctx: &mut Context<'_>) -> Outcome;
}

/// The settings of a plugin that has none: anything in the processor's table is refused by name.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}
