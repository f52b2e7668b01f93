//! Reading partitions outside any group: to their ends as they are now, or on and on.

use super::At;
use crate::cli::args::From;
use crate::cli::progress::Progress;
use crate::model::log::{FetchLimit, Log, Source};
use crate::model::{Batch, Fault, TopicPartition};
use crate::runtime::{Stretch, settled_ends, walk};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: FetchLimit = FetchLimit { records: 5_000, bytes: 8 << 20 };
/// How long one fetch waits for its first record.
const WAIT: Duration = Duration::from_millis(500);

/// What to read.
pub(super) struct Reading<'a> {
    pub log: &'a dyn Log,
    pub topic: &'a str,
    pub partitions: Vec<i32>,
    pub from: From,
    pub max: Option<u64>,
}

/// What following tells.
pub(super) enum Event<'a> {
    Record(At<'a>),
    /// Nothing is there just now.
    Idle,
}

type Each<'a> = &'a mut dyn FnMut(At<'_>) -> anyhow::Result<()>;

impl Reading<'_> {
    /// Partition by partition, to the ends as they are when each begins.
    pub(super) fn to_end(&self, progress: &Progress, each: Each<'_>) -> anyhow::Result<()> {
        let mut left = self.max.unwrap_or(u64::MAX);
        progress.tick();
        for &partition in &self.partitions {
            if left == 0 {
                break;
            }
            self.partition(partition, &mut left, progress, each)?;
        }
        Ok(())
    }

    /// All partitions in turn, until the reader stops us or `max` is reached.
    pub(super) fn follow(&self, each: &mut dyn FnMut(Event<'_>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut sources = self.partitions.iter().map(|&p| self.open(p)).collect::<Result<Vec<_>, _>>()?;
        let reader = std::thread::current();
        for source in &mut sources {
            let reader = reader.clone();
            source.on_ready(Arc::new(move || reader.unpark()));
        }
        let mut left = self.max.unwrap_or(u64::MAX);
        let mut batch = Batch::default();
        loop {
            let mut any = false;
            for source in &mut sources {
                batch.clear();
                any |= source.fetch(&mut batch, LIMIT, Duration::ZERO)? > 0;
                let partition = source.partition().partition;
                for (offset, record) in batch.iter() {
                    if left == 0 {
                        return Ok(());
                    }
                    each(Event::Record(At { partition, offset, record }))?;
                    left -= 1;
                }
            }
            if left == 0 {
                return Ok(());
            }
            if !any {
                each(Event::Idle)?;
                std::thread::park_timeout(WAIT);
            }
        }
    }

    fn partition(&self, partition: i32, left: &mut u64, progress: &Progress, each: Each<'_>) -> anyhow::Result<()> {
        let stretch = self.stretch(partition)?;
        walk(self.log, &stretch, &mut |batch: &Batch, _| {
            for (offset, record) in batch.iter().take(usize::try_from(*left).unwrap_or(usize::MAX)) {
                each(At { partition, offset, record })?;
                *left -= 1;
            }
            progress.add(batch.len() as u64);
            Ok(*left > 0)
        })
    }

    fn open(&self, partition: i32) -> Result<Box<dyn Source>, Fault> {
        let stretch = self.stretch(partition)?;
        self.log.reader(&stretch.partition, stretch.from)
    }

    /// From the asked start to the end for readers of committed records.
    fn stretch(&self, partition: i32) -> Result<Stretch, Fault> {
        let partition = TopicPartition::new(self.topic, partition);
        let ends = settled_ends(self.log, &partition)?;
        let from = match self.from {
            From::Start => ends.start,
            From::End => ends.stable,
            // What is deleted cannot be read, and what is past the end is not there yet.
            From::Offset(offset) => offset.clamp(ends.start, ends.stable),
        };
        Ok(Stretch { partition, from, to: ends.stable, settled: false })
    }
}
