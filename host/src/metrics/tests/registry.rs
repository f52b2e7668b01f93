//! What handles count is what can be read: for the summary, and on the page.

use super::lint::{Sample, lint};
use crate::metrics::{
    CommitMetrics, Custom, HostMetrics, MemoryMetrics, ProcessorMetrics, Registry, StoreMetrics, StoreSize, Traffic,
    names,
};
use std::time::Duration;

/// The value of the only series of that name whose labels have these values.
#[track_caller]
fn value(page: &[Sample], name: &str, labels: &[&str]) -> Option<f64> {
    let own = |sample: &&Sample| sample.name == name && sample.labels.iter().map(|(_, value)| value).eq(labels);
    page.iter().find(own).map(|sample| sample.value)
}

#[test]
fn what_handles_count_can_be_read() {
    let registry = Registry::default();
    registry.during(|| {
        let (a, b) = (ProcessorMetrics::new("a"), ProcessorMetrics::new("b"));
        a.committed(Traffic { records_in: 5, records_out: 3, ..Traffic::default() });
        a.committed(Traffic { records_in: 1, ..Traffic::default() });
        b.committed(Traffic { records_in: 10, ..Traffic::default() });
        a.dead_letters("plugin", 2);
        b.dead_letters("plugin", 1);
        b.dead_letters("trap", 1);
        CommitMetrics::new(0).phase("flush", Duration::from_millis(1500));
    });
    assert_eq!((registry.total(names::TASK_RECORDS_IN), registry.total(names::TASK_RECORDS_OUT)), (16, 3));
    assert_eq!(registry.by_label(names::TASK_RECORDS_IN, names::PROCESSOR)["a"], 6);
    assert_eq!(registry.by_label(names::DELIVERY_DEAD_LETTERS, names::CODE)["plugin"], 3);
    let letters = registry.by_labels(names::DELIVERY_DEAD_LETTERS, (names::PROCESSOR, names::CODE));
    assert_eq!(letters.into_values().collect::<Vec<_>>(), [2, 1, 1], "a plugin, b plugin, b trap");
    assert_eq!(registry.distribution(names::COMMIT_SECONDS), (1, 1.5));
    let page = lint(&registry.render());
    assert_eq!(value(&page, "pelton_task_records_in_total", &["a"]), Some(6.0));
    assert_eq!(value(&page, "pelton_delivery_dead_letters_total", &["b", "trap"]), Some(1.0));
    assert_eq!(value(&page, "pelton_commit_seconds_bucket", &["flush", "1"]), Some(0.0));
    assert_eq!(value(&page, "pelton_commit_seconds_bucket", &["flush", "2.5"]), Some(1.0));
    assert_eq!(value(&page, "pelton_commit_seconds_sum", &["flush"]), Some(1.5));
    assert_eq!(value(&page, "pelton_commit_transactions_total", &[]), Some(0.0), "there before the first");
}

#[test]
fn every_metric_is_on_a_page_that_a_linter_takes() {
    let registry = Registry::default();
    let handles = registry.during(everything);
    registry.read_from(names::LOG_LINES_LOST, || 3.0);
    let page = lint(&registry.render());
    for metric in names::ALL.iter().filter(|metric| cfg!(target_os = "linux") || metric.name.starts_with("pelton_")) {
        let shown = page.iter().find(|sample| {
            let rest = sample.name.strip_prefix(metric.name);
            rest == Some("") || (!metric.bounds().is_empty() && rest == Some("_count"))
        });
        let shown = shown.unwrap_or_else(|| panic!("{} is not shown", metric.name));
        let labels: Vec<&str> = shown.labels.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(labels, metric.labels, "{}", metric.name);
    }
    assert_eq!(value(&page, "pelton_log_lines_lost_total", &[]), Some(3.0));
    drop(handles);
}

/// Something of every kind.
fn everything() -> impl Sized {
    let (host, commits, store) = (HostMetrics::default(), CommitMetrics::new(0), StoreMetrics::new("p", "s"));
    HostMetrics::name("app", "instance");
    host.up(true);
    host.health(true, true);
    MemoryMetrics::new(1, 1).used(1, 1);
    let processor = ProcessorMetrics::new("p");
    processor.dead_letters("plugin", 1);
    processor.backing_off(0, Some(1));
    processor.plugin.fault("trap");
    processor.plugin.swapped("done");
    processor.plugin.version("d1", "1.0");
    processor.group.lag(0, Some(1));
    let mut custom = Custom::default();
    custom.count("orders", 1);
    custom.observe("price", &[1.0]);
    processor.custom.committed(&custom);
    commits.phase("flush", Duration::ZERO);
    commits.open(1);
    commits.aborted("output-refused");
    (host, commits, store, processor)
}

