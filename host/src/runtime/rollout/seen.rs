//! Which file of a processor's plugin this host has seen last: a file that has changed since is meant to be deployed, and one that has
//! not is not, whatever was deployed in the meantime.

use crate::model::Fault;
use crate::runtime::instance;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "seen";

/// The digest of the file at this host's last start, or at its last deploy by watching; `None` where the state folder is new.
pub(super) fn last(state_dir: &Path, processor: &str) -> Option<String> {
    fs::read_to_string(file(state_dir, processor)).ok().map(|text| text.trim().to_owned())
}

/// Written by rename: a crash leaves the old digest or the new one, and either only means that a file is looked at once more.
pub(super) fn remember(state_dir: &Path, processor: &str, digest: &str) -> Result<(), Fault> {
    let folder = state_dir.join(FOLDER);
    let written = fs::create_dir_all(&folder).and_then(|()| instance::put(&folder, processor, digest));
    written.map_err(|error| instance::unusable(state_dir, &error))
}

fn file(state_dir: &Path, processor: &str) -> PathBuf {
    state_dir.join(FOLDER).join(processor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_its_own_memory() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last(dir.path(), "p"), None);
        remember(dir.path(), "p", "aa").unwrap();
        remember(dir.path(), "q", "bb").unwrap();
        remember(dir.path(), "p", "cc").unwrap();
        assert_eq!((last(dir.path(), "p").as_deref(), last(dir.path(), "q").as_deref()), (Some("cc"), Some("bb")));
    }
}
