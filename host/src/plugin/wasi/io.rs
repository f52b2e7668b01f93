//! `wasi:io`: input that has ended, output that becomes log lines, and waits that are over at once.

use super::state::{InputStream, IoError, Output, OutputStream, Pollable};
use super::{Cx, define};
use crate::plugin::host::{Data, Refusal};
use crate::plugin::log::Level;
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower, Resource};

/// What `check-write` permits, and so the most that one write may bring: a write can be as many lines as it has bytes.
const WRITE_BYTES: usize = 64 << 10;

/// `wasi:io/streams`, variant `stream-error`.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

pub(super) fn error(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "[method]error.to-debug-string", |_: Cx<'_>, (_,): (Resource<IoError>,)| Ok((String::new(),)))
}

pub(super) fn poll(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "[method]pollable.ready", |_: Cx<'_>, (_,): (Resource<Pollable>,)| Ok((true,)))?;
    define(to, "[method]pollable.block", |_: Cx<'_>, (_,): (Resource<Pollable>,)| Ok(()))?;
    define(to, "poll", |_: Cx<'_>, (all,): (Vec<Resource<Pollable>>,)| {
        Ok(((0..all.len() as u32).collect::<Vec<u32>>(),))
    })
}

pub(super) fn streams(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    input(to)?;
    output(to)
}

/// A pollable that is ready.
pub(super) fn ready() -> Resource<Pollable> {
    Resource::new_own(0)
}

fn input(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    for name in ["read", "blocking-read"] {
        let name = format!("[method]input-stream.{name}");
        define(to, &name, |_: Cx<'_>, (_, _): (Resource<InputStream>, u64)| Ok((closed::<Vec<u8>>(),)))?;
    }
    for name in ["skip", "blocking-skip"] {
        let name = format!("[method]input-stream.{name}");
        define(to, &name, |_: Cx<'_>, (_, _): (Resource<InputStream>, u64)| Ok((closed::<u64>(),)))?;
    }
    define(to, "[method]input-stream.subscribe", |_: Cx<'_>, (_,): (Resource<InputStream>,)| Ok((ready(),)))
}

fn output(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "[method]output-stream.check-write", |_: Cx<'_>, (_,): (Resource<OutputStream>,)| {
        Ok((Ok::<u64, StreamError>(WRITE_BYTES as u64),))
    })?;
    for name in ["write", "blocking-write-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        define(to, &name, |mut cx: Cx<'_>, (stream, bytes): (Resource<OutputStream>, Vec<u8>)| {
            print(cx.data_mut(), stream.rep(), &bytes)?;
            Ok((Ok::<(), StreamError>(()),))
        })?;
    }
    for name in ["flush", "blocking-flush"] {
        let name = format!("[method]output-stream.{name}");
        define(to, &name, |_: Cx<'_>, (_,): (Resource<OutputStream>,)| Ok((Ok::<(), StreamError>(()),)))?;
    }
    define(to, "[method]output-stream.subscribe", |_: Cx<'_>, (_,): (Resource<OutputStream>,)| Ok((ready(),)))
}

fn print(data: &mut Data, stream: u32, bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() > WRITE_BYTES {
        return Err(Refusal::Malformed(format!("wrote {} bytes to a stream at once, not {WRITE_BYTES}", bytes.len())));
    }
    let (output, level) =
        if stream == Output::Stdout as u32 { (Output::Stdout, Level::Info) } else { (Output::Stderr, Level::Warn) };
    data.wasi.print(output, bytes).into_iter().for_each(|line| data.say(level, line));
    Ok(())
}

fn closed<T>() -> Result<T, StreamError> {
    Err(StreamError::Closed)
}
