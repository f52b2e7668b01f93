//! The engine of the process: how guests are compiled and run, and how a file becomes a component that can be called.

use super::bindings::Plugins;
use super::compiled::Cache;
use super::component::{self, Component};
use super::export::{Given, Linked};
use super::fault::FRAMES;
use super::host::Data;
use super::pace::Ticks;
use super::wasi;
use super::world::{self, Surface};
use crate::model::{Clock, Fault, SystemClock};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{HasSelf, InstancePre, Linker};
use wasmtime::{Config, EngineWeak};

/// How often [`Engine::tick`] should be called. A running guest yields at each tick, so this is also the longest that one guest
/// holds its worker.
pub const TICK: Duration = Duration::from_millis(5);

/// Bytes of a guest's stack of calls, unless told otherwise.
pub const GUEST_STACK: u64 = 512 << 10;
/// What a call's stack has beyond the guest's part: for host functions and the stores below them.
const HOST_STACK: usize = 1536 << 10;

/// Compiles and runs plugins. One per process; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    engine: wasmtime::Engine,
    linker: Linker<Data>,
    cache: Option<Cache>,
    ticks: Ticks,
    stack_bytes: u64,
}

/// A file that was read and has the first bytes of a component.
struct Image {
    bytes: Vec<u8>,
    digest: String,
}

impl Image {
    fn of(bytes: Vec<u8>) -> Result<Image, Fault> {
        sniff(&bytes)?;
        let digest = hex::encode(Sha256::digest(&bytes));
        Ok(Image { bytes, digest })
    }
}

impl Engine {
    /// An engine that keeps compiled components in the folder `cache`, which only it may write. Guests have [`GUEST_STACK`].
    ///
    /// Fatal where the folder cannot be used, or the machine cannot run compiled guests.
    pub fn new(cache: Option<&Path>) -> Result<Engine, Fault> {
        Engine::with_stack(cache, GUEST_STACK)
    }

    /// [`Engine::new`] with stacks of `stack_bytes` for guests: how deep their calls may go. Each running call has one.
    pub fn with_stack(cache: Option<&Path>, stack_bytes: u64) -> Result<Engine, Fault> {
        let engine = wasmtime::Engine::new(&config(stack_bytes)).map_err(|e| broken(&e))?;
        let linker = link(&engine).map_err(|e| broken(&e))?;
        let cache = cache.map(|dir| Cache::open(dir, &engine)).transpose()?;
        Ok(Engine { inner: Arc::new(Inner { engine, linker, cache, ticks: Ticks::default(), stack_bytes }) })
    }

    /// Makes every running guest yield at its next loop, call or host call. Someone must do so about every [`TICK`] while calls are polled:
    /// without ticks an endless loop is endless.
    pub fn tick(&self) {
        self.inner.ticks.advance();
        self.inner.engine.increment_epoch();
    }

    /// [`Engine::tick`] as a function that does not keep the engine: false once the engine is gone.
    pub fn ticker(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let (weak, ticks): (EngineWeak, Ticks) = (self.inner.engine.weak(), self.inner.ticks.clone());
        move || {
            ticks.advance();
            weak.upgrade().inspect(wasmtime::Engine::increment_epoch).is_some()
        }
    }

    /// Reads, compiles (or takes from the cache), checks and links the component in a file, and asks it to describe itself.
    /// Needs no ticks.
    ///
    /// Every fault is Fatal: `plugin-missing`, `plugin-unreadable`, `plugin-not-wasm`, `plugin-core-module`, `plugin-other-world`,
    /// `plugin-other-interface`, `plugin-unlinkable`, `plugin-manifest-invalid`.
    pub fn load(&self, path: &Path) -> Result<Arc<Component>, Fault> {
        self.load_bytes(&path.display().to_string(), read(path)?)
    }

    /// [`Engine::load`] of a component that is in no file; faults call it `name`.
    pub fn load_bytes(&self, name: &str, bytes: Vec<u8>) -> Result<Arc<Component>, Fault> {
        let image = Image::of(bytes);
        image
            .and_then(|image| self.load_image(image))
            .map(Arc::new)
            .map_err(|fault| fault.during(format_args!("plugin {name}")))
    }

