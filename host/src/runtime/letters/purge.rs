//! The purge: letters deleted from the front of each partition, as far as nothing lies there that is to stay.

use super::marks::Marks;
use super::replay::{Event, Watch};
use super::sender::Sender;
use super::{Letter, Letters};
use crate::model::{Batch, Fault, Place};
use crate::runtime::walk::{Stretch, walk};

/// What is to be deleted.
#[derive(Clone, Copy, Debug)]
pub struct PurgeOptions {
    /// Letters given up before this moment, in wall-clock milliseconds; `None`: all.
    pub before: Option<i64>,
    /// Says what would be done, and does nothing.
    pub dry_run: bool,
}

/// What came of a purge, in letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub purged: u64,
    /// Of those, how many were never replayed.
    pub unreplayed: u64,
    /// Letters that were meant too, but lie behind something that stays: a log deletes from its front only.
    pub behind: u64,
}

/// Where a partition is cut.
struct Cut {
    /// The first offset that stays.
    at: i64,
    /// Whether something that stays has been met.
    met: bool,
}

impl Letters<'_> {
    /// Deletes letters for good. Records of others that share the topic stay, and everything behind them. A replay that is at it ends.
    pub fn purge(&self, options: PurgeOptions, watch: Watch<'_>) -> Result<Purged, Fault> {
        let mut sender = if options.dry_run { None } else { Some(Sender::open(self, &[])?) };
        let marks = self.marks(sender.is_some())?;
        let (mut purged, mut starts) = (Purged::default(), Vec::new());
        for stretch in self.stretches()? {
            let cut = self.find_cut(&stretch, (&marks, options.before), &mut purged, watch)?;
            if sender.is_some() && cut > stretch.from {
                self.log.delete_records(&stretch.partition, cut)?;
            }
            starts.push(cut);
        }
        if let Some(sender) = &mut sender {
            sender.clear(&marks.stale(&starts))?;
        }
        Ok(purged)
    }

    /// The first offset of a partition that stays, counting what goes.
    fn find_cut(
        &self,
        stretch: &Stretch,
        (marks, before): (&Marks, Option<i64>),
        purged: &mut Purged,
        watch: Watch<'_>,
    ) -> Result<i64, Fault> {
        let mut cut = Cut { at: stretch.from, met: false };
        walk::<Fault>(self.log, stretch, &mut |batch: &Batch, passed| {
            for (offset, record) in batch.iter() {
                let place = Place { partition: stretch.partition.partition, offset };
                cut.see(place, self.letter(place, record, marks).filter(|letter| goes(letter, before)), purged);
            }
            cut.pass(passed);
            watch(Event::Passed(passed));
            Ok(true)
        })?;
        Ok(cut.at)
    }
}

impl Cut {
    /// So many offsets were looked at: what was not, stays.
    fn pass(&mut self, offsets: u64) {
        if !self.met {
            self.at = self.at.saturating_add_unsigned(offsets);
        }
    }

    /// `letter` is what lies at `place`, where it is meant to go.
    fn see(&mut self, place: Place, letter: Option<Letter<'_>>, purged: &mut Purged) {
        match letter {
            Some(_) if self.met => purged.behind += 1,
            Some(letter) => {
                purged.purged += 1;
                purged.unreplayed += u64::from(letter.mark.is_none());
            }
            None if self.met => {}
            None => *self = Cut { at: place.offset, met: true },
        }
    }
}

fn goes(letter: &Letter<'_>, before: Option<i64>) -> bool {
    before.is_none_or(|before| letter.reason.last_failure.is_some_and(|at| at < before))
}
