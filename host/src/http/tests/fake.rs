//! A host of which tests say what it answers.

use crate::config::settings::Admin;
use crate::http::{Asked, Surface, open};
use crate::model::Fault;
use crate::runtime::Snapshot;
use crate::runtime::control::state::{Answer, Entry, Get, Page, Scan, Value};
use crate::runtime::control::{
    Deploy, Deployed, History, Identity, ProcessorStatus, Rollback, Status, TaskStatus, VersionStatus,
};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

/// What it was asked, as text, and what it does.
pub(super) struct Fake {
    identity: Identity,
    pub health: Mutex<Snapshot>,
    /// The next question's answer, where there is a fault to be told.
    pub fault: Mutex<Option<Fault>>,
    pub asked: Mutex<Vec<String>>,
    pub scan: Mutex<Option<Scan>>,
    held: Mutex<bool>,
    let_go: Condvar,
    _last: Last,
}

/// Tells on which thread it ends.
#[derive(Default)]
struct Last(Option<Sender<ThreadId>>);

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell.send(std::thread::current().id()).unwrap();
        }
    }
}

/// A surface over a fake host, in a folder of its own.
pub(super) struct Rig {
    pub fake: Arc<Fake>,
    pub folder: tempfile::TempDir,
    pub address: String,
    pub surface: Option<Surface>,
}

impl Rig {
    pub(super) fn plain() -> Rig {
        Rig::new(&Admin { listen: "127.0.0.1:0".into(), ..Admin::default() })
    }

    pub(super) fn new(admin: &Admin) -> Rig {
        let (fake, folder) = (Arc::new(Fake::default()), tempfile::tempdir().unwrap());
        let surface = open(fake.clone(), admin, folder.path(), Arc::new(|| "a_metric 1\n".to_owned())).unwrap();
        let address = surface.note.address.split_once("://").unwrap().1.to_owned();
        Rig { fake, folder, address, surface: Some(surface) }
    }
}

impl Default for Fake {
    fn default() -> Self {
        let identity = Identity { application: "app".into(), instance: "0123".into(), pid: std::process::id() };
        Fake {
            identity,
            health: Mutex::new(Snapshot { live: true, ready: true, reasons: vec![] }),
            fault: Mutex::default(),
            asked: Mutex::default(),
            scan: Mutex::default(),
            held: Mutex::new(false),
            let_go: Condvar::new(),
            _last: Last::default(),
        }
    }
}

impl Fake {
    /// Tells on which thread it ends.
    pub(super) fn telling(tell: Sender<ThreadId>) -> Fake {
        Fake { _last: Last(Some(tell)), ..Fake::default() }
    }

    /// From now on questions wait.
    pub(super) fn hold(&self, held: bool) {
        *self.held.lock().unwrap() = held;
        self.let_go.notify_all();
    }

    fn hear(&self, what: String) -> Result<(), Fault> {
        self.asked.lock().unwrap().push(what);
        let held = self.held.lock().unwrap();
        drop(self.let_go.wait_while(held, |held| *held).unwrap());
        self.fault.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

impl Asked for Fake {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn health(&self) -> Snapshot {
        self.health.lock().unwrap().clone()
    }

    fn listens_at(&self, address: &str) {
        self.asked.lock().unwrap().push(format!("listens at {address}"));
    }

    fn status(&self) -> Result<Status, Fault> {
        self.hear("status".into())?;
        let version = VersionStatus { sequence: 3, ..VersionStatus::default() };
        let tasks = vec![TaskStatus::default()];
        let processor = ProcessorStatus { name: "p".into(), version, tasks, ..ProcessorStatus::default() };
        Ok(Status { application: "app".into(), processors: vec![processor], ..Status::default() })
    }

    fn get(&self, ask: &Get) -> Result<Answer<Value>, Fault> {
        self.hear(format!("get {ask:?}"))?;
        Ok(match ask.key.as_slice() {
            b"elsewhere" => {
                Answer::Elsewhere { partition: 3, instance: Some("4567".into()), address: Some("http://b:1".into()) }
            }
            b"none" => Answer::Here(Value { partition: 0, value: None }),
            _ => Answer::Here(Value { partition: 0, value: Some(b"\x80".to_vec()) }),
        })
    }

    fn scan(&self, ask: &Scan) -> Result<Answer<Page>, Fault> {
        self.hear("scan".into())?;
        *self.scan.lock().unwrap() = Some(ask.clone());
        let entry = |key: &[u8]| Entry { partition: 1, key: key.to_vec(), value: b"v".to_vec() };
        let next = ask.from.is_none().then(|| (1, b"c\xff".to_vec()));
        Ok(Answer::Here(Page { entries: vec![entry(b"a"), entry(b"\xff")], partitions: vec![1], next }))
    }

    fn history(&self, processor: &str) -> Result<History, Fault> {
        self.hear(format!("history {processor}"))?;
        Ok(History { processor: processor.to_owned(), ..History::default() })
    }

    fn deploy(&self, ask: Deploy) -> Result<Deployed, Fault> {
        let Deploy { processor, component, by, no_rollback } = ask;
        self.hear(format!("deploy {processor} {} {by} {no_rollback}", component.len()))?;
        Ok(Deployed { sequence: 4, ..Deployed::default() })
    }

    fn rollback(&self, ask: &Rollback) -> Result<Deployed, Fault> {
        self.hear(format!("rollback {ask:?}"))?;
        Ok(Deployed::default())
    }

    fn pause(&self, processor: &str, paused: bool, by: &str) -> Result<bool, Fault> {
        self.hear(format!("pause {processor} {paused} {by}"))?;
        Ok(true)
    }
}
