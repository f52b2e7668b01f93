//! Typed handles of stores, as the declaration hands them out.

use std::fmt;
use std::marker::PhantomData;

use crate::codec::Codec;
use crate::context::Context;
use crate::error::Error;
use crate::state::{Page, Scan};

/// A store of one value per record key. Reads of a whole batch are one call to the host, at the first read in it.
///
/// A record without a key that reaches it is rejected with `null-key`.
pub struct KeyStore<C> {
    pub(crate) at: usize,
    pub(crate) codec: PhantomData<C>,
}

/// A store over the whole partition: any key, and scans.
pub struct PartitionStore<C> {
    pub(crate) at: usize,
    pub(crate) codec: PhantomData<C>,
}

/// Keys of partition stores that a batch will need, named ahead so that they are read in one call.
#[derive(Debug)]
pub struct Wanted {
    pub(crate) keys: Vec<Vec<Vec<u8>>>,
}

impl<C: Codec> KeyStore<C> {
    /// The value of this record's key, with what the batch wrote before.
    #[inline]
    pub fn get(&self, ctx: &mut Context<'_>) -> Result<Option<C::Value>, Error> {
        let access = ctx.access();
        ctx.core.state.get(self.at, &access)?.map(C::decode).transpose()
    }

    /// Sets the value of this record's key.
    #[inline]
    pub fn put(&self, ctx: &mut Context<'_>, value: &C::View) -> Result<(), Error> {
        let access = ctx.access();
        ctx.core.state.put(self.at, &access, |bytes| C::encode(value, bytes))
    }

    /// Deletes the value of this record's key.
    pub fn delete(&self, ctx: &mut Context<'_>) -> Result<(), Error> {
        let access = ctx.access();
        ctx.core.state.delete(self.at, &access)
    }
}

impl<C: Codec> PartitionStore<C> {
    /// The value of `key`. A key that was not read ahead costs one call to the host, the first time in a batch.
    pub fn get(&self, ctx: &mut Context<'_>, key: impl AsRef<[u8]>) -> Result<Option<C::Value>, Error> {
        let host = ctx.host;
        ctx.core.state.partition[self.at].get(host, key.as_ref()).map(C::decode).transpose()
    }

    /// Sets the value of `key`.
    pub fn put(&self, ctx: &mut Context<'_>, key: impl AsRef<[u8]>, value: &C::View) -> Result<(), Error> {
        let mut bytes = Vec::new();
        C::encode(value, &mut bytes)?;
        ctx.core.state.partition[self.at].set(key.as_ref(), ctx.entry, Some(bytes));
        Ok(())
    }

    /// Deletes `key`.
    pub fn delete(&self, ctx: &mut Context<'_>, key: impl AsRef<[u8]>) {
        ctx.core.state.partition[self.at].set(key.as_ref(), ctx.entry, None);
    }

    /// Keys and values in key order, with what the batch wrote before.
    pub fn scan(&self, ctx: &mut Context<'_>, scan: &Scan) -> Result<Page<C::Value>, Error> {
        let page = ctx.core.state.partition[self.at].scan(ctx.host, scan)?;
        let entries = page.entries.into_iter().map(|(key, value)| Ok((key, C::decode(&value)?)));
        Ok(Page { entries: entries.collect::<Result<_, Error>>()?, more: page.more })
    }

    /// Reads several keys in one call to the host, for the gets that follow.
    pub fn read_ahead<K: AsRef<[u8]>>(&self, ctx: &mut Context<'_>, keys: impl IntoIterator<Item = K>) {
        let keys: Vec<K> = keys.into_iter().collect();
        ctx.core.state.partition[self.at].read_ahead(ctx.host, keys.iter().map(AsRef::as_ref));
    }

    /// Names a key that a record of the batch will need: for [`crate::Aggregate::read_ahead`].
    pub fn want(&self, wanted: &mut Wanted, key: impl AsRef<[u8]>) {
        wanted.keys[self.at].push(key.as_ref().to_vec());
    }
}

impl<C> fmt::Debug for KeyStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyStore").field(&self.at).finish()
    }
}

impl<C> fmt::Debug for PartitionStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartitionStore").field(&self.at).finish()
    }
}
