//! The marker page: a small file in the state folder that says which records are with the plugin. A host that dies leaves it behind,
//! and the next one runs those records one by one; a record with which hosts die again and again, alone, is given up.
//!
//! Written before and after each call, and now and then while it lasts, without waiting for the disk: it is to outlive the process,
//! not the machine. A death counts against a record only where it was alone with the plugin, and at the point of the call at which
//! it died before, so that a record that takes long is not blamed for hosts that are killed from outside. Those that are under
//! suspicion take turns within the process ([`Trials`]), so that none is blamed for another's.

mod page;

use crate::model::{Fault, fnv};
use page::{Flight, Page};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So many deaths in a row with a record alone, at one point of its call, end it.
pub(super) const MOST_CRASHES: u32 = 3;
/// So many wherever the call was: something that takes its time, such as memory that runs out, is no matter of a point.
const MOST_DEATHS: u32 = 10;
/// What a call has lasted is written when it is so much longer than was written last: a part of it, and at least so long.
const PROGRESS_PART: u64 = 8;
const PROGRESS_MS: u64 = 10;

/// The right to run a record under suspicion: one at a time in a process.
#[derive(Debug, Default)]
pub struct Trials {
    taken: AtomicBool,
}

/// One task's marker.
#[derive(Debug)]
pub struct Marker {
    file: File,
    page: Page,
    /// The inputs' topics, hashed, in the order that batches index.
    topics: Vec<u64>,
    /// The stretch of which one record may have killed the host.
    suspected: Option<Flight>,
    trials: Arc<Trials>,
    /// Whether this task has the right of [`Trials`].
    on_trial: bool,
    /// The record that is given up: nothing is called before that is committed.
    condemned: Option<(u64, i64)>,
    /// Set by the first write that failed, so that it is said once.
    broken: bool,
}

/// Whether a call may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Free,
    /// The record is under suspicion: its log lines are those of a re-run.
    Trial,
    /// Another record under suspicion is being run: ask again soon.
    Later,
    /// The host has died with this record so often that it is not shown to the plugin again.
    Condemned(u32),
}

