//! Hosts on threads of the test, and what goes into their topics.

use crate::config::{Environment, parse};
use crate::local::LocalLog;
use crate::model::log::{Delivery, Log, Origin, TopicSpec};
use crate::model::{Clock, Fault, HeadersRef, RecordRef, SystemClock};
use crate::plugin::tests::puppet::{WIT, component};
use crate::runtime::control::{Control, Status, TaskStatus};
use crate::runtime::{End, RunOptions, run};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// As long as anything may take here.
const LIMIT: Duration = Duration::from_secs(60);

/// An application file with its plugin, on an embedded log.
pub(super) struct App {
    pub(super) log: LocalLog,
    dir: TempDir,
    file: String,
}

/// A host that runs.
pub(super) struct Host {
    pub(super) control: Control,
    thread: Option<JoinHandle<Result<End, Fault>>>,
}

/// A processor `NAME` of the actor, from `in` to `out`.
pub(super) fn processor(name: &str, lines: &str) -> String {
    format!(
        "[[processor]]\nname = \"{name}\"\nplugin = \"actor.wasm\"\ninputs.input = \"in\"\noutputs.output = \"out\"\n{lines}\n"
    )
}

impl App {
    /// `in` has so many partitions.
    pub(super) fn new(partitions: i32, application: &str, processors: &str) -> App {
        let dir = tempfile::tempdir().unwrap();
        let actor = component(include_str!("../../../task/tests/actor.wat"), WIT, "aggregate-plugin");
        std::fs::write(dir.path().join("actor.wasm"), actor).unwrap();
        let log = LocalLog::open(&dir.path().join("log"), Arc::new(SystemClock::default())).unwrap();
        for (name, partitions) in [("in", partitions), ("out", 1)] {
            let spec = TopicSpec { name: name.into(), partitions, replication: None, properties: vec![] };
            log.create_topic(&spec).unwrap();
        }
        let file = format!(
            "[application]\nid = \"app\"\nworkers = 2\n{application}\n[log]\nkind = \"local\"\ndir = \"log\"\n{processors}"
        );
        App { log, dir, file }
    }

    /// One processor `proc`.
    pub(super) fn counting(partitions: i32) -> App {
        App::new(partitions, "commit_interval = \"20ms\"", &processor("proc", ""))
    }

    /// Starts a host with a state folder of its own, and waits until it can be asked.
    pub(super) fn host(&self, number: u32) -> Host {
        let host = self.start(number);
        until("the host can be asked", || host.control.status().ok());
        host
    }

    /// Starts a host. Before it has reached its log, nothing is known but who it is and how it is.
    fn start(&self, number: u32) -> Host {
        let mut application = parse(&self.file, &self.dir.path().join("app.toml"), &Environment::new()).unwrap();
        application.state_dir = self.state_dir(number);
        let (tell, told): (_, Receiver<Control>) = channel();
        let (go_on, wait) = channel::<()>();
        let open_admin = move |control: Control| {
            tell.send(control).unwrap();
            let _ = wait.recv();
            Ok(Box::new(()) as Box<dyn Send>)
        };
        let thread = std::thread::spawn(move || {
            run(application, RunOptions { open_admin: Some(Box::new(open_admin)), ..RunOptions::default() })
        });
        let control = told.recv_timeout(LIMIT).unwrap();
        assert_eq!((control.identity().application.as_str(), control.health().live), ("app", true));
        assert_eq!(control.status().unwrap_err().code, "starting");
        drop(go_on);
        Host { control, thread: Some(thread) }
    }

    fn state_dir(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("state-{number}"))
    }

    /// Appends records of key and value to `in`, where the partitioner puts them.
    pub(super) fn feed(&self, records: &[(&[u8], &str)]) {
        let mut producer = self.log.producer("feed", Delivery::ExactlyOnce).unwrap();
        let to = producer.topic("in").unwrap();
        producer.begin().unwrap();
        for (key, value) in records {
            let (key, value, headers) = (Some(*key), Some(value.as_bytes()), HeadersRef::default());
            let record = RecordRef { key, value, headers, timestamp: 5 };
            producer.send(to, None, record, Origin { slot: 0, input: 0, offset: 0 }).unwrap();
        }
        producer.commit().unwrap();
    }
}

impl Host {
    pub(super) fn status(&self) -> Status {
        self.control.status().unwrap()
    }

    /// The tasks of the first processor.
    pub(super) fn tasks(&self) -> Vec<TaskStatus> {
        self.status().processors.remove(0).tasks
    }

    /// Waits until the host is ready and its groups have nothing to do.
    pub(super) fn idle(&self) {
        let idle = |status: &Status| status.ready && status.processors.iter().all(|p| p.lag == Some(0));
        until("everything is worked off", || Some(self.status()).filter(idle));
    }

    /// Ends it as a signal does.
    pub(super) fn stop(mut self) -> Result<End, Fault> {
        self.end();
        self.thread.take().unwrap().join().unwrap()
    }

    fn end(&self) {
        if let Ok(running) = self.control.running() {
            running.shared.ending.stop();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Looks until `found` gives something.
#[track_caller]
pub(super) fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let clock = SystemClock::default();
    while clock.monotonic() < LIMIT {
        if let Some(found) = found() {
            return found;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("not within {LIMIT:?}: {what}");
}
