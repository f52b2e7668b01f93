//! The cache of compiled components: one file per component and engine, in a folder that only this user may write.
//!
//! The one place in this room with `unsafe`: wasmtime trusts compiled code it is handed. Why this is sound is said at the call.

use crate::model::Fault;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::component::Component;

/// Bytes of the checksum before the code.
const SUM: usize = 32;

/// A folder of compiled components. A file that is broken or foreign is treated as absent and written anew.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
    /// What of this engine the code depends on: version, settings, CPU.
    engine: u64,
}

impl Cache {
    /// Opens the folder, and takes the rights of others where it is there.
    pub(super) fn open(dir: &Path, engine: &wasmtime::Engine) -> Result<Cache, Fault> {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        // made when there is something to keep, so that a start which is refused leaves nothing behind
        if dir.exists() {
            fs::read_dir(dir).map_err(|e| unusable(dir, &e))?;
            fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|e| unusable(dir, &e))?;
        }
        Ok(Cache { dir: dir.to_owned(), engine: hasher.finish() })
    }

    /// The compiled component, if its file is there and whole.
    pub(super) fn get(&self, engine: &wasmtime::Engine, digest: &str) -> Option<Component> {
        let file = fs::read(self.file(digest)).ok()?;
        let (sum, code) = file.split_at_checked(SUM)?;
        if Sha256::digest(code).as_slice() != sum {
            return None;
        }
        load(engine, code)
    }

    /// Keeps a compiled component. A cache that cannot be written costs time at the next start, nothing else.
    pub(super) fn put(&self, digest: &str, component: &Component) {
        let Ok(code) = component.serialize() else { return };
        if let Err(error) = self.write(digest, &code) {
            tracing::warn!(dir = %self.dir.display(), %error, "could not keep a compiled plugin");
        }
    }

    /// By rename, so that no reader sees half a file.
    fn write(&self, digest: &str, code: &[u8]) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let part = self.dir.join(format!("{digest}.{}-{}.part", std::process::id(), COUNT.fetch_add(1, Relaxed)));
        let mut file = File::create(&part)?;
        file.write_all(Sha256::digest(code).as_slice())?;
        file.write_all(code)?;
        drop(file);
        fs::rename(&part, self.file(digest))
    }

    fn file(&self, digest: &str) -> PathBuf {
        self.dir.join(format!("{digest}-{:016x}.compiled", self.engine))
    }
}

#[allow(unsafe_code, reason = "loading code that this program compiled")]
fn load(engine: &wasmtime::Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: `deserialize` asks that the bytes come from `Component::serialize`. They were written by `put` into a folder of
    // mode 0700, so by this program or by somebody who is this user already and needs no help from us; the checksum before them
    // says that they are whole; and wasmtime itself refuses bytes of another version, setting or CPU.
    unsafe { Component::deserialize(engine, code) }.ok()
}

fn unusable(dir: &Path, error: &std::io::Error) -> Fault {
    Fault::fatal("plugin-cache-unusable", format!("cannot use {} to keep compiled plugins: {error}", dir.display()))
        .hint("make the folder writable, or choose another state_dir")
}
