//! The reference page `docs/metrics.md`, made from the names.

use super::names::{ALL, Kind, Metric};
use std::fmt::Write;

const HEAD: &str = "# Metrics

What a running host counts, on `/metrics` of its admin surface, as text that Prometheus reads. This page is made from
`host/src/metrics/names.rs`; `PELTON_BLESS=1 cargo test --release --lib metrics_page` makes it anew.

- Units are base units: seconds, bytes, records. A name that ends in `_total` only grows, and starts again at 0 with the process;
  `_timestamp_seconds` is a time in seconds since the epoch, so `time() - NAME` is an age.
- Counters of records, bytes, dead letters and changelogs grow with the commit that makes the work visible: what was aborted and done
  again counts once. Gauges of a task go back when the task ends or goes to another host.
- A metric is shown once there is something to count. Gauges that say \"not there while\" have no value then.
- Labels are bounded. `processor`, `store` and `worker` come from the application file, `partition` from the inputs; `code`, `phase`,
  `reason` and `result` are Pelton's own words: codes that plugins make up are counted as `plugin`. Of `name`, which plugins
  choose, a processor has 50 at most. What is shown of a host does not grow with its records, whatever a plugin does.
- Numbers of RocksDB are looked at every few seconds, and those of `process_*` when the page is read.

What to watch first:

| question | expression |
|---|---|
| does it work | `pelton_host_ready == 0` |
| does it keep up | `sum by (processor) (pelton_group_lag_records)` |
| is a record stuck | `time() - pelton_task_backing_off_since_timestamp_seconds > 60` |
| are records given up | `sum by (processor, code) (rate(pelton_delivery_dead_letters_total[5m]))` |
| does the plugin break | `rate(pelton_plugin_faults_total[5m]) > 0` |
| how slow is the plugin | `histogram_quantile(0.99, rate(pelton_plugin_call_seconds_bucket[5m]))` |
| do commits come late | `time() - pelton_commit_open_since_timestamp_seconds > 10` |
| does the group flap | `increase(pelton_group_rebalances_total[10m]) > 3` |

## What plugins count

`ctx.count(\"name\", 1)` and `ctx.observe(\"name\", 0.3)` of the SDK become `pelton_plugin_custom_total` and `pelton_plugin_custom` with
the processor's label and that name. Names are 1 to 64 of `a-z`, `0-9` and `_`, 50 per processor at most. They are counted with the
commit, so a batch that is thrown away and run again counts once; of a record that is rejected they count as well, as its handling is
final, and of one that is tried again they do not. A value that is negative, not finite or above 1e15 is left out. What is left
out is counted in `pelton_plugin_custom_dropped_total`, and told once in the log.
";

/// Areas of names and what they are about, in the order of the page.
const AREAS: &[(&str, &str)] = &[
    ("pelton_host_", "The host"),
    ("pelton_task_", "Tasks: records and what holds them up"),
    ("pelton_processor_", "Processors"),
    ("pelton_delivery_", "Records that failed"),
    ("pelton_plugin_", "Plugins"),
    ("pelton_commit_", "Commits"),
    ("pelton_changelog_", "Changelogs and restores"),
    ("pelton_state_", "Stores"),
    ("pelton_group_", "Groups"),
    ("pelton_producer_", "Producers"),
    ("pelton_log_", "The log of the host"),
    ("process_", "The process, as its system sees it"),
];

/// The page as it should stand in `docs/metrics.md`.
pub fn metrics_page() -> String {
    let mut page = HEAD.to_owned();
    for (prefix, title) in AREAS {
        let _ = write!(page, "\n## {title}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n");
        ALL.iter().filter(|metric| metric.name.starts_with(prefix)).for_each(|metric| row(&mut page, metric));
    }
    page.push_str("\n## Buckets\n\n| histogram | upper bounds |\n|---|---|\n");
    ALL.iter().for_each(|metric| bounds(&mut page, metric));
    page
}

fn row(page: &mut String, metric: &Metric) {
    let Metric { name, kind, labels, help } = metric;
    let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
    let _ = writeln!(page, "| `{name}` | {} | {labels} | {help} |", kind.word());
}

fn bounds(page: &mut String, metric: &Metric) {
    if let Kind::Histogram(bounds) = metric.kind {
        let bounds = bounds.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{}` | {bounds} |", metric.name);
    }
}
