//! WASI 0.2 for toolchains that cannot do without: nothing granted, nothing that a replay would not repeat.
//!
//! Written out here instead of taken from wasmtime-wasi, whose waits and streams need a runtime with threads. What is defined is what
//! language runtimes call on their own; every other function of WASI traps when it is called.

mod io;
mod state;

pub(super) use state::{Seed, Wasi};

use super::host::{Data, Refusal};
use super::limits::{Breach, Limit};
use state::{Descriptor, InputStream, IoError, Output, OutputStream, Pollable, Terminal};
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{
    Component, ComponentNamedList, ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType,
};
use wasmtime::{Engine, StoreContextMut};

type Cx<'a> = StoreContextMut<'a, Data>;

/// `wasi:clocks/wall-clock`, record `datetime`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// Adds what a component imports of WASI, under the very versions that it names.
pub(super) fn add(linker: &mut Linker<Data>, component: &Component) -> wasmtime::Result<()> {
    let (ty, engine) = (component.component_type(), linker.engine().clone());
    let mut any = false;
    for (full, item) in ty.imports(&engine).filter(|(full, _)| full.starts_with("wasi:")) {
        any = true;
        let mut to = linker.instance(full)?;
        if let ComponentItem::ComponentInstance(instance) = item.ty {
            resources(&mut to, &instance, &engine)?;
        }
        interface(&mut to, full.split_once('@').map_or(full, |(name, _)| name))?;
    }
    if any { linker.define_unknown_imports_as_traps(component) } else { Ok(()) }
}

