//! Watching over workers: one that is silent is told of before it is the end of the host.

use super::*;
use crate::config::{Environment, parse};
use crate::local::AbsentLog;
use crate::runtime::worker::tests::Detached;
use std::path::Path;

/// A host of workers whose commands nobody takes.
fn host(workers: &[Detached]) -> Host {
    let text = "[application]\nid = \"a\"\nstuck_after = \"60s\"\n[log]\nkind = \"local\"\ndir = \"l\"\n\
                [[processor]]\nname = \"p\"\nplugin = \"p.wasm\"\ninputs.in = \"t\"\n";
    let application = parse(text, Path::new("a.toml"), &Environment::new()).unwrap();
    let health: Arc<Health> = Arc::default();
    let identity = Identity { application: "a".into(), instance: "i".into(), pid: 1 };
    let control = Control::new(identity, health.clone(), 0);
    let shared = Shared {
        application,
        log: Arc::new(AbsentLog),
        clock: SystemClock::default(),
        health,
        restores: Restores::new(None),
        limits: limits::Limits::default(),
        lags: Lags::default(),
        hosts: Arc::default(),
        instance: "i".into(),
        ending: Arc::default(),
    };
    let mut host = Host::new(Arc::new(shared), control);
    host.workers = workers.iter().map(|worker| worker.handle.clone()).collect();
    host
}

#[test]
fn a_silent_worker_is_told_of_at_half_time_and_no_more_once_it_turns() {
    let workers = [Detached::new(), Detached::new()];
    let host = host(&workers);
    let at = Duration::from_secs;
    let snapshot = || host.shared.health.snapshot();
    workers.iter().for_each(|worker| worker.handle.stamp(at(100)));
    host.watch(at(129));
    assert!(snapshot().live && snapshot().ready);
    workers[0].handle.stamp(at(130));
    host.watch(at(131));
    assert!(!snapshot().live && !snapshot().ready);
    assert_eq!(snapshot().reasons, ["worker 1 has been silent for 31 s"]);
    workers[1].handle.stamp(at(132));
    host.watch(at(132));
    assert!(snapshot().live && snapshot().ready);
}
