//! Lag on the embedded log, and where offsets hold no records on one that a test makes up.

use super::*;
use crate::local::LocalLog;
use crate::model::log::{Delivery, GroupListener, GroupSpec, Member, Origin, Producer, Source, TopicInfo, TopicSpec};
use crate::model::{HeadersRef, RecordRef};
use std::sync::atomic::{AtomicUsize, Ordering};

fn watched(start: Start) -> Watched {
    Watched { group: "g".into(), places: (0..2).map(|p| (TopicPartition::new("in", p), start)).collect() }
}

#[test]
fn a_group_without_offsets_is_behind_by_what_it_is_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = LocalLog::open(dir.path(), Arc::new(SystemClock::default())).unwrap();
    log.create_topic(&TopicSpec { name: "in".into(), partitions: 2, replication: None, properties: vec![] }).unwrap();
    let mut producer = log.producer("p", Delivery::ExactlyOnce).unwrap();
    let to = producer.topic("in").unwrap();
    producer.begin().unwrap();
    let record = RecordRef { key: None, value: Some(b"v"), headers: HeadersRef::default(), timestamp: 1 };
    for partition in [0, 1, 1] {
        producer.send(to, Some(partition), record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
    }
    producer.commit().unwrap();
    let lags = |start| {
        let mut probes = Probes { left: PROBES, ..Probes::default() };
        let found = watched(start).look(&log, &BTreeSet::new(), &mut probes).unwrap();
        found.into_iter().map(|lag| (lag.committed, lag.end, lag.lag)).collect::<Vec<_>>()
    };
    assert_eq!(lags(Start::Earliest), [(None, Some(1), Some(1)), (None, Some(2), Some(2))]);
    assert_eq!(lags(Start::Latest), [(None, Some(1), Some(0)), (None, Some(2), Some(0))]);
}

/// One partition: records at these offsets, and markers up to `end`.
struct Gappy {
    records: Vec<i64>,
    end: i64,
    readers: AtomicUsize,
}

struct GappySource {
    place: TopicPartition,
    records: Vec<i64>,
    end: i64,
    position: i64,
    at_end: bool,
}

impl Source for GappySource {
    fn partition(&self) -> &TopicPartition {
        &self.place
    }

    fn seek(&mut self, _: i64) -> Result<(), Fault> {
        unimplemented!()
    }

    fn fetch(&mut self, batch: &mut Batch, _: FetchLimit, _: Duration) -> Result<usize, Fault> {
        let record = RecordRef { key: None, value: None, headers: HeadersRef::default(), timestamp: 1 };
        match self.records.iter().find(|&&offset| offset >= self.position) {
            Some(&offset) => {
                batch.push(offset, record);
                self.position = offset + 1;
                Ok(1)
            }
            None => {
                (self.position, self.at_end) = (self.end, true);
                Ok(0)
            }
        }
    }

    fn position(&self) -> i64 {
        self.position
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn on_ready(&mut self, _: Arc<dyn Fn() + Send + Sync>) {}
}

impl Log for Gappy {
    fn reader(&self, place: &TopicPartition, position: i64) -> Result<Box<dyn Source>, Fault> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let (place, records) = (place.clone(), self.records.clone());
        Ok(Box::new(GappySource { place, records, end: self.end, position, at_end: false }))
    }

    fn topic(&self, _: &str) -> Result<Option<TopicInfo>, Fault> {
        unimplemented!()
    }
    fn topics(&self) -> Result<Vec<TopicInfo>, Fault> {
        unimplemented!()
    }
    fn create_topic(&self, _: &TopicSpec) -> Result<(), Fault> {
        unimplemented!()
    }
    fn ends(&self, _: &TopicPartition) -> Result<Ends, Fault> {
        unimplemented!()
    }
    fn delete_records(&self, _: &TopicPartition, _: i64) -> Result<(), Fault> {
        unimplemented!()
    }
    fn producer(&self, _: &str, _: Delivery) -> Result<Box<dyn Producer>, Fault> {
        unimplemented!()
    }
    fn join(&self, _: GroupSpec, _: Arc<dyn GroupListener>) -> Result<Box<dyn Member>, Fault> {
        unimplemented!()
    }
    fn committed(&self, _: &str, _: &[TopicPartition]) -> Result<Vec<Committed>, Fault> {
        unimplemented!()
    }
}

