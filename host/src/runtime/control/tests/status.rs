//! What a host says of itself: each state of a task as it is, and ready only where every partition is worked on.

use super::rig::{App, Host, processor, until};
use crate::delivery::Attempts;
use crate::model::log::{Delivery, GroupListener, GroupProtocol, GroupSpec, Log, OffsetCommit, Source};
use crate::model::{Clock, SystemClock, TaskId, TopicPartition};
use crate::runtime::control::{ProcessorState, Status, TaskState};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A retry that does not come while a test runs.
const PATIENT: &str = "[processor.retry]\nfirst_delay = \"1h\"\nmax_delay = \"1h\"";

#[test]
fn a_host_that_works() {
    let app = App::counting(3);
    let host = app.host(1);
    app.feed(&[(b"a", "x"), (b"b", "x"), (b"c", "x"), (b"d", "x")]);
    host.idle();
    let status = host.status();
    assert_eq!((&*status.application, &*status.log, status.pid), ("app", "local", std::process::id()));
    assert_eq!((status.live, status.ready, status.reasons), (true, true, vec![]));
    assert!(status.started_ms > 0 && status.now_ms >= status.started_ms);
    let processor = &status.processors[0];
    assert_eq!((&*processor.name, processor.state, &*processor.group), ("proc", ProcessorState::Running, "app-proc"));
    assert_eq!((&*processor.version.plugin, processor.version.digest.len()), ("actor-", 64));
    assert_eq!((&processor.inputs["input"], &processor.outputs["output"]), (&"in".to_owned(), &"out".to_owned()));
    assert_eq!(
        (&*processor.dead_letter_topic, processor.stores.clone()),
        ("app-proc-dead-letters", vec!["store".into()])
    );
    assert_eq!((processor.partitions, processor.lag, processor.failures.len()), (3, Some(0), 0));
    assert_eq!(processor.tasks.iter().map(|task| task.partition).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(processor.tasks.iter().all(|task| task.state == TaskState::Running && task.reason.is_none()));
    let ends = processor.tasks.iter().map(|task| (task.inputs[0].committed, task.inputs[0].end, task.inputs[0].lag));
    assert!(ends.clone().all(|(committed, end, lag)| committed == end && lag == Some(0)), "{:?}", processor.tasks);
    assert_eq!(ends.map(|(committed, ..)| committed.unwrap()).sum::<i64>(), 4, "on the embedded log: no markers");
    host.stop().unwrap();
}

#[test]
fn a_record_that_waits_for_its_retry_is_told_at_once_and_keeps_nobody_from_being_ready() {
    let app = App::new(1, "commit_interval = \"20ms\"", &processor("proc", PATIENT));
    let host = app.host(1);
    app.feed(&[(b"a", "x"), (b"a", "R9"), (b"a", "x")]);
    let task = until("the task backs off", || host.tasks().pop().filter(|task| task.state == TaskState::BackingOff));
    assert_eq!(task.reason.as_deref(), Some("offset 1: why (later)"));
    let failed = until("it lags", || Some(host.status()).filter(|status| status.processors[0].lag == Some(2)));
    assert!(failed.ready, "a short retry takes no host out of service: {:?}", failed.reasons);
    let failure = &failed.processors[0].failures[0];
    assert_eq!((&*failure.code, failure.place.as_deref()), ("later", Some("in/0@1")));
    assert!(failure.message.starts_with("tried again: why") && failure.time_ms >= failed.started_ms, "{failure:?}");
}

/// The first failure is remembered beside the offset: a restart does not make an old failure a young one.
#[test]
fn a_record_that_has_failed_for_long_makes_the_host_not_ready() {
    let app = App::new(1, "commit_interval = \"20ms\"", &processor("proc", PATIENT));
    app.feed(&[(b"a", "R9")]);
    failed_before(&app, Duration::from_secs(40), Duration::from_secs(3600));
    let host = app.host(1);
    let status = until("it is not ready for that", || Some(host.status()).filter(is_backing_off));
    assert_eq!(status.processors[0].tasks[0].state, TaskState::BackingOff);
    assert!(!status.ready && status.live);
}

#[test]
fn a_record_that_has_failed_for_a_short_while_does_not() {
    let app = App::new(1, "commit_interval = \"20ms\"", &processor("proc", PATIENT));
    app.feed(&[(b"a", "R9")]);
    failed_before(&app, Duration::ZERO, Duration::from_secs(3600));
    let host = app.host(1);
    until("it backs off", || host.tasks().pop().filter(|task| task.state == TaskState::BackingOff));
    let status = host.status();
    assert!(status.ready, "{:?}", status.reasons);
}

/// Once the record is done the host is ready again.
#[test]
fn a_record_that_is_done_at_last_makes_the_host_ready() {
    let app = App::new(1, "commit_interval = \"20ms\"", &processor("proc", PATIENT));
    app.feed(&[(b"a", "x")]);
    failed_before(&app, Duration::from_secs(40), Duration::from_secs(1));
    let host = app.host(1);
    until("it is not ready", || Some(host.status()).filter(is_backing_off));
    host.idle();
}

fn is_backing_off(status: &Status) -> bool {
    status.reasons.iter().any(|reason| reason.starts_with("task proc/0: backing off: "))
}

/// Commits offset 0 of `in` as a host does whose record there failed first `ago`, and is to be tried again `due` from now.
fn failed_before(app: &App, ago: Duration, due: Duration) {
    let now = SystemClock::default().wall_ms();
    let (first_ms, due_ms) = (now - ago.as_millis() as i64, now + due.as_millis() as i64);
    let attempts = Attempts { offset: 0, count: 3, first_ms, last_ms: now, due_ms };
    let mut member = app.log.join(group(), Arc::new(Deaf)).unwrap();
    member.poll(Duration::ZERO).unwrap();
    let mut producer = app.log.producer("before", Delivery::ExactlyOnce).unwrap();
    producer.begin().unwrap();
    let (partition, topic_id) = (TopicPartition::new("in", 0), "".into());
    let commit = OffsetCommit { partition, topic_id, offset: 0, metadata: attempts.encode() };
    producer.send_offsets(&*member.group(), &[commit]).unwrap();
    producer.commit().unwrap();
    member.leave().unwrap();
}

fn group() -> GroupSpec {
    GroupSpec {
        group: "app-proc".into(),
        topics: vec!["in".into()],
        protocol: GroupProtocol::Classic,
        instance_id: "i".into(),
        session_timeout: Duration::from_secs(10),
    }
}

struct Deaf;

impl GroupListener for Deaf {
    fn assigned(&self, _: Vec<Box<dyn Source>>) {}
    fn revoked(&self, _: &[TopicPartition]) {}
    fn lost(&self, _: &[TopicPartition]) {}
}

#[test]
fn one_processor_is_stopped_and_the_other_goes_on() {
    let processors = processor("proc", "") + &processor("other", "[processor.retry]\ncodes.halt = \"dead-letter\"");
    let app = App::new(1, "commit_interval = \"20ms\"", &processors);
    let host = app.host(1);
    app.feed(&[(b"a", "x"), (b"a", "Stop"), (b"a", "x")]);
    let is_stopped = |status: &Status| status.processors[0].state == ProcessorState::Stopped;
    until("the processor is stopped", || Some(host.status()).filter(is_stopped));
    let is_done = |status: &Status| status.processors[1].lag == Some(0);
    let status = until("the other one goes on", || Some(host.status()).filter(is_done));
    let [stopped, other] = &status.processors[..] else { panic!("two processors") };
    assert_eq!(
        (stopped.lag, stopped.tasks[0].state, other.tasks[0].state),
        (Some(2), TaskState::Halted, TaskState::Running)
    );
    assert!(stopped.reason.as_ref().is_some_and(|reason| reason.contains("stopped at offset 1")), "{stopped:?}");
    assert_eq!((&*stopped.failures[0].code, other.reason.as_deref()), ("plugin-stop", None));
    assert_eq!((&*other.failures[0].code, other.failures[0].place.as_deref()), ("plugin", Some("in/0@1")));
    assert!(status.live && !status.ready);
    assert_eq!(status.reasons.len(), 1, "{:?}", status.reasons);
    assert!(status.reasons[0].starts_with("processor proc is stopped: "), "{:?}", status.reasons);
    assert_eq!(host.stop().unwrap_err().code, "plugin-stop");
}

#[test]
fn a_loop_in_the_plugin_is_told_while_it_lasts() {
    let lines = "[processor.limits]\nrecord_deadline = \"30s\"";
    let app = App::new(1, "commit_interval = \"20ms\"\nshutdown_grace = \"60s\"", &processor("proc", lines));
    let host = app.host(1);
    app.feed(&[(b"a", "Loop")]);
    let calling = until("a long call", || host.tasks().pop().filter(|task| task.call_ms.is_some_and(|ms| ms > 300)));
    assert_eq!((calling.state, calling.age_ms), (TaskState::Running, None), "its worker answers in between");
    let status = host.status();
    assert_eq!((status.live, status.processors[0].lag), (true, Some(1)), "{:?}", status.reasons);
    host.stop().unwrap();
}

#[test]
fn a_worker_that_does_not_answer_holds_nobody_up() {
    let app = App::counting(1);
    let host = app.host(1);
    app.feed(&[(b"a", "x")]);
    host.idle();
    let committed = Some(1);
    until("a second has passed", || host.seen_last(0).filter(|seen| seen.committed[0].1 == committed));
    let release = host.hold_up_workers();
    let clock = SystemClock::default();
    let task = host.tasks().remove(0);
    assert!(clock.monotonic() < Duration::from_secs(5), "{:?}", clock.monotonic());
    assert_eq!((task.state, task.inputs[0].committed), (TaskState::Running, committed), "as it was last");
    assert!(task.age_ms.is_some() && task.reason.as_ref().is_some_and(|r| r.contains("does not answer")), "{task:?}");
    drop(release);
    let task = until("it answers again", || host.tasks().pop().filter(|task| task.age_ms.is_none()));
    assert_eq!((task.state, task.reason), (TaskState::Running, None));
}

#[test]
fn a_task_that_is_opened_says_how_far_its_restore_is() {
    let app = App::counting(2);
    let host = app.host(1);
    host.idle();
    let running = host.control.running().unwrap();
    let id = TaskId { processor: "proc".into(), partition: 1 };
    let progress = crate::changelog::Progress { done: 30, target: 40, records: 20, records_per_second: 10.0 };
    running.shared.restores.report(&id, progress);
    // its worker has it no more, as while it is opened
    host.drop_task(&id);
    let task = host.tasks().remove(1);
    assert_eq!((task.partition, task.state), (1, TaskState::Restoring));
    assert_eq!((&*task.inputs[0].topic, task.inputs[0].committed), ("in", Some(0)), "as the group has it");
    let restore = task.restore.unwrap();
    assert_eq!((restore.done, restore.target, restore.records_per_second), (30, 40, 10.0));
}

impl Host {
    /// What the worker of a partition of the first processor left behind.
    fn seen_last(&self, partition: i32) -> Option<crate::task::Seen> {
        let workers = &self.control.running().unwrap().workers;
        workers.iter().find_map(|worker| worker.last_sight().1.iter().find(|seen| seen.partition == partition).cloned())
    }

    /// Keeps every worker from turning until what comes back is dropped.
    pub(super) fn hold_up_workers(&self) -> impl Drop + use<> {
        struct Release(Vec<std::sync::mpsc::Sender<()>>);
        impl Drop for Release {
            fn drop(&mut self) {
                self.0.clear();
            }
        }
        let hold = |worker: &crate::runtime::worker::Handle| {
            let (release, held) = channel::<()>();
            let (tell, told) = channel();
            drop(worker.ask(move |_| {
                tell.send(()).unwrap();
                held.recv()
            }));
            told.recv().unwrap();
            release
        };
        Release(self.control.running().unwrap().workers.iter().map(hold).collect())
    }

    /// Its worker has a task no more.
    fn drop_task(&self, id: &TaskId) {
        self.control
            .running()
            .unwrap()
            .workers
            .iter()
            .for_each(|worker| drop(worker.drop_tasks(vec![id.clone()]).recv()));
    }
}