impl Marker {
    /// Opens the marker in the folder `dir`, making what is missing, and reads what an earlier life of the host has left. `topics`
    /// are the ids of the inputs' topics in the order that batches index. `Fatal` `state-not-writable`.
    pub fn open<'a>(dir: &Path, topics: impl Iterator<Item = &'a str>, trials: &Arc<Trials>) -> Result<Marker, Fault> {
        let (file, page) = open(dir).map_err(|error| unwritable(dir, &error))?;
        let page = page.after_death();
        Ok(Marker {
            file,
            suspected: page.flight,
            page: Page { flight: None, ..page },
            topics: topics.map(|topic| fnv::bytes(topic.as_bytes())).collect(),
            trials: trials.clone(),
            on_trial: false,
            condemned: None,
            broken: false,
        })
    }

    /// Records that are to be run one by one, by input.
    pub(super) fn suspects(&self) -> Vec<(usize, RangeInclusive<i64>)> {
        let stretches = self.suspected.iter().map(|flight| (flight.topic, flight.first..=flight.last));
        let known = self.page.suspects.iter().filter(|suspect| suspect.deaths > 0);
        let records = known.map(|suspect| (suspect.topic, suspect.offset..=suspect.offset));
        let input = |topic: u64| self.topics.iter().position(|own| *own == topic);
        stretches.chain(records).filter_map(|(topic, range)| Some((input(topic)?, range))).collect()
    }

    /// Says that the records at `offsets` of an input go to the plugin now, unless they may not.
    pub(super) fn enter(&mut self, input: u32, offsets: &[i64]) -> Admission {
        let (Some(&topic), [first, ..], [.., last]) = (self.topics.get(input as usize), offsets, offsets) else {
            return Admission::Free;
        };
        let flight = Flight { topic, first: *first, last: *last, reached_ms: 0 };
        let known = self.page.against(topic, flight.first).filter(|_| flight.is_alone());
        if let Some(known) = known.filter(|known| known.crashes >= MOST_CRASHES || known.deaths >= MOST_DEATHS) {
            return Admission::Condemned(known.deaths);
        }
        let trial = flight.is_alone() && (known.is_some() || self.is_suspected(&flight));
        if trial && !self.take_turn() {
            return Admission::Later;
        }
        self.page.flight = Some(flight);
        self.write();
        if trial { Admission::Trial } else { Admission::Free }
    }

    /// The call goes on, after so long.
    pub(super) fn reached(&mut self, elapsed: Duration) {
        let now = elapsed.as_millis() as u64;
        let Some(flight) = self.page.flight.as_mut().filter(|flight| flight.is_alone()) else { return };
        if now >= flight.reached_ms + (flight.reached_ms / PROGRESS_PART).max(PROGRESS_MS) {
            flight.reached_ms = now;
            self.write();
        }
    }

    /// The call came back, in whatever way: the host has survived its records.
    pub(super) fn survived(&mut self) {
        if let Some(flight) = self.page.flight.filter(Flight::is_alone) {
            self.page.clear(flight.topic, flight.first);
        }
        self.leave();
    }

    /// Nothing is with the plugin any more; a call that was given up says nothing of its records.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.on_trial) {
            self.trials.taken.store(false, Ordering::Release);
        }
        if self.page.flight.take().is_some() {
            self.write();
        }
    }

    /// The record at `offset` is given up. Until that is committed nothing may be called: another death would make it forgotten,
    /// and so on for ever.
    pub(super) fn condemn(&mut self, input: u32, offset: i64) {
        self.condemned = self.topics.get(input as usize).map(|&topic| (topic, offset));
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.condemned.is_some()
    }

    /// What was given up is committed.
    pub(super) fn settle(&mut self) {
        if let Some((topic, offset)) = self.condemned.take() {
            self.page.clear(topic, offset);
            self.write();
        }
    }

    /// What was given up was taken back: it is met again.
    pub(super) fn rewind(&mut self) {
        self.condemned = None;
        self.leave();
    }

    fn is_suspected(&self, flight: &Flight) -> bool {
        self.suspected.is_some_and(|s| s.topic == flight.topic && (s.first..=s.last).contains(&flight.first))
    }

    fn take_turn(&mut self) -> bool {
        self.on_trial = self.on_trial || !self.trials.taken.swap(true, Ordering::Acquire);
        self.on_trial
    }

    /// A page that cannot be written costs its use after a crash, and no record.
    fn write(&mut self) {
        if let Err(error) = self.file.write_all_at(&self.page.encode(), 0)
            && !std::mem::replace(&mut self.broken, true)
        {
            tracing::warn!(%error, "writing a marker page; a record that kills the host would not be known afterwards");
        }
    }
}

impl Drop for Marker {
    /// A thread that panics takes the host with it: what was with the plugin then stays marked.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.leave();
        }
    }
}

fn open(dir: &Path) -> io::Result<(File, Page)> {
    std::fs::create_dir_all(dir)?;
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = options.open(dir.join("marker"))?;
    let mut bytes = Vec::new();
    (&mut file).take(1 << 10).read_to_end(&mut bytes)?;
    Ok((file, Page::decode(&bytes)))
}

