//! Codecs: how a store's typed values become bytes. The codec's name is part of the store's declaration, so that the host
//! can refuse a plugin that would read another format than the running one, and can show values to people.

use std::borrow::Borrow;
use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, chain};

/// Turns values of one type into bytes and back.
///
/// | type | name | format |
/// |---|---|---|
/// | `Vec<u8>` | `bytes` | as they are |
/// | `String` | `utf-8` | UTF-8, without a length |
/// | `u8` … `u128`, `i8` … `i128` | the type's name | big-endian two's complement of the type's width |
/// | [`Json<T>`] | `json` | JSON by serde |
/// | [`Postcard<T>`] | `postcard` | postcard 1 by serde: compact; fields are positional, so a changed type is a new schema version |
pub trait Codec {
    /// The name in the declaration.
    const NAME: &'static str;
    /// What reading gives.
    type Value: Borrow<Self::View>;
    /// What writing takes.
    type View: ?Sized;
    /// Appends the value's bytes. An error rejects the record.
    fn encode(value: &Self::View, into: &mut Vec<u8>) -> Result<(), Error>;
    /// Reads a value back. An error stops the stream: the store holds what this plugin cannot read.
    fn decode(bytes: &[u8]) -> Result<Self::Value, Error>;
}

/// Values as JSON.
#[derive(Debug)]
pub struct Json<T>(PhantomData<T>);

/// Values as postcard.
#[derive(Debug)]
pub struct Postcard<T>(PhantomData<T>);

impl Codec for Vec<u8> {
    const NAME: &'static str = "bytes";
    type Value = Vec<u8>;
    type View = [u8];

    fn encode(value: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        into.extend_from_slice(value);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(bytes.to_vec())
    }
}

impl Codec for String {
    const NAME: &'static str = "utf-8";
    type Value = String;
    type View = str;

    fn encode(value: &str, into: &mut Vec<u8>) -> Result<(), Error> {
        into.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<String, Error> {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| unreadable::<Self>(&error))
    }
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Codec for $integer {
            const NAME: &'static str = stringify!($integer);
            type Value = $integer;
            type View = $integer;

            #[inline]
            fn encode(value: &$integer, into: &mut Vec<u8>) -> Result<(), Error> {
                into.extend_from_slice(&value.to_be_bytes());
                Ok(())
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<$integer, Error> {
                bytes.try_into().map($integer::from_be_bytes).map_err(|error| unreadable::<Self>(&error))
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

impl<T: Serialize + DeserializeOwned> Codec for Json<T> {
    const NAME: &'static str = "json";
    type Value = T;
    type View = T;

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), Error> {
        serde_json::to_writer(into, value).map_err(|error| unwritable::<Self>(&error))
    }

    fn decode(bytes: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(bytes).map_err(|error| unreadable::<Self>(&error))
    }
}

impl<T: Serialize + DeserializeOwned> Codec for Postcard<T> {
    const NAME: &'static str = "postcard";
    type Value = T;
    type View = T;

    fn encode(value: &T, into: &mut Vec<u8>) -> Result<(), Error> {
        postcard::to_io(value, into).map(drop).map_err(|error| unwritable::<Self>(&error))
    }

    fn decode(bytes: &[u8]) -> Result<T, Error> {
        postcard::from_bytes(bytes).map_err(|error| unreadable::<Self>(&error))
    }
}

fn unreadable<C: Codec>(error: &dyn std::error::Error) -> Error {
    Error::stop("state-codec", format!("value of a store is no {}: {}", C::NAME, chain(error)))
}

fn unwritable<C: Codec>(error: &dyn std::error::Error) -> Error {
    Error::reject("state-codec", format!("value for a store cannot be written as {}: {}", C::NAME, chain(error)))
}
