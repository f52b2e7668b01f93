//! The state folder: of one application, held by one process at a time, with an instance id that survives restarts.

use crate::model::folder::{FolderError, FolderLock, in_the_way};
use crate::model::{Clock, Fault};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Holds the state folder for this process until dropped (or killed: the kernel lets go of the lock).
#[derive(Debug)]
pub(super) struct StateFolder {
    _lock: FolderLock,
    pub instance: String,
}

impl StateFolder {
    /// Locks the folder, creating it where it is missing, and reads or makes the instance id. A folder of another application is
    /// refused; one that does not say whose it is, is this one's from now on.
    pub(super) fn open(dir: &Path, application: &str, clock: &dyn Clock) -> Result<StateFolder, Fault> {
        let lock = FolderLock::take(dir).map_err(|error| match error {
            FolderError::Held(holder) => taken(dir, &holder),
            FolderError::Io(error) => unusable(dir, &error),
        })?;
        if !belongs(dir, application)? {
            put(dir, OWNER, application).map_err(|error| unusable(dir, &error))?;
        }
        let instance = instance_id(dir, clock).map_err(|error| unusable(dir, &error))?;
        Ok(StateFolder { _lock: lock, instance })
    }

    /// What [`StateFolder::open`] would refuse, as far as that can be seen without changing anything.
    pub(super) fn check(dir: &Path, application: &str) -> Result<(), Fault> {
        in_the_way(dir).map_or(Ok(()), |error| Err(unusable(dir, &error)))?;
        belongs(dir, application).map(drop)
    }
}

/// Holds the id of the application whose folder it is.
const OWNER: &str = "application";
const INSTANCE: &str = "instance";

fn taken(dir: &Path, holder: &str) -> Fault {
    let message = format!("state folder {}: in use by {holder}", dir.display());
    Fault::fatal("state-locked", message)
        .hint("stop that process, or give this one a folder of its own with --state-dir")
}

pub(super) fn unusable(dir: &Path, error: &std::io::Error) -> Fault {
    let message = format!("state folder {}: cannot be used: {error}", dir.display());
    Fault::fatal("state-not-writable", message)
        .hint("set application.state_dir, or --state-dir, to a folder that this user can write")
}

/// Whether the folder says that it is this application's. False where it says nothing.
fn belongs(dir: &Path, application: &str) -> Result<bool, Fault> {
    let owner = match fs::read_to_string(dir.join(OWNER)) {
        Ok(owner) => owner,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unusable(dir, &error)),
    };
    if owner == application {
        return Ok(true);
    }
    let message = format!("state folder {}: belongs to the application {owner}, not to {application}", dir.display());
    Err(Fault::fatal("state-of-another", message)
        .hint("give each application a folder of its own with application.state_dir, or --state-dir"))
}

/// Sixteen hex digits, made once.
fn instance_id(dir: &Path, clock: &dyn Clock) -> std::io::Result<String> {
    if let Ok(id) = fs::read_to_string(dir.join(INSTANCE))
        && id.len() == 16
        && id.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Ok(id);
    }
    let id = fresh_id(clock);
    put(dir, INSTANCE, &id)?;
    Ok(id)
}

/// Written by rename, so that a crash leaves the whole text or none.
pub(super) fn put(dir: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let part = dir.join(format!("{name}.part"));
    let mut file = File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(part, dir.join(name))
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
        let first = StateFolder::open(dir.path(), "a", &clock).unwrap();
        let second = StateFolder::open(dir.path(), "a", &clock).unwrap_err();
        assert_eq!(second.code, "state-locked");
        assert!(second.message.contains(&std::process::id().to_string()));
        let id = first.instance.clone();
        drop(first);
        assert_eq!(StateFolder::open(dir.path(), "a", &clock).unwrap().instance, id);
    }

    #[test]
    fn a_folder_is_of_one_application() {
        let dir = tempfile::tempdir().unwrap();
        let clock = SystemClock::default();
        // as an earlier version left it
        fs::write(dir.path().join(INSTANCE), "0123456789abcdef").unwrap();
        StateFolder::check(dir.path(), "b").unwrap();
        let adopted = StateFolder::open(dir.path(), "a", &clock).unwrap();
        assert_eq!(adopted.instance, "0123456789abcdef");
        drop(adopted);
        for refused in [StateFolder::open(dir.path(), "b", &clock).map(drop), StateFolder::check(dir.path(), "b")] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code, "state-of-another");
            assert!(refused.message.ends_with("belongs to the application a, not to b"), "{refused}");
            assert!(refused.to_string().contains("application.state_dir"), "{refused}");
        }
        StateFolder::check(dir.path(), "a").unwrap();
        StateFolder::open(dir.path(), "a", &clock).unwrap();
    }

    #[test]
    fn a_file_in_the_folders_place_is_refused_with_the_setting() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for wanted in [file.clone(), file.join("state")] {
            let opened = StateFolder::open(&wanted, "a", &SystemClock::default()).map(drop);
            for refused in [opened, StateFolder::check(&wanted, "a")] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains(&format!("{} is a file, not a folder", file.display())), "{refused}");
                assert!(refused.contains("application.state_dir"), "{refused}");
            }
        }
    }
}
