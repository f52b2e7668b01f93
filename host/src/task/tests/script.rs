//! A source that a test scripts: the records of one partition with gaps where it says so, and every seek remembered.

use crate::model::log::{FetchLimit, Source};
use crate::model::{Batch, Fault, HeadersRef, RecordRef, TopicPartition};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the test sees of a source that a task owns.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) seeks: Vec<i64>,
    /// So many seeks are refused in passing first.
    pub(super) refusals: usize,
}

/// The records at `offsets`, in a partition that ends at `end`.
pub(super) struct Scripted {
    place: TopicPartition,
    offsets: Vec<i64>,
    end: i64,
    position: i64,
    at_end: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Scripted {
    pub(super) fn new(topic: &str, offsets: &[i64], end: i64) -> (Box<Scripted>, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let place = TopicPartition::new(topic, 3);
        let (offsets, at_end) = (offsets.to_vec(), false);
        (Box::new(Scripted { place, offsets, end, position: -1, at_end, seen: seen.clone() }), seen)
    }
}

impl Source for Scripted {
    fn partition(&self) -> &TopicPartition {
        &self.place
    }

    fn seek(&mut self, offset: i64) -> Result<(), Fault> {
        let mut seen = self.seen.lock().unwrap();
        if seen.refusals > 0 {
            seen.refusals -= 1;
            return Err(Fault::transient("not-ready", "seeking too early"));
        }
        seen.seeks.push(offset);
        (self.position, self.at_end) = (offset, false);
        Ok(())
    }

    fn fetch(&mut self, batch: &mut Batch, limit: FetchLimit, _: Duration) -> Result<usize, Fault> {
        assert!(self.position >= 0, "nothing is read before a seek");
        let there: Vec<i64> =
            self.offsets.iter().copied().filter(|&o| o >= self.position).take(limit.records).collect();
        for &offset in &there {
            let value = offset.to_string();
            let (key, value) = (Some(&b"k"[..]), Some(value.as_bytes()));
            batch.push(offset, RecordRef { key, value, headers: HeadersRef::default(), timestamp: 5 });
            self.position = offset + 1;
        }
        if self.offsets.iter().all(|&offset| offset < self.position) {
            (self.position, self.at_end) = (self.end, true);
        }
        Ok(there.len())
    }

    fn position(&self) -> i64 {
        self.position
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn on_ready(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        wake();
    }
}
