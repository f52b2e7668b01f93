//! `admin.json` in the state folder: where the host of that folder listens, for the command line.

use crate::model::Fault;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE: &str = "admin.json";
const PART: &str = "admin.json.part";

/// Where a host listens and who it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// As a URL without a path.
    pub address: String,
    pub pid: u32,
    pub instance: String,
    pub application: String,
}

impl Note {
    /// `None` where there is none; an error where there is something that is no note.
    pub(super) fn read(folder: &Path) -> io::Result<Option<Note>> {
        match fs::read(folder.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Only for the user whose host it is; whole, or as it was before.
    pub(super) fn put(&self, folder: &Path) -> Result<(), Fault> {
        self.write(folder).map_err(|error| {
            let file = folder.join(FILE);
            Fault::fatal("state-not-writable", format!("{}: cannot be written: {error}", file.display()))
                .hint("set application.state_dir, or --state-dir, to a folder that this user can write")
        })
    }

    /// At a clean end. What another host has put there meanwhile stays.
    pub(super) fn remove(&self, folder: &Path) {
        if Note::read(folder).is_ok_and(|note| note.as_ref() == Some(self)) {
            let _ = fs::remove_file(folder.join(FILE));
        }
    }

    /// Whether its process is there. Where that cannot be seen, whoever connects will find out.
    pub(super) fn is_alive(&self) -> bool {
        let processes = Path::new("/proc");
        !processes.join("self").exists() || processes.join(self.pid.to_string()).exists()
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let part = folder.join(PART);
        // what a crash left there may have other permissions
        match fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(part, folder.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn note(pid: u32) -> Note {
        Note { address: "http://127.0.0.1:1".into(), pid, instance: "i".into(), application: "a".into() }
    }

    #[test]
    fn a_note_is_the_users_alone_and_goes_with_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Note::read(dir.path()).unwrap(), None);
        fs::write(dir.path().join(PART), "left by a crash").unwrap();
        note(1).put(dir.path()).unwrap();
        assert_eq!(fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        note(2).put(dir.path()).unwrap();
        note(1).remove(dir.path());
        assert_eq!(Note::read(dir.path()).unwrap(), Some(note(2)), "another's stays");
        note(2).remove(dir.path());
        assert_eq!(Note::read(dir.path()).unwrap(), None);
    }

    #[test]
    fn what_is_no_note_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Note::read(dir.path()).is_err());
    }

    #[test]
    fn processes_that_are_gone_are_seen() {
        assert!(note(std::process::id()).is_alive());
        assert!(!note(u32::MAX).is_alive());
    }
}
