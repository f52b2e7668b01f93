//! An application on an embedded log, with dead letters as a host would write them.

use crate::config::{Application, DeadLetters, Environment, parse};
use crate::delivery::{DeadLetter, Death, Plugin, Source, Verdict};
use crate::local::LocalLog;
use crate::model::log::{Delivery, FetchLimit, Log, Origin, TopicSpec};
use crate::model::{Batch, Failure, Fault, Headers, HeadersRef, Place, RecordRef, SystemClock, TopicPartition};
use crate::runtime::letters::{Event, Letters, ReplayOptions, Replayed};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const APPLICATION: &str = r#"
application.id = "app"
[log]
kind = "local"
dir = "log"
[[processor]]
name = "p"
plugin = "p.wasm"
dead_letter_topic = "dead"
inputs.in = "in"
[[processor]]
name = "q"
plugin = "q.wasm"
dead_letter_topic = "dead"
inputs.in = "in"
"#;

/// An application of two processors that share the dead-letter topic `dead`, with the input `in` of two partitions.
pub(crate) struct Rig {
    pub(crate) log: LocalLog,
    pub(crate) application: Application,
    _dir: tempfile::TempDir,
}

/// Partition, value, timestamp and headers of a record.
pub(super) type Seen = (i32, String, i64, Vec<(String, String)>);

/// A letter to be written; the default is of processor `p`.
#[derive(Clone)]
pub(crate) struct Dead<'a> {
    pub(crate) processor: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) partition: u32,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: &'a [u8],
    pub(crate) code: &'a str,
    pub(crate) failed_at: i64,
    pub(crate) replays: u32,
    pub(crate) cut: u64,
}

impl Default for Dead<'_> {
    fn default() -> Self {
        Dead {
            processor: "p",
            topic: "in",
            partition: 1,
            key: Some(b"k"),
            value: b"v",
            code: "bad",
            failed_at: 1000,
            replays: 0,
            cut: 0,
        }
    }
}

impl Rig {
    pub(crate) fn new() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        let log = LocalLog::open(dir.path(), Arc::new(SystemClock::default())).unwrap();
        let application = parse(APPLICATION, Path::new("app.toml"), &Environment::new()).unwrap();
        let rig = Rig { log, application, _dir: dir };
        rig.create("in", 2, &[("max.message.bytes", "1000")]);
        rig.create("dead", 1, &[]);
        rig
    }

    pub(crate) fn create(&self, name: &str, partitions: i32, properties: &[(&str, &str)]) {
        let properties = properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        self.log.create_topic(&TopicSpec { name: name.into(), partitions, replication: None, properties }).unwrap();
    }

    /// Writes letters into partition 0 of `dead`.
    pub(crate) fn bury(&self, letters: &[Dead<'_>]) {
        let mut producer = self.log.producer("host", Delivery::ExactlyOnce).unwrap();
        let to = producer.topic("dead").unwrap();
        producer.begin().unwrap();
        for (offset, dead) in letters.iter().enumerate() {
            let letter = dead.letter(offset as i64);
            let headers = letter.headers.iter().next().unwrap();
            let (key, value) = (letter.key.as_deref(), letter.value.as_deref());
            let record = RecordRef { key, value, headers, timestamp: letter.timestamp };
            producer.send(to, Some(0), record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
        }
        producer.commit().unwrap();
    }

    pub(crate) fn letters(&self) -> Letters<'_> {
        Letters::open(&self.log, &self.application, "p").unwrap()
    }

    /// Replays with the usual limit; what was done, and what stays for which code.
    pub(super) fn replay(&self, options: ReplayOptions) -> (Result<Replayed, Fault>, Vec<(Place, String)>) {
        let mut stays = vec![];
        let done = self.letters().replay(&options, &mut |event| {
            if let Event::Refused { place, failure } = event {
                stays.push((place, failure.code.clone()));
            }
        });
        (done, stays)
    }

    pub(super) fn read(&self, topic: &str) -> Vec<Seen> {
        let mut all = vec![];
        for partition in 0..self.log.topic(topic).unwrap().unwrap().partitions {
            let place = TopicPartition::new(topic, partition);
            let ends = self.log.ends(&place).unwrap();
            let mut batch = Batch::default();
            let limit = FetchLimit { records: usize::MAX, bytes: usize::MAX };
            self.log.reader(&place, ends.start).unwrap().fetch(&mut batch, limit, Duration::ZERO).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.extend(batch.iter().map(|(_, record)| {
                let headers = record.headers.iter().map(|(n, v)| (text(n), text(v.unwrap_or(b"null")))).collect();
                (partition, text(record.value.unwrap_or(b"null")), record.timestamp, headers)
            }));
        }
        all
    }

    pub(super) fn values(&self, topic: &str) -> Vec<String> {
        self.read(topic).into_iter().map(|(_, value, ..)| value).collect()
    }
}

impl Dead<'_> {
    fn letter(&self, offset: i64) -> DeadLetter {
        let mut headers = Headers::default();
        headers.start();
        headers.add(b"own", Some(b"1"));
        if self.replays > 0 {
            headers.add(b"pelton-replays", Some(self.replays.to_string().as_bytes()));
        }
        let plugin = Plugin { name: "plug", version: "1.0", digest: "abc" };
        let Dead { topic, partition, processor, .. } = *self;
        let source = Source { topic, partition, offset, processor, plugin };
        let mut failure = Failure::new(self.code, "it went wrong");
        failure.details = vec![("stack".into(), "inner\nouter".into()), ("row".into(), "7".into())];
        let (first_ms, last_ms) = (self.failed_at - 10, self.failed_at);
        let death = Death { verdict: Verdict::Broke, failure: &failure, attempts: 2, first_ms, last_ms };
        let headers: HeadersRef<'_> = headers.iter().next().unwrap();
        let record = RecordRef { key: self.key, value: Some(self.value), headers, timestamp: 77 };
        let mut letter = DeadLetter::new(&source, record, &death, &DeadLetters::default());
        if self.cut > 0 {
            letter.truncate(self.cut);
        }
        letter.timestamp = 99;
        letter
    }
}
