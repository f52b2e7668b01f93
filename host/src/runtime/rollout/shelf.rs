//! Loaded components by their digests: from this host's own file, or from the place that all hosts reach.

use crate::components::Store;
use crate::model::Fault;
use crate::plugin::{Component, Engine};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What was loaded once and is still in use is not loaded again.
pub(in crate::runtime) struct Shelf {
    engine: Engine,
    store: Store,
    loaded: Mutex<HashMap<String, Weak<Component>>>,
}

impl Shelf {
    pub(in crate::runtime) fn new(engine: Engine, store: Store) -> Shelf {
        Shelf { engine, store, loaded: Mutex::default() }
    }

    /// Remembers a component that was loaded elsewhere.
    pub(super) fn know(&self, component: &Arc<Component>) {
        let mut loaded = self.lock();
        loaded.retain(|_, known| known.strong_count() > 0);
        loaded.insert(component.digest.clone(), Arc::downgrade(component));
    }

    /// Compiles a component that somebody hands in.
    pub(super) fn load(&self, name: &str, bytes: Vec<u8>) -> Result<Arc<Component>, Fault> {
        let component = self.engine.load_bytes(name, bytes)?;
        self.know(&component);
        Ok(component)
    }

    /// `Transient` `component-missing`: no host has put it where this one looks, yet.
    pub(super) fn get(&self, digest: &str) -> Result<Arc<Component>, Fault> {
        if let Some(known) = self.lock().get(digest).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let Some(bytes) = self.store.get(digest)? else {
            let message = format!("component {digest} is not in {}", self.store.place());
            return Err(Fault::transient("component-missing", message)
                .hint("set [components] store to a place that all hosts of the application reach"));
        };
        let component = self.load(digest, bytes)?;
        self.engine.keep(&component);
        Ok(component)
    }

    /// Puts a component where other hosts find it.
    pub(super) fn put(&self, digest: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.store.put(digest, bytes)
    }

    pub(super) fn keep(&self, component: &Component) {
        self.engine.keep(component);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<Component>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