fn unwritable(dir: &Path, error: &io::Error) -> Fault {
    Fault::fatal("state-not-writable", format!("state folder {} cannot be used: {error}", dir.display()))
        .hint("make it a folder that this user can write, or name another with state_dir")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// One life of the host after another, in one folder.
    struct Lives {
        dir: TempDir,
        trials: Arc<Trials>,
    }

    impl Lives {
        fn new() -> Lives {
            Lives { dir: tempfile::tempdir().unwrap(), trials: Arc::default() }
        }

        fn start(&self) -> Marker {
            Marker::open(self.dir.path(), ["in", "side"].into_iter(), &self.trials).unwrap()
        }

        /// Dies: what is in the file stays as it is, and the process's rights are gone.
        fn die(&mut self, marker: Marker) {
            let page = std::fs::read(self.dir.path().join("marker")).unwrap();
            drop(marker);
            std::fs::write(self.dir.path().join("marker"), page).unwrap();
            self.trials = Arc::default();
        }
    }

    #[test]
    fn a_stretch_is_tried_one_by_one_and_three_deaths_alone_condemn() {
        let mut lives = Lives::new();
        let mut marker = lives.start();
        assert!(marker.suspects().is_empty());
        assert_eq!(marker.enter(0, &[5, 6, 8]), Admission::Free);
        lives.die(marker);
        let mut marker = lives.start();
        assert_eq!(marker.suspects(), [(0, 5..=8)]);
        assert_eq!(marker.enter(0, &[5]), Admission::Trial);
        marker.survived();
        for death in 0..3 {
            assert_eq!(marker.enter(0, &[6]), Admission::Trial, "death {death}");
            lives.die(marker);
            marker = lives.start();
            assert_eq!(marker.suspects(), [(0, 6..=6)]);
        }
        assert_eq!(marker.enter(0, &[6]), Admission::Condemned(3));
        assert_eq!(marker.enter(1, &[6]), Admission::Free, "of another input");
    }

    #[test]
    fn a_long_call_is_not_blamed_for_hosts_that_are_killed_from_outside() {
        let mut lives = Lives::new();
        let mut marker = lives.start();
        for death in 0..9 {
            assert!(!matches!(marker.enter(0, &[6]), Admission::Condemned(_)), "before death {death}");
            // each time it gets further than ever before
            marker.reached(Duration::from_millis(100 << death));
            lives.die(marker);
            marker = lives.start();
        }
        assert_eq!(marker.enter(0, &[6]), Admission::Trial, "nine deaths, each at a point of its own");
        lives.die(marker);
        assert_eq!(lives.start().enter(0, &[6]), Admission::Condemned(10), "but there is an end to it");
    }

    #[test]
    fn success_clears_and_an_interruption_does_not() {
        let mut lives = Lives::new();
        let mut marker = lives.start();
        marker.enter(1, &[7]);
        lives.die(marker);
        let mut marker = lives.start();
        assert_eq!(marker.enter(1, &[7]), Admission::Trial);
        marker.rewind();
        drop(marker);
        let mut marker = lives.start();
        assert_eq!((marker.suspects(), marker.enter(1, &[7])), (vec![(1, 7..=7)], Admission::Trial));
        marker.survived();
        lives.die(marker);
        assert!(lives.start().suspects().is_empty());
    }

    #[test]
    fn a_death_between_calls_blames_nobody() {
        let mut lives = Lives::new();
        for _ in 0..5 {
            let mut marker = lives.start();
            assert_eq!(marker.enter(0, &[1]), Admission::Free);
            marker.survived();
            lives.die(marker);
        }
    }

    #[test]
    fn the_suspected_take_turns_and_others_do_not_wait() {
        let mut lives = Lives::new();
        let other = tempfile::tempdir().unwrap();
        let start = |trials: &Arc<Trials>| Marker::open(other.path(), ["in"].into_iter(), trials).unwrap();
        let (mut marker, mut second) = (lives.start(), start(&lives.trials));
        marker.enter(0, &[5]);
        second.enter(0, &[9]);
        let page = std::fs::read(other.path().join("marker")).unwrap();
        drop(second);
        std::fs::write(other.path().join("marker"), page).unwrap();
        lives.die(marker);
        let (mut marker, mut second) = (lives.start(), start(&lives.trials));
        assert_eq!(marker.enter(0, &[5]), Admission::Trial);
        assert_eq!(second.enter(0, &[9]), Admission::Later);
        assert_eq!(second.enter(0, &[8]), Admission::Free);
        second.survived();
        marker.survived();
        assert_eq!(second.enter(0, &[9]), Admission::Trial);
        drop(second);
        assert_eq!(marker.enter(0, &[5]), Admission::Free, "a task that is gone holds nobody up");
    }

    #[test]
    fn the_condemned_is_remembered_until_it_is_committed() {
        let mut lives = Lives::new();
        let mut marker = lives.start();
        for _ in 0..3 {
            marker.enter(0, &[5]);
            lives.die(marker);
            marker = lives.start();
        }
        marker.condemn(0, 5);
        assert!(marker.is_waiting());
        marker.rewind();
        assert!(!marker.is_waiting());
        lives.die(marker);
        let mut marker = lives.start();
        assert_eq!(marker.enter(0, &[5]), Admission::Condemned(3));
        marker.condemn(0, 5);
        marker.settle();
        lives.die(marker);
        assert!(lives.start().suspects().is_empty());
    }
}
