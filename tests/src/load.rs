//! Input whose right answer is known: numbered values over a set of keys, at once or as a steady feed.

use crate::kafka::Feeder;
use crate::record::Rec;
use crate::rng::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `n` records over `keys` keys (`k0`, `k1`, …); values are `from`, `from + 1`, … and so each is unique.
pub fn records(rng: &mut Rng, keys: u64, from: usize, n: usize) -> Vec<Rec> {
    (from..from + n).map(|i| Rec::new(format!("k{}", rng.below(keys)), format!("{i:08}"))).collect()
}

/// One record for each of the keys.
pub fn one_each(keys: u64) -> Vec<Rec> {
    (0..keys).map(|k| Rec::new(format!("k{k}"), "once")).collect()
}

/// Records that are produced to Kafka at a steady rate by a thread until stopped.
pub struct Feed {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Rec>>,
}

impl Feed {
    /// `per_second` records with values and keys of [`records`].
    pub fn start(topic: String, mut rng: Rng, keys: u64, per_second: u64) -> Feed {
        Feed::of(topic, per_second, move |from, n| records(&mut rng, keys, from, n))
    }

    /// `per_second` records that `make` gives: so many, numbered from the first number on.
    pub fn of(topic: String, per_second: u64, mut make: impl FnMut(usize, usize) -> Vec<Rec> + Send + 'static) -> Feed {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (feeder, start, mut sent) = (Feeder::new(), Instant::now(), Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                let due = (start.elapsed().as_millis() as u64 * per_second / 1000) as usize;
                let fresh = make(sent.len(), due.saturating_sub(sent.len()));
                fresh.iter().for_each(|r| feeder.send(&topic, r));
                sent.extend(fresh);
                std::thread::sleep(Duration::from_millis(10));
            }
            feeder.flush();
            sent
        });
        Feed { stop, thread }
    }

    /// Ends the feed; gives all that was produced and acknowledged.
    pub fn stop(self) -> Vec<Rec> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the feed ends well")
    }
}
