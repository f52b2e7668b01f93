//! A plugin's declaration: inputs, outputs and stores, said once. It answers `describe`, and hands out the handles by
//! which the plugin names them later, so that the two cannot differ.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::codec::Codec;
use crate::store::{KeyStore, PartitionStore};

/// An input of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Input(pub(crate) u32);

/// An output of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output(pub(crate) u32);

/// Versions of a store's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The version that this plugin writes.
    pub version: u32,
    /// The oldest version that it can read.
    pub reads_from: u32,
}

/// What a plugin reads and writes.
#[derive(Debug, Default)]
pub struct Declaration {
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) other_outputs: bool,
    pub(crate) stores: Vec<StoreSpec>,
}

/// What an aggregate reads, writes and keeps.
#[derive(Debug, Default)]
pub struct StatefulDeclaration(pub(crate) Declaration);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Key,
    Partition,
}

#[derive(Debug)]
pub(crate) struct StoreSpec {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    pub(crate) codec: &'static str,
    pub(crate) schema: Schema,
}

impl Declaration {
    /// Declares an input. The application binds topics to the name.
    pub fn input(&mut self, name: &str) -> Input {
        Input(declare(&mut self.inputs, name))
    }

    /// Declares an output. The application binds a topic to the name.
    pub fn output(&mut self, name: &str) -> Output {
        Output(declare(&mut self.outputs, name))
    }

    /// Lets the application name outputs beyond the declared ones: a router finds them with [`crate::Context::output`].
    pub fn other_outputs(&mut self) {
        self.other_outputs = true;
    }
}

impl StatefulDeclaration {
    /// Declares a store of one value per record key, in schema version 1.
    pub fn key_store<C: Codec>(&mut self, name: &str) -> KeyStore<C> {
        self.versioned_key_store(name, Schema::default())
    }

    /// Declares a store of one value per record key.
    pub fn versioned_key_store<C: Codec>(&mut self, name: &str, schema: Schema) -> KeyStore<C> {
        KeyStore { at: self.store::<C>(name, Scope::Key, schema), codec: PhantomData }
    }

    /// Declares a store over the whole partition, in schema version 1.
    pub fn partition_store<C: Codec>(&mut self, name: &str) -> PartitionStore<C> {
        self.versioned_partition_store(name, Schema::default())
    }

    /// Declares a store over the whole partition.
    pub fn versioned_partition_store<C: Codec>(&mut self, name: &str, schema: Schema) -> PartitionStore<C> {
        PartitionStore { at: self.store::<C>(name, Scope::Partition, schema), codec: PhantomData }
    }

    /// The position among the stores of that scope.
    fn store<C: Codec>(&mut self, name: &str, scope: Scope, schema: Schema) -> usize {
        let at = self.0.stores.iter().filter(|store| store.scope == scope).count();
        self.0.stores.push(StoreSpec { name: name.to_owned(), scope, codec: C::NAME, schema });
        at
    }
}

impl Default for Schema {
    fn default() -> Self {
        Self { version: 1, reads_from: 1 }
    }
}

impl Deref for StatefulDeclaration {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        &self.0
    }
}

impl DerefMut for StatefulDeclaration {
    fn deref_mut(&mut self) -> &mut Declaration {
        &mut self.0
    }
}

/// A name's position; a name that was declared before keeps its own.
fn declare(names: &mut Vec<String>, name: &str) -> u32 {
    let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}
