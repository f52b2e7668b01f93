//! What metrics show of a task: right after commits, aborts, retries, and gone when the task is.

use super::rig::{Rig, by_key};
use crate::metrics::{Registry, names};
use crate::task::{ProcessorSpec, Step};
use std::time::Duration;

/// A task, and the numbers that it is counted in.
struct Counted {
    registry: Registry,
    rig: Rig,
}

fn counted(records: &[(&str, &str)]) -> Counted {
    with(records, |_| ())
}

fn with(records: &[(&str, &str)], settings: impl FnOnce(&mut ProcessorSpec)) -> Counted {
    let registry = Registry::default();
    let rig = registry.during(|| Rig::set(records, settings));
    Counted { registry, rig }
}

impl Counted {
    /// The value of the only series of that name, of this processor.
    fn shown(&self, name: &str) -> Option<f64> {
        let page = self.registry.render();
        let mut own = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        let (labels, value) = own.next()?.rsplit_once("} ").unwrap();
        assert!(labels.starts_with("processor=\"proc\"") && own.next().is_none(), "{page}");
        Some(value.parse().unwrap())
    }

    /// Labels by code are made when they are counted.
    fn settle(&mut self) {
        let Counted { registry, rig } = self;
        registry.during(|| rig.settle(0));
    }

    /// The task ends; its levels must be back where they were.
    fn close(mut self) {
        drop(self.rig.tasks.remove(0).close());
        for level in [
            "task_overlay_bytes",
            "task_parked_records",
            "task_backing_off",
            "task_halted",
            "plugin_memory_bytes",
            "state_delayed_tasks",
            "state_stopped_tasks",
        ] {
            assert_eq!(self.shown(&format!("pelton_{level}")), Some(0.0), "{level}");
        }
        assert_eq!(self.shown("pelton_task_backing_off_since_timestamp_seconds"), None);
        for size in ["pelton_state_keys", "pelton_state_sst_bytes"] {
            let page = self.registry.render();
            assert!(page.lines().filter(|line| line.starts_with(size)).all(|line| line.ends_with(" 0")), "{page}");
        }
    }
}

#[test]
fn the_overlay_is_what_is_not_committed() {
    let mut task = counted(&[("k", "a"), ("l", "b"), ("k", "c")]);
    task.rig.work();
    let open = task.rig.task().overlay_bytes();
    assert!(open > 0);
    assert_eq!(task.shown("pelton_task_overlay_bytes"), Some(open as f64));
    task.rig.abort();
    task.rig.work();
    assert_eq!(task.shown("pelton_task_overlay_bytes"), Some(open as f64), "once, though it was done twice");
    task.settle();
    task.rig.step();
    assert_eq!(task.shown("pelton_task_overlay_bytes"), Some(0.0));
    assert_eq!(task.shown("pelton_changelog_records_out_total"), Some(2.0), "one of each key");
    assert_eq!(task.shown("pelton_task_records_in_total"), Some(3.0));
    task.close();
}

#[test]
fn an_open_overlay_goes_with_its_task() {
    let mut task = counted(&[("k", "a")]);
    task.rig.work();
    assert!(task.shown("pelton_task_overlay_bytes") > Some(0.0));
    task.close();
}

#[test]
fn calls_are_counted_with_their_records_and_instances_as_they_are_made() {
    let mut task = counted(&[("k", "a"), ("k", "Trap"), ("k", "b")]);
    task.settle();
    assert_eq!(task.registry.distribution(names::PLUGIN_BATCH_RECORDS), (2, 2.0), "a and b, one by one after the trap");
    assert_eq!(task.shown("pelton_plugin_faults_total"), Some(2.0), "all three together, and the guilty one");
    assert_eq!(task.shown("pelton_plugin_instances_total"), Some(3.0));
    assert!(task.shown("pelton_plugin_memory_bytes") >= Some(4.0 * 65536.0));
    task.close();
}

#[test]
fn who_waits_is_shown_with_since_when() {
    let mut task = counted(&[("k", "R3"), ("k", "b")]);
    assert!(matches!(task.rig.work(), Step::Until(_)));
    let began = task.rig.now().as_millis() as f64 / 1e3;
    assert_eq!(task.shown("pelton_task_backing_off"), Some(1.0));
    assert_eq!(task.shown("pelton_task_backing_off_since_timestamp_seconds"), Some(began));
    let Step::Until(due) = task.rig.work() else { panic!("it waits") };
    task.rig.clock.pass(due - task.rig.now());
    task.rig.work();
    assert_eq!(task.shown("pelton_task_backing_off_since_timestamp_seconds"), Some(began), "since the first failure");
    task.rig.wait_out();
    assert_eq!(task.shown("pelton_task_backing_off"), Some(0.0));
    assert_eq!(task.shown("pelton_task_backing_off_since_timestamp_seconds"), None);
    assert_eq!(task.shown("pelton_delivery_retries_total"), Some(2.0));
    task.close();
    let mut task = counted(&[("k", "R9")]);
    task.rig.work();
    task.close();
}

#[test]
fn parked_records_and_a_halt_go_with_the_task() {
    let mut task = with(&[("k", "R9"), ("k", "b"), ("l", "c")], by_key);
    task.settle();
    assert_eq!(task.shown("pelton_task_parked_records"), Some(2.0));
    task.close();
    let mut task = counted(&[("k", "Stop")]);
    task.rig.work();
    task.rig.work();
    assert_eq!(task.shown("pelton_task_halted"), Some(1.0));
    task.close();
}

#[test]
fn stores_are_measured_now_and_then() {
    let mut task = counted(&[("k", "a"), ("l", "b"), ("m", "c")]);
    task.settle();
    let look = |task: &mut Counted| {
        let now = task.rig.now();
        task.rig.task().maintain(now);
    };
    look(&mut task);
    assert_eq!(task.shown("pelton_state_keys"), Some(3.0));
    task.rig.feed("in", &[("n", "d")]);
    task.settle();
    look(&mut task);
    assert_eq!(task.shown("pelton_state_keys"), Some(3.0), "not at each commit");
    task.rig.clock.pass(Duration::from_secs(5));
    look(&mut task);
    assert_eq!(task.shown("pelton_state_keys"), Some(4.0));
    assert_eq!(task.shown("pelton_state_stopped_tasks"), Some(0.0));
    task.close();
}

/// The actor counts what it has done at the end of each call.
#[test]
fn what_the_plugin_counts_is_counted_once_with_its_commit() {
    let mut task = counted(&[("k", "a"), ("k", "Trap"), ("k", "No"), ("k", "b")]);
    let own = |task: &Counted| task.registry.total(names::PLUGIN_CUSTOM);
    task.rig.work();
    assert_eq!(own(&task), 0, "not before the commit");
    task.rig.abort();
    task.settle();
    assert_eq!(own(&task), 3, "all but the one that never came back, each once");
    task.rig.feed("in", &[("k", "c")]);
    task.settle();
    assert_eq!(own(&task), 4);
    let mut task = counted(&[("k", "a"), ("k", "R3"), ("k", "b")]);
    task.rig.wait_out();
    task.settle();
    assert_eq!(own(&task), 3, "each at its last attempt");
}
