//! A folder that one process holds at a time. A lock dies with its process, so a kill leaves nothing to clean up.

use std::fs::{File, OpenOptions, TryLockError, create_dir_all, metadata};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

const LOCK_FILE: &str = "LOCKED-BY";

/// Holds a folder until dropped. A second lock is refused within the same process, too.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// Why a folder could not be taken.
#[derive(Debug)]
pub enum FolderError {
    /// Another holder is alive: its process id and command line, as far as they could be read.
    Held(String),
    /// The folder cannot be made or written.
    Io(io::Error),
}

impl FolderLock {
    /// Makes the folder where it is missing and takes it, leaving a note of who holds it.
    pub fn take(dir: &Path) -> Result<FolderLock, FolderError> {
        create_dir_all(dir).map_err(|error| in_the_way(dir).unwrap_or(error))?;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(dir.join(LOCK_FILE)).map_err(FolderError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::Held(read_holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(FolderError::Io(error)),
        }
        write_holder(&mut file).map_err(FolderError::Io)?;
        Ok(FolderLock { _file: file })
    }
}

/// The file that stands where the folder, or one that it is in, should be. The system's own words leave open which.
pub fn in_the_way(dir: &Path) -> Option<io::Error> {
    let file = dir.ancestors().find(|path| metadata(path).is_ok_and(|found| !found.is_dir()))?;
    Some(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is a file, not a folder", file.display())))
}

impl From<io::Error> for FolderError {
    fn from(error: io::Error) -> Self {
        FolderError::Io(error)
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    let command: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "process {}: {}", std::process::id(), command.join(" "))
}

fn read_holder(file: &mut File) -> String {
    let mut holder = String::new();
    match file.take(4096).read_to_string(&mut holder) {
        Ok(n) if n > 0 => holder,
        _ => "unknown process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = FolderLock::take(dir.path()).unwrap();
        let Err(FolderError::Held(holder)) = FolderLock::take(dir.path()) else { panic!("taken twice") };
        assert!(holder.starts_with(&format!("process {}: ", std::process::id())), "{holder}");
        drop(first);
        FolderLock::take(dir.path()).unwrap();
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        for wanted in [file.clone(), file.join("a/b")] {
            let Err(FolderError::Io(error)) = FolderLock::take(&wanted) else { panic!("{}", wanted.display()) };
            assert_eq!(error.to_string(), format!("{} is a file, not a folder", file.display()));
        }
        assert!(in_the_way(&dir.path().join("missing/b")).is_none());
    }

    #[test]
    fn a_note_left_by_the_dead_does_not_hold() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(LOCK_FILE), "process 1: long gone and longer than the next one").unwrap();
        let _lock = FolderLock::take(dir.path()).unwrap();
        let note = std::fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        assert!(!note.contains("long gone"));
    }
}
