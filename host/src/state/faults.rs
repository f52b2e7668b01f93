//! What RocksDB's errors mean: damaged data is rebuilt from the changelog, a failing disk is waited for.

use crate::model::Fault;
use crate::model::folder::FolderError;
use rocksdb::{Error, ErrorKind};
use std::path::Path;

/// The data is damaged: wipe and restore.
pub(super) fn corrupt(what: &str) -> Fault {
    Fault::corrupt("store-corrupt", what.to_owned())
}

/// An operation on the store failed. Input and output errors (a full disk, too many open files) must never cost a store.
pub(super) fn rocks(attempt: &str, error: &Error) -> Fault {
    match error.kind() {
        ErrorKind::Corruption | ErrorKind::InvalidArgument | ErrorKind::NotSupported => {
            corrupt(&format!("{attempt}: {error}"))
        }
        _ => Fault::transient("store-io", format!("{attempt}: {error}")).hint("look for a full or failing disk"),
    }
}

pub(super) fn folder(dir: &Path, error: FolderError) -> Fault {
    let dir = dir.display();
    match error {
        FolderError::Held(holder) => Fault::fatal("state-locked", format!("state folder {dir} is in use by {holder}"))
            .hint("stop that process, or give this one a folder of its own with --state-dir"),
        FolderError::Io(error) => {
            Fault::fatal("state-not-writable", format!("state folder {dir} cannot be used: {error}"))
                .hint("make it a folder that this user can write, or name another with state_dir")
        }
    }
}

pub(super) fn unknown_store(store: usize) -> Fault {
    Fault::fatal("store-unknown", format!("store number {store} is not one of the plugin's"))
}