    fn load_image(&self, image: Image) -> Result<Component, Fault> {
        let clock = SystemClock::default();
        let cached = self.inner.cache.as_ref().and_then(|cache| cache.get(&self.inner.engine, &image.digest));
        let is_cached = cached.is_some();
        let compiled = cached.map_or_else(|| self.compile(&image), Ok)?;
        let compile_time = clock.monotonic();
        let surface = self.surface(&compiled);
        let world = world::of(&surface)?;
        let linked = self.link(&compiled).map_err(|e| world::unlinkable(&format!("{e:#}")))?;
        let given = Given { ticks: self.inner.ticks.clone(), stack_bytes: self.inner.stack_bytes };
        let linked = Linked::new(linked, world, given).map_err(|e| world::other_shape(&e))?;
        let manifest = component::describe(&linked, world)?;
        let Image { digest, bytes } = image;
        Ok(Component {
            manifest,
            world,
            digest,
            bytes,
            compile_time,
            imports: surface.imports,
            linked,
            fresh: (!is_cached).then_some(compiled),
        })
    }

    /// Keeps a loaded component's code for the next start. Apart from [`Engine::load`], so that a start which is refused leaves
    /// nothing behind. A cache that cannot be written costs time, nothing else.
    pub fn keep(&self, component: &Component) {
        if let (Some(cache), Some(code)) = (&self.inner.cache, &component.fresh) {
            cache.put(&component.digest, code);
        }
    }

    fn compile(&self, image: &Image) -> Result<wasmtime::component::Component, Fault> {
        wasmtime::component::Component::new(&self.inner.engine, &image.bytes)
            .map_err(|e| not_wasm(&format!("is not a valid component: {e:#}")))
    }

    fn link(&self, component: &wasmtime::component::Component) -> wasmtime::Result<InstancePre<Data>> {
        let mut linker = self.inner.linker.clone();
        wasi::add(&mut linker, component)?;
        linker.instantiate_pre(component)
    }

    fn surface(&self, component: &wasmtime::component::Component) -> Surface {
        let (ty, engine) = (component.component_type(), &self.inner.engine);
        Surface {
            imports: ty.imports(engine).map(|(name, _)| name.to_owned()).collect(),
            exports: ty.exports(engine).map(|(name, _)| name.to_owned()).collect(),
        }
    }
}

/// The same code gives the same results everywhere, and any guest can be interrupted. Threads are not even compiled in.
fn config(stack_bytes: u64) -> Config {
    let stack = usize::try_from(stack_bytes).unwrap_or(usize::MAX);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(stack)
        .async_stack_size(stack.saturating_add(HOST_STACK))
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(FRAMES))
        // File and line of each frame, for components that keep their line tables (`pelton build --lines`).
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Enable)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // Its bookkeeping costs every call, and no world of ours has an asynchronous function.
        .concurrency_support(false);
    config
}

fn link(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<Data>> {
    let mut linker = Linker::new(engine);
    Plugins::add_to_linker::<_, HasSelf<Data>>(&mut linker, |data| data)?;
    Ok(linker)
}

fn read(path: &Path) -> Result<Vec<u8>, Fault> {
    std::fs::read(path).map_err(|e| unreadable(path, &e))
}

/// Tells components from the other things that people put there, by their first bytes (component model, "Binary.md", preamble).
fn sniff(bytes: &[u8]) -> Result<(), Fault> {
    match bytes.get(..8) {
        Some([0, b'a', b's', b'm', 0x0d, 0, 1, 0]) => Ok(()),
        Some([0, b'a', b's', b'm', 1, 0, 0, 0]) => {
            Err(Fault::fatal("plugin-core-module", "file is a core WebAssembly module, not a component")
                .hint("`pelton build` makes a component of it"))
        }
        Some([0, b'a', b's', b'm', ..]) => Err(not_wasm("is WebAssembly of an unknown version")),
        _ => Err(not_wasm("is not WebAssembly")),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Fault::fatal("plugin-missing", format!("plugin {} does not exist", path.display()))
            .hint("build it with `pelton build`, or correct the processor's `plugin`");
    }
    Fault::fatal("plugin-unreadable", format!("plugin {} cannot be read: {error}", path.display()))
}

fn not_wasm(what: &str) -> Fault {
    Fault::fatal("plugin-not-wasm", format!("file {what}")).hint("build it with `pelton build`")
}

fn broken(error: &wasmtime::Error) -> Fault {
    Fault::fatal("plugin-engine", format!("cannot set up the WebAssembly engine: {error:#}"))
}
