//! Files that are watched: one that has changed is deployed once it is whole. It is looked at now and then, which works on every file
//! system and for every way to replace a file.

use super::{Rollout, seen};
use crate::config::Processor;
use crate::model::{Clock, Fault};
use crate::runtime::control::Deploy;
use crate::versions::How;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Between two looks.
const PACE: Duration = Duration::from_millis(250);
/// A file that nobody has changed for so long is whole, as far as one can know from outside.
const QUIET: Duration = Duration::from_secs(1);

/// Before a file that could not be deployed just now is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What tells a file from what it was: who replaces it in place changes the time and the size, who renames another in changes the
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    number: u64,
    size: u64,
    changed: (i64, i64),
}

/// A file and since when it is as it is, on the monotonic clock.
#[derive(Default)]
struct Watched {
    look: Option<Look>,
    since: Duration,
    /// Looked into already.
    done: bool,
}

impl Rollout {
    pub(super) fn watch(&self) {
        let mut files: BTreeMap<&str, Watched> = BTreeMap::new();
        while !self.shared.ending.is_stopping() {
            std::thread::park_timeout(PACE);
            let now = self.shared.clock.monotonic();
            for processor in self.shared.application.processors.iter().filter(|processor| processor.watch) {
                let watched = files.entry(&processor.name).or_default();
                if watched.is_ready(look(&processor.plugin), now) {
                    watched.done = self.deploy_file(processor);
                    // what could not be done just now is not tried all the time
                    watched.since = now + AGAIN;
                }
            }
        }
    }

    /// Deploys what the file holds where this host has not seen it yet. False where it is to be tried again.
    fn deploy_file(&self, processor: &Processor) -> bool {
        // it may be gone again, which is the next look's business
        let Ok(component) = fs::read(&processor.plugin) else { return false };
        let (name, state_dir) = (processor.name.clone(), &self.shared.application.state_dir);
        let digest = hex::encode(Sha256::digest(&component));
        if seen::last(state_dir, &name).as_deref() == Some(&digest) {
            return true;
        }
        let ask = Deploy { processor: name.clone(), component, by: self.me(), no_rollback: false };
        let result = self.deploy(ask, How::Watch);
        let again = result.as_ref().is_err_and(is_passing);
        if !again && let Err(fault) = seen::remember(state_dir, &name, &digest) {
            tracing::warn!(processor = name, %fault, "remembering a file");
        }
        !again
    }
}

/// What says nothing of the file.
fn is_passing(fault: &Fault) -> bool {
    fault.verdict == crate::model::Verdict::Transient && fault.code != "version-late"
}

impl Watched {
    /// Whether the file has been the same for long enough, and was not looked into yet.
    fn is_ready(&mut self, look: Option<Look>, now: Duration) -> bool {
        if look != self.look {
            *self = Watched { look, since: now, done: false };
        }
        look.is_some() && !self.done && now.saturating_sub(self.since) >= QUIET
    }
}

fn look(path: &Path) -> Option<Look> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Look { number: found.ino(), size: found.size(), changed: (found.mtime(), found.mtime_nsec()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_file_is_ready_once_it_has_been_quiet() {
        let look = |size| Some(Look { number: 1, size, changed: (size as i64, 0) });
        let mut watched = Watched::default();
        assert!(!watched.is_ready(look(1), at(1)));
        assert!(!watched.is_ready(look(2), at(2)), "it grows");
        assert!(!watched.is_ready(None, at(9)), "it is gone");
        assert!(!watched.is_ready(look(3), at(10)));
        assert!(watched.is_ready(look(3), at(11)));
        watched.done = true;
        assert!(!watched.is_ready(look(3), at(20)), "once");
        assert!(!watched.is_ready(look(4), at(21)));
        assert!(watched.is_ready(look(4), at(22)));
    }

    #[test]
    fn a_file_that_is_renamed_in_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let (file, next) = (dir.path().join("a"), dir.path().join("b"));
        assert_eq!(look(&file), None);
        fs::write(&file, "x").unwrap();
        let first = look(&file);
        assert!(first.is_some() && look(dir.path()).is_none());
        fs::write(&next, "y").unwrap();
        fs::rename(&next, &file).unwrap();
        assert_ne!(look(&file), first);
    }
}
