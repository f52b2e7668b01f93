//! What the verbs print, from answers that are made up.

use super::{history, lag, status};
use crate::cli::Out;
use crate::runtime::control::{
    FailureStatus, History, HistoryEntry, LagStatus, PositionStatus, ProcessorState, ProcessorStatus, RestoreStatus,
    Status, TaskState, TaskStatus, VersionStatus,
};

fn print(show: impl Fn(&mut Out<'_>) -> anyhow::Result<()>) -> String {
    let mut text = Vec::new();
    show(&mut Out { to: &mut text, terminal: false }).unwrap();
    String::from_utf8(text).unwrap()
}

fn a_status() -> Status {
    let version =
        VersionStatus { sequence: 3, digest: "5f3a91c2aabbccdd".into(), plugin: "count".into(), version: "1.2".into() };
    let position = |lag| PositionStatus { topic: "t".into(), committed: Some(7), end: Some(9), lag };
    let running =
        TaskStatus { state: TaskState::Running, inputs: vec![position(Some(2))], parked: 4, ..TaskStatus::default() };
    let restoring = TaskStatus {
        partition: 1,
        state: TaskState::Restoring,
        inputs: vec![position(Some(1)), position(None)],
        restore: Some(RestoreStatus { done: 5, target: 10, records_per_second: 2.4 }),
        ..TaskStatus::default()
    };
    let failure =
        FailureStatus { time_ms: 0, code: "trap".into(), message: "it\nbroke".into(), place: Some("t/0@7".into()) };
    let of =
        |partition, lag| LagStatus { topic: "t".into(), partition, committed: Some(7), end: Some(9), lag, parked: 1 };
    let processor = ProcessorStatus {
        name: "p".into(),
        state: ProcessorState::Stopped,
        reason: Some("plugin said stop".into()),
        version,
        partitions: 2,
        lag: Some(3),
        lags: vec![of(0, Some(2)), of(1, None)],
        tasks: vec![running, restoring],
        failures: vec![failure],
        ..ProcessorStatus::default()
    };
    Status {
        application: "app".into(),
        instance: "0123".into(),
        pid: 5,
        release: "0.1.0".into(),
        now_ms: 3_723_000,
        log: "kafka".into(),
        live: true,
        reasons: vec!["task p/1: restoring".into()],
        processors: vec![processor],
        ..Status::default()
    }
}

#[test]
fn status_is_a_table() {
    let expected = "\
application app on kafka: host 0123, process 5, Pelton 0.1.0, up 1h 2m
not ready
  task p/1: restoring

processor  state                      lag  tasks   version  plugin     digest
p          stopped: plugin said stop  3    2 of 2  3        count 1.2  5f3a91c2aabb

task  state      lag  parked  open bytes  why
p/0   running    2    4       0
p/1   restoring  ?    0       0           5 of 10 changelog records, 2/s

last failures             processor  code  record  message
1970-01-01T00:00:00.000Z  p          trap  t/0@7   \"it\\nbroke\"
";
    assert_eq!(print(|out| status::show(&a_status(), false, out)), expected);
}

#[test]
fn status_is_one_line_of_json_that_can_be_read_back() {
    let text = print(|out| status::show(&a_status(), true, out));
    assert_eq!((text.lines().count(), serde_json::from_str::<Status>(&text).unwrap()), (1, a_status()));
}

#[test]
fn lag_has_sums() {
    let expected = "\
processor  topic  partition  committed  end  lag  parked
p          t      0          7          9    2    1
p          t      1          7          9    ?    1
p          all                               3    2
";
    assert_eq!(print(|out| lag::show(&a_status(), false, out)), expected);
    let json: serde_json::Value = serde_json::from_str(&print(|out| lag::show(&a_status(), true, out))).unwrap();
    assert_eq!(
        (&json["processors"][0]["lag"], &json["processors"][0]["partitions"][1]["lag"]),
        (&3.into(), &serde_json::Value::Null)
    );
}

#[test]
fn history_is_newest_first() {
    let entry = HistoryEntry {
        sequence: 2,
        digest: "5f3a91c2aabbccdd".into(),
        plugin: "count".into(),
        version: "1.2".into(),
        by: "me".into(),
        time_ms: 0,
        how: "deploy".into(),
        result: "active".into(),
    };
    let history = History { processor: "p".into(), paused: true, entries: vec![entry] };
    let expected = "\
version  since                     how     by  digest        plugin     result
2        1970-01-01T00:00:00.000Z  deploy  me  5f3a91c2aabb  count 1.2  active
the processor is paused
";
    assert_eq!(print(|out| history::show(&history, false, out)), expected);
}