/// The lag of each look at one partition, whose group is at `next`; `ours` as of [`Probes::first`]. And how often it was read.
fn looks(log: &Gappy, probes: &mut Probes, (next, ours): (i64, bool), times: usize) -> (Vec<i64>, usize) {
    let before = log.readers.load(Ordering::SeqCst);
    let lags = (0..times).map(|_| {
        probes.left = PROBES;
        log.end - probes.first(log, &TopicPartition::new("in", 0), (next, log.end), ours)
    });
    (lags.collect(), log.readers.load(Ordering::SeqCst) - before)
}

fn gappy(records: &[i64], end: i64) -> Gappy {
    Gappy { records: records.to_vec(), end, readers: AtomicUsize::new(0) }
}

#[test]
fn markers_behind_the_last_record_are_no_lag_and_looked_at_once() {
    let mut probes = Probes::default();
    let mut log = gappy(&[0, 1, 2], 4);
    assert_eq!(looks(&log, &mut probes, (3, false), 5), (vec![0; 5], 1));
    // a record more, and its marker
    (log.records, log.end) = (vec![0, 1, 2, 4], 6);
    assert_eq!(looks(&log, &mut probes, (3, false), 5), (vec![2; 5], 1), "from the first record on");
    assert_eq!(looks(&log, &mut probes, (5, false), 5), (vec![0; 5], 1));
}

#[test]
fn a_long_stretch_of_aborted_records_is_looked_at_once_it_stands_still() {
    let mut probes = Probes::default();
    let log = gappy(&[0], 100_000);
    assert_eq!(looks(&log, &mut probes, (1, false), 3), (vec![99_999, 0, 0], 1));
}

#[test]
fn a_host_gets_past_markers_of_its_own_partitions_by_itself() {
    let mut probes = Probes::default();
    let log = gappy(&[0, 1, 2], 4);
    assert_eq!(looks(&log, &mut probes, (3, true), 1), (vec![1], 0), "it may be about to");
    assert_eq!(looks(&log, &mut probes, (3, true), 2), (vec![0; 2], 1), "and where it stands still it is looked at");
}

#[test]
fn one_look_reads_few_partitions() {
    let (log, mut probes) = (gappy(&[], 1), Probes { left: PROBES, ..Probes::default() });
    for partition in 0..100 {
        probes.first(&log, &TopicPartition::new("in", partition), (0, 1), false);
    }
    assert_eq!(log.readers.load(Ordering::SeqCst), PROBES);
}

#[test]
fn what_is_old_is_no_answer() {
    let lags = Lags::default();
    let seen = Duration::from_secs(100);
    lags.renew(vec![("p".into(), vec![])], seen);
    assert_eq!(lags.read(seen + STALE).len(), 1);
    assert_eq!(lags.read(seen + STALE + Duration::from_secs(1)).len(), 0);
}

#[test]
fn looks_come_at_their_pace_and_sooner_where_somebody_waits() {
    let lags = Lags::default();
    assert!(lags.begin(Duration::from_secs(1)), "the first at once");
    lags.renew(vec![], Duration::from_secs(1));
    assert!(!lags.begin(Duration::from_secs(5)));
    assert!(lags.begin(Duration::from_secs(6)));
    lags.renew(vec![], Duration::from_secs(6));
    lags.lock().wanted = true;
    assert!(!lags.begin(Duration::from_millis(6090)), "not more often than that");
    assert!(lags.begin(Duration::from_millis(6100)));
}
