//! Every metric there is: name, kind, labels and help. Names follow `pelton_<area>_<noun>[_<unit>][_total]`; labels are bounded: by the
//! application file (`processor`, `store`) or by this house (`code`, `phase`, `reason`).

/// A metric as it is described to an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; the name ends in `_total`.
    Counter,
    Gauge,
    /// Seconds; the name ends in `_seconds`.
    Histogram,
}

pub const PROCESSOR: &str = "processor";
pub const STORE: &str = "store";
/// A fault's stable code.
pub const CODE: &str = "code";
/// A part of a commit; see [`PHASES`].
pub const PHASE: &str = "phase";
/// Why records were passed over or a transaction was aborted.
pub const REASON: &str = "reason";

/// The parts of a commit, in order.
pub const PHASES: &[&str] = &["changelog", "flush", "offsets", "commit", "store"];

pub const TASK_RECORDS_IN: Metric =
    counter("pelton_task_records_in_total", &[PROCESSOR], "Input records whose effects are committed.");
pub const TASK_BYTES_IN: Metric =
    counter("pelton_task_bytes_in_total", &[PROCESSOR], "Bytes of keys, values and headers of those records.");
pub const TASK_RECORDS_OUT: Metric =
    counter("pelton_task_records_out_total", &[PROCESSOR], "Output records that are committed.");
pub const TASK_BYTES_OUT: Metric =
    counter("pelton_task_bytes_out_total", &[PROCESSOR], "Bytes of keys, values and headers of those records.");
pub const TASK_RECORDS_SKIPPED: Metric = counter(
    "pelton_task_records_skipped_total",
    &[PROCESSOR, REASON],
    "Input records passed over by a documented rule.",
);
pub const TASK_TIMESTAMPS_REWRITTEN: Metric = counter(
    "pelton_task_timestamps_rewritten_total",
    &[PROCESSOR],
    "Output records whose timestamp 0 was written as 1.",
);
pub const TASK_OVERLAY_BYTES: Metric =
    gauge("pelton_task_overlay_bytes", &[PROCESSOR], "Bytes of effects that are not yet committed.");
pub const TASK_PARKED_RECORDS: Metric =
    gauge("pelton_task_parked_records", &[PROCESSOR], "Input records that wait by key for a retry, or behind one.");
pub const TASK_ASSIGNED: Metric = gauge("pelton_task_assigned", &[PROCESSOR], "Tasks that this host owns.");
pub const DELIVERY_DEAD_LETTERS: Metric =
    counter("pelton_delivery_dead_letters_total", &[PROCESSOR, CODE], "Input records that became dead letters.");
pub const DELIVERY_RETRIES: Metric =
    counter("pelton_delivery_retries_total", &[PROCESSOR], "Calls made again for a record that failed.");
pub const PLUGIN_CALLS: Metric =
    counter("pelton_plugin_calls_total", &[PROCESSOR], "Calls of the plugin with a batch.");
pub const PLUGIN_CALL_SECONDS: Metric =
    histogram("pelton_plugin_call_seconds", &[PROCESSOR], "Time of a call of the plugin.");
pub const PLUGIN_FAULTS: Metric = counter(
    "pelton_plugin_faults_total",
    &[PROCESSOR, CODE],
    "Calls that ended in a trap, a broken limit or a missed deadline.",
);
pub const PLUGIN_LOG_LINES_DROPPED: Metric =
    counter("pelton_plugin_log_lines_dropped_total", &[PROCESSOR], "Log lines of the plugin beyond its limit.");
pub const COMMIT_TRANSACTIONS: Metric =
    counter("pelton_commit_transactions_total", &[], "Transactions that were committed.");
pub const COMMIT_ABORTS: Metric =
    counter("pelton_commit_aborts_total", &[REASON], "Transactions that were aborted, by the code of the fault.");
pub const COMMIT_SECONDS: Metric = histogram("pelton_commit_seconds", &[PHASE], "Time of a commit's parts.");
pub const CHANGELOG_RECORDS_OUT: Metric =
    counter("pelton_changelog_records_out_total", &[PROCESSOR, STORE], "Changelog records that are committed.");
pub const CHANGELOG_RECORDS_RESTORED: Metric = counter(
    "pelton_changelog_records_restored_total",
    &[PROCESSOR, STORE],
    "Changelog records that were read back into a store.",
);
pub const GROUP_REBALANCES: Metric =
    counter("pelton_group_rebalances_total", &[PROCESSOR], "Changes of the partitions that this host owns.");
pub const GROUP_PARTITIONS_LOST: Metric =
    counter("pelton_group_partitions_lost_total", &[PROCESSOR], "Partitions lost without a chance to commit.");
pub const PRODUCER_REBUILDS: Metric =
    counter("pelton_producer_rebuilds_total", &[], "Producers built anew because their identity was gone.");

/// All of them, in the order of this file.
pub const ALL: &[Metric] = &[
    TASK_RECORDS_IN,
    TASK_BYTES_IN,
    TASK_RECORDS_OUT,
    TASK_BYTES_OUT,
    TASK_RECORDS_SKIPPED,
    TASK_TIMESTAMPS_REWRITTEN,
    TASK_OVERLAY_BYTES,
    TASK_PARKED_RECORDS,
    TASK_ASSIGNED,
    DELIVERY_DEAD_LETTERS,
    DELIVERY_RETRIES,
    PLUGIN_CALLS,
    PLUGIN_CALL_SECONDS,
    PLUGIN_FAULTS,
    PLUGIN_LOG_LINES_DROPPED,
    COMMIT_TRANSACTIONS,
    COMMIT_ABORTS,
    COMMIT_SECONDS,
    CHANGELOG_RECORDS_OUT,
    CHANGELOG_RECORDS_RESTORED,
    GROUP_REBALANCES,
    GROUP_PARTITIONS_LOST,
    PRODUCER_REBUILDS,
];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dashboards name these: a change here is a change for their owners.
    const LIST: &str = "\
pelton_task_records_in_total{processor}
pelton_task_bytes_in_total{processor}
pelton_task_records_out_total{processor}
pelton_task_bytes_out_total{processor}
pelton_task_records_skipped_total{processor,reason}
pelton_task_timestamps_rewritten_total{processor}
pelton_task_overlay_bytes{processor}
pelton_task_parked_records{processor}
pelton_task_assigned{processor}
pelton_delivery_dead_letters_total{processor,code}
pelton_delivery_retries_total{processor}
pelton_plugin_calls_total{processor}
pelton_plugin_call_seconds{processor}
pelton_plugin_faults_total{processor,code}
pelton_plugin_log_lines_dropped_total{processor}
pelton_commit_transactions_total{}
pelton_commit_aborts_total{reason}
pelton_commit_seconds{phase}
pelton_changelog_records_out_total{processor,store}
pelton_changelog_records_restored_total{processor,store}
pelton_group_rebalances_total{processor}
pelton_group_partitions_lost_total{processor}
pelton_producer_rebuilds_total{}
";

    #[test]
    fn the_list() {
        let list: String = ALL.iter().map(|m| format!("{}{{{}}}\n", m.name, m.labels.join(","))).collect();
        assert_eq!(list, LIST);
    }

    #[test]
    fn the_grammar() {
        for metric in ALL {
            let plain = metric.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(plain && metric.name.starts_with("pelton_"), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert_eq!(metric.name.ends_with("_seconds"), metric.kind == Kind::Histogram, "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