/// Defines a function that gives way before it does its work.
fn define<P, R, F>(to: &mut LinkerInstance<'_, Data>, name: &str, work: F) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Send + 'static,
    R: ComponentNamedList + Lower + 'static,
    F: Fn(Cx<'_>, P) -> wasmtime::Result<R> + Copy + Send + Sync + 'static,
{
    to.func_wrap_async(name, move |cx: Cx<'_>, asked: P| {
        Box::new(async move {
            cx.data().pace.breathe().await?;
            work(cx, asked)
        })
    })
}

/// An interface lists the resources that it only uses, too, and they must be the same types there: so they are known by name.
fn resources(to: &mut LinkerInstance<'_, Data>, instance: &ComponentInstance, engine: &Engine) -> wasmtime::Result<()> {
    let resources = instance.exports(engine).filter(|(_, item)| matches!(item.ty, ComponentItem::Resource(_)));
    for (name, _) in resources {
        let ty = match name {
            "error" => ResourceType::host::<IoError>(),
            "pollable" => ResourceType::host::<Pollable>(),
            "input-stream" => ResourceType::host::<InputStream>(),
            "output-stream" => ResourceType::host::<OutputStream>(),
            "terminal-input" => ResourceType::host::<Terminal<0>>(),
            "terminal-output" => ResourceType::host::<Terminal<1>>(),
            "descriptor" => ResourceType::host::<Descriptor>(),
            _ => continue,
        };
        to.resource(name, ty, |_, _| Ok(()))?;
    }
    Ok(())
}

fn interface(to: &mut LinkerInstance<'_, Data>, name: &str) -> wasmtime::Result<()> {
    match name {
        "wasi:cli/environment" => environment(to),
        "wasi:cli/exit" => exit(to),
        "wasi:cli/stdin" => define(to, "get-stdin", |_: Cx<'_>, ()| Ok((Resource::<InputStream>::new_own(0),))),
        "wasi:cli/stdout" => define(to, "get-stdout", |_: Cx<'_>, ()| Ok((output(Output::Stdout),))),
        "wasi:cli/stderr" => define(to, "get-stderr", |_: Cx<'_>, ()| Ok((output(Output::Stderr),))),
        "wasi:cli/terminal-stdin" => define(to, "get-terminal-stdin", |_: Cx<'_>, ()| Ok((no_terminal::<0>(),))),
        "wasi:cli/terminal-stdout" => define(to, "get-terminal-stdout", |_: Cx<'_>, ()| Ok((no_terminal::<1>(),))),
        "wasi:cli/terminal-stderr" => define(to, "get-terminal-stderr", |_: Cx<'_>, ()| Ok((no_terminal::<1>(),))),
        "wasi:clocks/wall-clock" => wall_clock(to),
        "wasi:clocks/monotonic-clock" => monotonic_clock(to),
        "wasi:random/random" => random(to, "get-random-bytes", "get-random-u64"),
        "wasi:random/insecure" => random(to, "get-insecure-random-bytes", "get-insecure-random-u64"),
        "wasi:random/insecure-seed" => define(to, "insecure-seed", |mut cx: Cx<'_>, ()| {
            let wasi = &mut cx.data_mut().wasi;
            Ok(((wasi.random_u64(), wasi.random_u64()),))
        }),
        "wasi:io/error" => io::error(to),
        "wasi:io/poll" => io::poll(to),
        "wasi:io/streams" => io::streams(to),
        "wasi:filesystem/preopens" => {
            define(to, "get-directories", |_: Cx<'_>, ()| Ok((Vec::<(Resource<Descriptor>, String)>::new(),)))
        }
        _ => Ok(()),
    }
}

fn environment(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "get-environment", |_: Cx<'_>, ()| Ok((Vec::<(String, String)>::new(),)))?;
    define(to, "get-arguments", |_: Cx<'_>, ()| Ok((Vec::<String>::new(),)))?;
    define(to, "initial-cwd", |_: Cx<'_>, ()| Ok((None::<String>,)))
}

fn exit(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "exit", |_: Cx<'_>, (_,): (Result<(), ()>,)| -> wasmtime::Result<()> { Err(Refusal::Exit.into()) })?;
    define(to, "exit-with-code", |_: Cx<'_>, (_,): (u8,)| -> wasmtime::Result<()> { Err(Refusal::Exit.into()) })
}

fn wall_clock(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "now", |cx: Cx<'_>, ()| {
        let ms = cx.data().wasi.now_ms();
        Ok((Datetime { seconds: ms / 1000, nanoseconds: (ms % 1000) as u32 * 1_000_000 },))
    })?;
    define(to, "resolution", |_: Cx<'_>, ()| Ok((Datetime { seconds: 0, nanoseconds: 1_000_000 },)))
}

fn monotonic_clock(to: &mut LinkerInstance<'_, Data>) -> wasmtime::Result<()> {
    define(to, "now", |cx: Cx<'_>, ()| Ok((cx.data().wasi.monotonic_ns(),)))?;
    define(to, "resolution", |_: Cx<'_>, ()| Ok((1_000_000u64,)))?;
    define(to, "subscribe-duration", |mut cx: Cx<'_>, (ns,): (u64,)| {
        cx.data_mut().wasi.skip(ns);
        Ok((io::ready(),))
    })?;
    define(to, "subscribe-instant", |mut cx: Cx<'_>, (at,): (u64,)| {
        let wasi = &mut cx.data_mut().wasi;
        wasi.skip(at.saturating_sub(wasi.monotonic_ns()));
        Ok((io::ready(),))
    })
}

fn random(to: &mut LinkerInstance<'_, Data>, bytes: &str, number: &str) -> wasmtime::Result<()> {
    define(to, bytes, |mut cx: Cx<'_>, (length,): (u64,)| {
        let data = cx.data_mut();
        let bound = data.quota.output_bytes;
        if length > bound {
            return Err(Breach { limit: Limit::Output, asked: length, bound }.into());
        }
        Ok((data.wasi.random_bytes(length as usize),))
    })?;
    define(to, number, |mut cx: Cx<'_>, ()| Ok((cx.data_mut().wasi.random_u64(),)))
}

fn output(which: Output) -> Resource<OutputStream> {
    Resource::new_own(which as u32)
}

fn no_terminal<const KIND: u32>() -> Option<Resource<Terminal<KIND>>> {
    None
}
