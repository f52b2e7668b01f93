//! The state folder: one process at a time, and an instance id that survives restarts.

use crate::model::folder::{FolderError, FolderLock};
use crate::model::{Clock, Fault};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Holds the state folder for this process until dropped (or killed: the kernel lets go of the lock).
#[derive(Debug)]
pub(super) struct StateFolder {
    _lock: FolderLock,
    pub instance: String,
}

impl StateFolder {
    /// Locks the folder, creating it where it is missing, and reads or makes the instance id.
    pub(super) fn open(dir: &Path, clock: &dyn Clock) -> Result<StateFolder, Fault> {
        let lock = FolderLock::take(dir).map_err(|error| match error {
            FolderError::Held(holder) => taken(dir, &holder),
            FolderError::Io(error) => unwritable(dir, &error),
        })?;
        let instance = instance_id(dir, clock).map_err(|error| unwritable(dir, &error))?;
        Ok(StateFolder { _lock: lock, instance })
    }
}

fn taken(dir: &Path, holder: &str) -> Fault {
    let message = format!("state folder {}: in use by {holder}", dir.display());
    Fault::fatal("state-locked", message)
        .hint("stop that process, or give this one a folder of its own with --state-dir")
}

fn unwritable(dir: &Path, error: &std::io::Error) -> Fault {
    let message = format!("state folder {}: not writable: {error}", dir.display());
    Fault::fatal("state-not-writable", message).hint("check its owner and mode, or set state_dir to another folder")
}

/// Sixteen hex digits, made once. Written by rename, so that a crash leaves the whole id or none.
fn instance_id(dir: &Path, clock: &dyn Clock) -> std::io::Result<String> {
    let path = dir.join("instance");
    if let Ok(id) = fs::read_to_string(&path)
        && id.len() == 16
        && id.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Ok(id);
    }
    let id = fresh_id(clock);
    let part = dir.join("instance.part");
    let mut file = File::create(&part)?;
    file.write_all(id.as_bytes())?;
    file.sync_all()?;
    fs::rename(part, path)?;
    Ok(id)
}

/// Unique enough for folders made on many machines at once: the standard library's hasher seeds come from the kernel's randomness.
fn fresh_id(clock: &dyn Clock) -> String {
    use std::hash::{BuildHasher, RandomState};
    let seed = (clock.wall_ms(), std::process::id());
    format!("{:016x}", RandomState::new().hash_one(seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SystemClock;

    #[test]
    fn the_id_survives_and_the_folder_is_held_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let clock = SystemClock::default();
        let first = StateFolder::open(dir.path(), &clock).unwrap();
        let second = StateFolder::open(dir.path(), &clock).unwrap_err();
        assert_eq!(second.code, "state-locked");
        assert!(second.message.contains(&std::process::id().to_string()));
        let id = first.instance.clone();
        drop(first);
        assert_eq!(StateFolder::open(dir.path(), &clock).unwrap().instance, id);
    }
}
