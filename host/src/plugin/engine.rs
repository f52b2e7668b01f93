//! The engine of the process: how guests are compiled and run, and how a file becomes a component that can be called.

use super::bindings::Plugins;
use super::compiled::Cache;
use super::component::{self, Component};
use super::export::Linked;
use super::host::Data;
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

/// Bytes of a guest's stack of calls.
pub(super) const WASM_STACK: usize = 512 << 10;
/// The stack that a call runs on: the guest's part, and the rest for host functions and the stores below them.
const CALL_STACK: usize = 2 << 20;

/// Compiles and runs plugins. One per process; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    engine: wasmtime::Engine,
    linker: Linker<Data>,
    cache: Option<Cache>,
}

/// A file that was read and has the first bytes of a component.
struct Image {
    bytes: Vec<u8>,
    digest: String,
}

impl Engine {
    /// An engine that keeps compiled components in the folder `cache`, which only it may write.
    ///
    /// Fatal where the folder cannot be used, or the machine cannot run compiled guests.
    pub fn new(cache: Option<&Path>) -> Result<Engine, Fault> {
        let engine = wasmtime::Engine::new(&config()).map_err(|e| broken(&e))?;
        let linker = link(&engine).map_err(|e| broken(&e))?;
        let cache = cache.map(|dir| Cache::open(dir, &engine)).transpose()?;
        Ok(Engine { inner: Arc::new(Inner { engine, linker, cache }) })
    }

    /// Makes every running guest yield at its next loop or call. Someone must do so about every [`TICK`] while calls are polled:
    /// without ticks an endless loop is endless.
    pub fn tick(&self) {
        self.inner.engine.increment_epoch();
    }

    /// [`Engine::tick`] as a function that does not keep the engine: false once the engine is gone.
    pub fn ticker(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let weak: EngineWeak = self.inner.engine.weak();
        move || weak.upgrade().inspect(wasmtime::Engine::increment_epoch).is_some()
    }

    /// Reads, compiles (or takes from the cache), checks and links the component in a file, and asks it to describe itself.
    /// Needs no ticks.
    ///
    /// Every fault is Fatal: `plugin-missing`, `plugin-unreadable`, `plugin-not-wasm`, `plugin-core-module`, `plugin-other-world`,
    /// `plugin-other-interface`, `plugin-unlinkable`, `plugin-manifest-invalid`.
    pub fn load(&self, path: &Path) -> Result<Arc<Component>, Fault> {
        self.load_image(&read(path)?)
            .map(Arc::new)
            .map_err(|fault| fault.during(format_args!("plugin {}", path.display())))
    }

    fn load_image(&self, image: &Image) -> Result<Component, Fault> {
        let clock = SystemClock::default();
        let cached = self.inner.cache.as_ref().and_then(|cache| cache.get(&self.inner.engine, &image.digest));
        let is_cached = cached.is_some();
        let compiled = cached.map_or_else(|| self.compile(image), Ok)?;
        let compile_time = clock.monotonic();
        let surface = self.surface(&compiled);
        let world = world::of(&surface)?;
        let linked = self.link(&compiled).map_err(|e| world::unlinkable(&format!("{e:#}")))?;
        let linked = Linked::new(linked, world).map_err(|e| world::other_shape(&e))?;
        let manifest = component::describe(&linked, world)?;
        let (digest, size) = (image.digest.clone(), image.bytes.len() as u64);
        Ok(Component {
            manifest,
            world,
            digest,
            size,
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
        wasi::define(&mut linker, component)?;
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
fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(CALL_STACK)
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

fn read(path: &Path) -> Result<Image, Fault> {
    let bytes = std::fs::read(path).map_err(|e| unreadable(path, &e))?;
    sniff(&bytes).map_err(|fault| fault.during(format_args!("plugin {}", path.display())))?;
    let digest = hex::encode(Sha256::digest(&bytes));
    Ok(Image { bytes, digest })
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
