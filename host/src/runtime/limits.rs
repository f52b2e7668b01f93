//! Questions to the cluster beside the stream. What output topics refuse may change while the host runs: asked again now and then, so
//! that a limit that was raised stops making dead letters. And where somebody doubts that the cluster is there: asked until it answers.

use super::thread;
use super::{Health, Shared};
use crate::model::Fault;
use crate::model::log::{Log, TopicInfo};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks at the cluster's topics.
const PACE: Duration = Duration::from_secs(10);
/// Before a topic that was not found is called deleted.
const SECOND_LOOK: Duration = Duration::from_secs(2);
/// How soon the thread sees that the host ends.
const LOOK_AROUND: Duration = Duration::from_millis(200);

/// What is known of the topics that this host writes to, with a number that grows whenever it is asked for again.
#[derive(Default)]
pub struct Limits {
    version: AtomicU64,
    topics: Mutex<Vec<TopicInfo>>,
    /// Health's subjects that wait for an answer of the cluster.
    doubts: Mutex<Vec<String>>,
}

impl Limits {
    /// The topics, where they were asked for since `seen`; which is then moved on.
    pub fn newer(&self, seen: &mut u64) -> Option<Vec<TopicInfo>> {
        let version = self.version.load(Ordering::SeqCst);
        (version != *seen).then(|| {
            *seen = version;
            self.topics.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    /// Impairs health under `subject` until the cluster answers again.
    pub fn doubt(&self, health: &Health, subject: String, fault: &Fault) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        health.impair(subject.clone(), fault.to_string());
        if !doubts.contains(&subject) {
            doubts.push(subject);
        }
    }

    fn has_doubts(&self) -> bool {
        !self.doubts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn answered(&self, health: &Health) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.drain(..).for_each(|subject| health.clear(&subject));
    }

    fn renew(&self, topics: Vec<TopicInfo>) {
        *self.topics.lock().unwrap_or_else(PoisonError::into_inner) = topics;
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

/// Asks for `topics` at its pace until the host ends. A topic that is not the one of the start any more ends it: what was written
/// since went into another history, and a changelog's is one that nobody can restore from.
pub(super) fn start(shared: Arc<Shared>, topics: HashMap<Arc<str>, TopicInfo>) -> Result<JoinHandle<()>, Fault> {
    let names: Vec<Arc<str>> = topics.keys().cloned().collect();
    let look = move || {
        while rest(&shared, &names) {
            // a cluster that does not answer just now is asked again at the next turn
            let going_on = || !shared.ending.is_stopping();
            let found: Result<Vec<_>, _> =
                names.iter().take_while(|_| going_on()).map(|name| shared.log.topic(name)).collect();
            if let (Ok(found), true) = (found, going_on()) {
                let found: Vec<TopicInfo> = found.into_iter().flatten().collect();
                if let Some(fault) = recreated(&topics, &found).or_else(|| deleted(&*shared.log, &names, &found)) {
                    return shared.ending.fail(fault);
                }
                shared.limits.renew(found);
            }
        }
    };
    thread::start("limits", "the thread that asks for topic limits", look)
}

fn recreated(known: &HashMap<Arc<str>, TopicInfo>, found: &[TopicInfo]) -> Option<Fault> {
    let other = found.iter().find(|now| known.get(&*now.name).is_some_and(|then| then.id != now.id))?;
    Some(Fault::recreated(&other.name))
}

/// Asked a second time: a broker that has just started may know a topic a moment later than the others.
fn deleted(log: &dyn Log, names: &[Arc<str>], found: &[TopicInfo]) -> Option<Fault> {
    let missing = names.iter().find(|name| found.iter().all(|info| info.name != ***name))?;
    std::thread::sleep(SECOND_LOOK);
    matches!(log.topic(missing), Ok(None)).then(|| Fault::deleted(missing))
}

/// Sees to doubts until the next look is due. False once the host ends.
fn rest(shared: &Shared, names: &[Arc<str>]) -> bool {
    let turns = PACE.as_millis() / LOOK_AROUND.as_millis();
    (0..turns).all(|_| {
        std::thread::park_timeout(LOOK_AROUND);
        if shared.limits.has_doubts() && names.first().is_some_and(|name| shared.log.topic(name).is_ok()) {
            shared.limits.answered(&shared.health);
        }
        !shared.ending.is_stopping()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::log::TopicLimits;

    fn topics(bytes: u64) -> Vec<TopicInfo> {
        let limits = TopicLimits { max_message_bytes: bytes, ..TopicLimits::default() };
        vec![TopicInfo { name: "t".into(), id: "i".into(), partitions: 1, limits }]
    }

    #[test]
    fn each_reader_hears_news_once() {
        let limits = Limits::default();
        let (mut one, mut two) = (0, 0);
        assert_eq!(limits.newer(&mut one), None, "nothing was asked for yet");
        limits.renew(topics(1));
        assert_eq!(limits.newer(&mut one), Some(topics(1)));
        assert_eq!(limits.newer(&mut one), None);
        limits.renew(topics(2));
        limits.renew(topics(3));
        for seen in [&mut one, &mut two] {
            assert_eq!(limits.newer(seen), Some(topics(3)), "the latest, whatever was missed");
            assert_eq!(limits.newer(seen), None);
        }
    }

    #[test]
    fn a_topic_of_another_id_is_told() {
        let known = HashMap::from([("t".into(), topics(1).remove(0))]);
        assert_eq!(recreated(&known, &topics(2)), None);
        let other = TopicInfo { id: "j".into(), ..topics(1).remove(0) };
        assert_eq!(recreated(&known, &[other]).map(|fault| fault.code), Some("topic-recreated"));
    }

    #[test]
    fn a_doubt_lasts_until_the_cluster_answers() {
        let (limits, health) = (Limits::default(), Health::default());
        let away = Fault::transient("broker-away", "no broker answers");
        limits.doubt(&health, "group of p".into(), &away);
        limits.doubt(&health, "group of p".into(), &away);
        assert!(limits.has_doubts() && !health.snapshot().ready);
        limits.answered(&health);
        assert!(!limits.has_doubts() && health.snapshot().ready);
    }
}