#[test]
fn no_label_can_end_its_quotes_or_its_line() {
    let registry = Registry::default();
    let nasty = "a\"} 1\nforged_total{x=\"\\\r\u{7}é";
    let processor = registry.during(|| {
        let processor = ProcessorMetrics::new("p");
        processor.plugin.version("d", nasty);
        processor
    });
    let text = registry.render();
    let page = lint(&text);
    assert_eq!(value(&page, "pelton_plugin_version_info", &["p", "d", nasty]), Some(1.0), "{text}");
    assert!(page.iter().all(|sample| sample.name != "forged_total"));
    drop(processor);
}

#[test]
fn only_the_running_version_is_shown_however_many_there_were() {
    let registry = Registry::default();
    registry.during(|| {
        let processor = ProcessorMetrics::new("p");
        for n in 0..1000 {
            processor.plugin.version(&format!("digest{n}"), &"v".repeat(n));
        }
    });
    let page = lint(&registry.render());
    let shown: Vec<&Sample> = page.iter().filter(|sample| sample.name == "pelton_plugin_version_info").collect();
    assert_eq!((shown.len(), &*shown[0].labels[1].1, shown[0].labels[2].1.len()), (1, "digest999", 64));
}

#[test]
fn gauges_of_tasks_go_back_when_the_tasks_go() {
    let registry = Registry::default();
    let shown = || lint(&registry.render());
    registry.during(|| {
        let own = ProcessorMetrics::new("p");
        own.backing_off(3, Some(5000));
        own.backing_off(1, Some(7000));
        own.plugin.memory(3, Some(100));
        own.plugin.memory(1, Some(300));
        own.group.lag(3, Some(9));
        own.halted(3, true);
        own.halted(3, true);
        own.stalls(3, true, false);
        let page = shown();
        assert_eq!(value(&page, "pelton_task_backing_off", &["p"]), Some(2.0));
        assert_eq!(value(&page, "pelton_task_backing_off_since_timestamp_seconds", &["p"]), Some(5.0), "the first");
        assert_eq!(value(&page, "pelton_plugin_memory_bytes", &["p"]), Some(300.0), "the largest");
        assert_eq!(value(&page, "pelton_task_halted", &["p"]), Some(1.0), "once, however often it is said");
        assert_eq!(value(&page, "pelton_state_delayed_tasks", &["p"]), Some(1.0));
        assert_eq!(value(&page, "pelton_group_lag_records", &["p", "3"]), Some(9.0));
        for partition in [1, 3] {
            own.backing_off(partition, None);
            own.plugin.memory(partition, None);
            own.group.lag(partition, None);
            own.halted(partition, false);
            own.stalls(partition, false, false);
        }
        let page = shown();
        for name in ["task_backing_off", "plugin_memory_bytes", "task_halted", "state_delayed_tasks"] {
            assert_eq!(value(&page, &format!("pelton_{name}"), &["p"]), Some(0.0), "{name}");
        }
        assert_eq!(value(&page, "pelton_task_backing_off_since_timestamp_seconds", &["p"]), None);
        assert!(page.iter().all(|sample| sample.name != "pelton_group_lag_records"), "of another host now");
        own.group.lag(3, Some(4));
        assert_eq!(value(&shown(), "pelton_group_lag_records", &["p", "3"]), Some(4.0), "back again");
    });
}

#[test]
fn a_store_is_as_large_as_its_tasks_last_said() {
    let registry = Registry::default();
    registry.during(|| {
        let store = StoreMetrics::new("p", "s");
        let size = |sst_bytes, keys| StoreSize { sst_bytes, keys };
        store.resized(StoreSize::default(), size(100, 10));
        store.resized(StoreSize::default(), size(50, 5));
        store.resized(size(100, 10), size(30, 3));
        assert_eq!(value(&lint(&registry.render()), "pelton_state_sst_bytes", &["p", "s"]), Some(80.0));
        store.resized(size(30, 3), StoreSize::default());
        store.resized(size(50, 5), StoreSize::default());
        assert_eq!(value(&lint(&registry.render()), "pelton_state_keys", &["p", "s"]), Some(0.0));
    });
}
