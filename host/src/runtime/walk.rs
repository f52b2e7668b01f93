//! Reading a stretch of one partition outside any group, in bounded time.

use crate::model::log::{Ends, FetchLimit, Log};
use crate::model::{Batch, Clock, Fault, SystemClock, TopicPartition};
use std::time::Duration;

const LIMIT: FetchLimit = FetchLimit { records: 5_000, bytes: 8 << 20 };
/// How long one fetch waits for its first record.
const WAIT: Duration = Duration::from_millis(500);
/// A partition that yields nothing for so long, short of its end, will not do so by itself.
const SILENCE: Duration = Duration::from_secs(30);
/// How long the markers of a commit are waited for, and how often they are looked for.
const SETTLE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// What to read of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub partition: TopicPartition,
    pub from: i64,
    /// Records from this offset on are not read.
    pub to: i64,
    /// Waits for transactions that are still open before `to`; otherwise reading ends at the first of them.
    pub settled: bool,
}

/// Hands the committed records of a stretch to `each`, with how many offsets lie behind since the last call, until it says `false`.
/// `Transient` (`read-silent`) where nothing comes for 30 s.
pub fn walk<E: From<Fault>>(
    log: &dyn Log,
    stretch: &Stretch,
    each: &mut dyn FnMut(&Batch, u64) -> Result<bool, E>,
) -> Result<(), E> {
    if stretch.from >= stretch.to {
        return Ok(());
    }
    let clock = SystemClock::default();
    // what retention has deleted since the stretch was measured is gone, and no error
    let from = stretch.from.max(log.ends(&stretch.partition)?.start);
    let mut source = log.reader(&stretch.partition, from)?;
    let (mut batch, mut heard) = (Batch::default(), clock.monotonic());
    while source.position() < stretch.to {
        let before = source.position();
        batch.clear();
        source.fetch(&mut batch, LIMIT, WAIT)?;
        cut(&mut batch, stretch.to);
        let passed = source.position().min(stretch.to) - before;
        if passed > 0 {
            heard = clock.monotonic();
            if !each(&batch, passed.unsigned_abs())? {
                return Ok(());
            }
        } else if source.at_end() && (!stretch.settled || log.ends(&stretch.partition)?.stable >= stretch.to) {
            // the end by a reader's count: behind it lie markers, or what compaction has emptied
            return Ok(());
        } else if clock.monotonic() - heard > SILENCE {
            return Err(silent(stretch, source.position()).into());
        }
    }
    Ok(())
}

/// The ends of a partition, once readers of committed records see all that is there now. A commit is acknowledged before its markers
/// are in every partition (KIP-98, 4.3), so what a job has just ended with may need a moment. A transaction that stays open for two
/// seconds (of a host that was killed, until the coordinator aborts it) is not waited for, but told.
pub fn settled_ends(log: &dyn Log, partition: &TopicPartition) -> Result<Ends, Fault> {
    let clock = SystemClock::default();
    let mut ends = log.ends(partition)?;
    let goal = ends.end;
    while ends.stable < goal && clock.monotonic() < SETTLE {
        std::thread::sleep(LOOK);
        ends = log.ends(partition)?;
    }
    if ends.stable < goal {
        let from = ends.stable;
        tracing::warn!(%partition, from, "a transaction is open here: what lies behind it is not read until it has ended");
    }
    Ok(ends)
}

/// Drops the records from offset `to` on.
fn cut(batch: &mut Batch, to: i64) {
    let within = batch.offsets.partition_point(|&offset| offset < to);
    if within < batch.len() {
        *batch = batch.slice(0..within);
    }
}

fn silent(stretch: &Stretch, position: i64) -> Fault {
    let Stretch { partition, to, settled, .. } = stretch;
    let message = format!(
        "reading {partition}: nothing came for {} s at offset {position}, and it goes on to {to}",
        SILENCE.as_secs()
    );
    let hint = match settled {
        true => "a transaction may be open there; is the broker that leads this partition up?",
        false => "is the broker that leads this partition up?",
    };
    Fault::transient("read-silent", message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalLog;
    use crate::model::log::{Delivery, Origin, TopicSpec};
    use crate::model::{HeadersRef, RecordRef};
    use std::sync::Arc;

    #[test]
    fn a_stretch_is_read_whole_and_no_further() {
        let dir = tempfile::tempdir().unwrap();
        let log = LocalLog::open(dir.path(), Arc::new(SystemClock::default())).unwrap();
        log.create_topic(&TopicSpec { name: "t".into(), partitions: 1, replication: None, properties: vec![] })
            .unwrap();
        let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
        let to = producer.topic("t").unwrap();
        producer.begin().unwrap();
        let record = RecordRef { key: None, value: Some(b"v"), headers: HeadersRef::default(), timestamp: 1 };
        for offset in 0..12_000 {
            producer.send(to, Some(0), record, Origin { slot: 0, input: 0, offset }).unwrap();
        }
        producer.commit().unwrap();
        let stretch = Stretch { partition: TopicPartition::new("t", 0), from: 3, to: 11_000, settled: false };
        let (mut seen, mut behind) = (vec![], 0);
        walk::<Fault>(&log, &stretch, &mut |batch, passed| {
            seen.extend_from_slice(&batch.offsets);
            behind += passed;
            Ok(true)
        })
        .unwrap();
        assert_eq!((seen.first(), seen.last(), seen.len()), (Some(&3), Some(&10_999), 10_997));
        assert_eq!(behind, 10_997);
        let mut calls = 0;
        walk::<Fault>(&log, &stretch, &mut |_, _| {
            calls += 1;
            Ok(false)
        })
        .unwrap();
        assert_eq!(calls, 1);
    }
}
