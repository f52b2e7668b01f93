//! Every metric there is: name, kind, labels and help. Names follow `pelton_<area>_<noun>[_<unit>][_total]`; labels are bounded: by the
//! application file (`processor`, `store`, `worker`), by the inputs (`partition`), by this house (`code`, `phase`, `reason`, `result`),
//! or by a cap (`name`); of those that tell versions, only the latest is kept.

use super::buckets::{BATCH, COMMIT, CUSTOM, LATENESS, PAUSE, PLUGIN_CALL};

/// A metric as it is described to an exporter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows; the name ends in `_total`.
    Counter,
    Gauge,
    /// The upper bounds of its buckets, ascending.
    Histogram(&'static [f64]),
}

pub const PROCESSOR: &str = "processor";
pub const STORE: &str = "store";
pub const PARTITION: &str = "partition";
/// A thread that runs tasks, by its number.
pub const WORKER: &str = "worker";
/// A fault's stable code.
pub const CODE: &str = "code";
/// A part of a commit; see [`PHASES`].
pub const PHASE: &str = "phase";
/// Why a transaction was aborted.
pub const REASON: &str = "reason";
/// What a swap came to.
pub const RESULT: &str = "result";
/// Of a component.
pub const DIGEST: &str = "digest";
/// Of a plugin, as it says.
pub const VERSION: &str = "version";
/// As a plugin calls what it counts.
pub const NAME: &str = "name";
pub const APPLICATION: &str = "application";
pub const INSTANCE: &str = "instance";
/// Of Pelton.
pub const RELEASE: &str = "release";

/// The parts of a commit, in order.
pub const PHASES: &[&str] = &["changelog", "flush", "offsets", "commit", "store"];

pub const HOST_INFO: Metric =
    gauge("pelton_host_info", &[APPLICATION, INSTANCE, RELEASE], "Always 1; its labels say which host this is.");
pub const HOST_UP: Metric =
    gauge("pelton_host_up", &[], "1 from when the host has joined its groups until it stops, else 0.");
pub const HOST_LIVE: Metric = gauge("pelton_host_live", &[], "1 unless a worker is stuck, as `/healthz` says.");
pub const HOST_READY: Metric =
    gauge("pelton_host_ready", &[], "1 while every partition of this host is worked on, as `/readyz` says.");

pub const TASK_RECORDS_IN: Metric =
    counter("pelton_task_records_in_total", &[PROCESSOR], "Input records whose effects are committed.");
pub const TASK_BYTES_IN: Metric =
    counter("pelton_task_bytes_in_total", &[PROCESSOR], "Bytes of keys, values and headers of those records.");
pub const TASK_RECORDS_OUT: Metric =
    counter("pelton_task_records_out_total", &[PROCESSOR], "Output records that are committed.");
pub const TASK_BYTES_OUT: Metric =
    counter("pelton_task_bytes_out_total", &[PROCESSOR], "Bytes of keys and values of those records.");
pub const TASK_TIMESTAMPS_REWRITTEN: Metric = counter(
    "pelton_task_timestamps_rewritten_total",
    &[PROCESSOR],
    "Output records whose timestamp 0 was written as 1.",
);
pub const TASK_OVERLAY_BYTES: Metric =
    gauge("pelton_task_overlay_bytes", &[PROCESSOR], "Bytes of state writes that are not yet committed.");
pub const TASK_PARKED_RECORDS: Metric =
    gauge("pelton_task_parked_records", &[PROCESSOR], "Input records that wait by key for a retry, or behind one.");
pub const TASK_BACKING_OFF: Metric =
    gauge("pelton_task_backing_off", &[PROCESSOR], "Tasks whose next record waits for its retry.");
pub const TASK_BACKING_OFF_SINCE: Metric = gauge(
    "pelton_task_backing_off_since_timestamp_seconds",
    &[PROCESSOR],
    "When the first of those tasks began to wait; not there while none does.",
);
pub const TASK_HALTED: Metric =
    gauge("pelton_task_halted", &[PROCESSOR], "Tasks that do nothing any more before a person has looked.");
pub const TASK_ASSIGNED: Metric = gauge("pelton_task_assigned", &[PROCESSOR], "Tasks that this host owns.");
pub const PROCESSOR_STOPPED: Metric = gauge(
    "pelton_processor_stopped",
    &[PROCESSOR],
    "1 once the processor stands still on this host, as its plugin or its policy said, else 0.",
);

pub const DELIVERY_DEAD_LETTERS: Metric =
    counter("pelton_delivery_dead_letters_total", &[PROCESSOR, CODE], "Input records that became dead letters.");
pub const DELIVERY_RETRIES: Metric =
    counter("pelton_delivery_retries_total", &[PROCESSOR], "Retries of records that failed, as they were decided.");

pub const PLUGIN_CALLS: Metric =
    counter("pelton_plugin_calls_total", &[PROCESSOR], "Calls of the plugin with a batch that came back.");
pub const PLUGIN_CALL_SECONDS: Metric =
    histogram("pelton_plugin_call_seconds", &[PROCESSOR], PLUGIN_CALL, "Time of a call of the plugin.");
pub const PLUGIN_BATCH_RECORDS: Metric =
    histogram("pelton_plugin_batch_records", &[PROCESSOR], BATCH, "Records that a call of the plugin was given.");
pub const PLUGIN_FAULTS: Metric = counter(
    "pelton_plugin_faults_total",
    &[PROCESSOR, CODE],
    "Calls that ended in a trap, a broken limit or a missed deadline.",
);
pub const PLUGIN_INSTANCES: Metric = counter(
    "pelton_plugin_instances_total",
    &[PROCESSOR],
    "Instances that were made for calls: the first of a task, and those in place of one that broke, grew too large or was given up.",
);
pub const PLUGIN_MEMORY_BYTES: Metric = gauge(
    "pelton_plugin_memory_bytes",
    &[PROCESSOR],
    "Linear memory of the largest instance among the tasks of this host.",
);
pub const PLUGIN_LOG_LINES_DROPPED: Metric =
    counter("pelton_plugin_log_lines_dropped_total", &[PROCESSOR], "Log lines of the plugin beyond its limit.");
pub const PLUGIN_SWAPS: Metric = counter(
    "pelton_plugin_swaps_total",
    &[PROCESSOR, RESULT],
    "Changes to another version of the plugin on this host, by what they came to.",
);
pub const PLUGIN_SWAP_PAUSE_SECONDS: Metric = histogram(
    "pelton_plugin_swap_pause_seconds",
    &[PROCESSOR],
    PAUSE,
    "How long a task stood still for a change of its plugin.",
);
pub const PLUGIN_VERSION_INFO: Metric = gauge(
    "pelton_plugin_version_info",
    &[PROCESSOR, DIGEST, VERSION],
    "Always 1; its labels say which version of the plugin runs here.",
);
pub const PLUGIN_CUSTOM: Metric =
    counter("pelton_plugin_custom_total", &[PROCESSOR, NAME], "What the plugin counts itself (`ctx.count`).");
pub const PLUGIN_CUSTOM_VALUES: Metric = histogram(
    "pelton_plugin_custom",
    &[PROCESSOR, NAME],
    CUSTOM,
    "What the plugin measures itself (`ctx.observe`), in the unit that its name says.",
);
pub const PLUGIN_CUSTOM_DROPPED: Metric = counter(
    "pelton_plugin_custom_dropped_total",
    &[PROCESSOR],
    "Counts and values of the plugin's own that were left out: a bad name, one name too many, or a value that is no measure.",
);

pub const COMMIT_TRANSACTIONS: Metric =
    counter("pelton_commit_transactions_total", &[], "Transactions that were committed.");
pub const COMMIT_ABORTS: Metric =
    counter("pelton_commit_aborts_total", &[REASON], "Transactions that were aborted, by the code of the fault.");
pub const COMMIT_SECONDS: Metric = histogram("pelton_commit_seconds", &[PHASE], COMMIT, "Time of a commit's parts.");
pub const COMMIT_LATENESS_SECONDS: Metric = histogram(
    "pelton_commit_lateness_seconds",
    &[],
    LATENESS,
    "How much later than `commit_interval` asks for a commit began.",
);
pub const COMMIT_OPEN_SINCE: Metric = gauge(
    "pelton_commit_open_since_timestamp_seconds",
    &[WORKER],
    "Since when the worker has something that is not committed; not there while it has nothing.",
);

pub const CHANGELOG_RECORDS_OUT: Metric =
    counter("pelton_changelog_records_out_total", &[PROCESSOR, STORE], "Changelog records that are committed.");
pub const CHANGELOG_RECORDS_RESTORED: Metric = counter(
    "pelton_changelog_records_restored_total",
    &[PROCESSOR, STORE],
    "Changelog records that were read back; those of a task's stores are counted together, under the first.",
);
pub const CHANGELOG_RESTORING_TASKS: Metric =
    gauge("pelton_changelog_restoring_tasks", &[PROCESSOR], "Tasks that read their stores back.");
pub const CHANGELOG_RESTORE_LEFT: Metric = gauge(
    "pelton_changelog_restore_left_records",
    &[PROCESSOR],
    "Changelog offsets that those tasks have still to pass.",
);

pub const STATE_CACHE_BYTES: Metric =
    gauge("pelton_state_cache_bytes", &[], "Block cache of all stores that is in use.");
pub const STATE_CACHE_LIMIT_BYTES: Metric =
    gauge("pelton_state_cache_limit_bytes", &[], "What the block cache may take.");
pub const STATE_MEMTABLE_BYTES: Metric = gauge("pelton_state_memtable_bytes", &[], "Memtables of all stores.");
pub const STATE_MEMTABLE_LIMIT_BYTES: Metric =
    gauge("pelton_state_memtable_limit_bytes", &[], "What memtables may take before they are flushed.");
pub const STATE_SST_BYTES: Metric = gauge(
    "pelton_state_sst_bytes",
    &[PROCESSOR, STORE],
    "Files of the store on disk, over the tasks of this host; looked at every few seconds.",
);
pub const STATE_KEYS: Metric = gauge(
    "pelton_state_keys",
    &[PROCESSOR, STORE],
    "Keys of the store over the tasks of this host, as RocksDB estimates.",
);
pub const STATE_DELAYED_TASKS: Metric = gauge(
    "pelton_state_delayed_tasks",
    &[PROCESSOR],
    "Tasks whose stores slow writes down, as compaction lags behind.",
);
pub const STATE_STOPPED_TASKS: Metric = gauge(
    "pelton_state_stopped_tasks",
    &[PROCESSOR],
    "Tasks whose stores take no writes until compaction has caught up.",
);

pub const GROUP_MEMBER: Metric = gauge(
    "pelton_group_member",
    &[PROCESSOR],
    "1 while this host takes part in the processor's group, with partitions or waiting for some, else 0.",
);
pub const GROUP_REBALANCES: Metric =
    counter("pelton_group_rebalances_total", &[PROCESSOR], "Changes of the partitions that this host owns.");
pub const GROUP_PARTITIONS_LOST: Metric =
    counter("pelton_group_partitions_lost_total", &[PROCESSOR], "Partitions lost without a chance to commit.");
pub const GROUP_FENCINGS: Metric =
    counter("pelton_group_fencings_total", &[PROCESSOR], "Times that the group took this host for another.");
pub const GROUP_LAG_RECORDS: Metric = gauge(
    "pelton_group_lag_records",
    &[PROCESSOR, PARTITION],
    "Records of the inputs that the group has still to work off, for partitions of this host.",
);
pub const PRODUCER_REBUILDS: Metric =
    counter("pelton_producer_rebuilds_total", &[], "Producers built anew because their identity was gone.");
pub const PRODUCER_FENCINGS: Metric = counter(
    "pelton_producer_fencings_total",
    &[],
    "Times that a producer lost its identity: to another process, to a time-out, or as the outcome of a commit was unknown.",
);
pub const LOG_LINES_LOST: Metric =
    counter("pelton_log_lines_lost_total", &[], "Log lines that standard error did not take.");

pub const PROCESS_CPU_SECONDS: Metric =
    counter("process_cpu_seconds_total", &[], "Time that the process has had on processors.");
pub const PROCESS_RESIDENT_BYTES: Metric =
    gauge("process_resident_memory_bytes", &[], "Memory of the process that is in RAM.");
pub const PROCESS_VIRTUAL_BYTES: Metric = gauge("process_virtual_memory_bytes", &[], "Address space of the process.");
pub const PROCESS_OPEN_FDS: Metric = gauge("process_open_fds", &[], "Open file descriptors of the process.");
pub const PROCESS_MAX_FDS: Metric = gauge("process_max_fds", &[], "Most file descriptors that the process may have.");
pub const PROCESS_THREADS: Metric = gauge("process_threads", &[], "Threads of the process.");
pub const PROCESS_START_TIME: Metric =
    gauge("process_start_time_seconds", &[], "When the process began, in seconds since the epoch.");

/// All of them, in the order of this file.
pub const ALL: &[Metric] = &[
    HOST_INFO,
    HOST_UP,
    HOST_LIVE,
    HOST_READY,
    TASK_RECORDS_IN,
    TASK_BYTES_IN,
    TASK_RECORDS_OUT,
    TASK_BYTES_OUT,
    TASK_TIMESTAMPS_REWRITTEN,
    TASK_OVERLAY_BYTES,
    TASK_PARKED_RECORDS,
    TASK_BACKING_OFF,
    TASK_BACKING_OFF_SINCE,
    TASK_HALTED,
    TASK_ASSIGNED,
    PROCESSOR_STOPPED,
    DELIVERY_DEAD_LETTERS,
    DELIVERY_RETRIES,
    PLUGIN_CALLS,
    PLUGIN_CALL_SECONDS,
    PLUGIN_BATCH_RECORDS,
    PLUGIN_FAULTS,
    PLUGIN_INSTANCES,
    PLUGIN_MEMORY_BYTES,
    PLUGIN_LOG_LINES_DROPPED,
    PLUGIN_SWAPS,
    PLUGIN_SWAP_PAUSE_SECONDS,
    PLUGIN_VERSION_INFO,
    PLUGIN_CUSTOM,
    PLUGIN_CUSTOM_VALUES,
    PLUGIN_CUSTOM_DROPPED,
    COMMIT_TRANSACTIONS,
    COMMIT_ABORTS,
    COMMIT_SECONDS,
    COMMIT_LATENESS_SECONDS,
    COMMIT_OPEN_SINCE,
    CHANGELOG_RECORDS_OUT,
    CHANGELOG_RECORDS_RESTORED,
    CHANGELOG_RESTORING_TASKS,
    CHANGELOG_RESTORE_LEFT,
    STATE_CACHE_BYTES,
    STATE_CACHE_LIMIT_BYTES,
    STATE_MEMTABLE_BYTES,
    STATE_MEMTABLE_LIMIT_BYTES,
    STATE_SST_BYTES,
    STATE_KEYS,
    STATE_DELAYED_TASKS,
    STATE_STOPPED_TASKS,
    GROUP_MEMBER,
    GROUP_REBALANCES,
    GROUP_PARTITIONS_LOST,
    GROUP_FENCINGS,
    GROUP_LAG_RECORDS,
    PRODUCER_REBUILDS,
    PRODUCER_FENCINGS,
    LOG_LINES_LOST,
    PROCESS_CPU_SECONDS,
    PROCESS_RESIDENT_BYTES,
    PROCESS_VIRTUAL_BYTES,
    PROCESS_OPEN_FDS,
    PROCESS_MAX_FDS,
    PROCESS_THREADS,
    PROCESS_START_TIME,
];

impl Metric {
    /// The metric of that name.
    pub(super) fn find(name: &str) -> Option<&'static Metric> {
        ALL.iter().find(|metric| metric.name == name)
    }

    /// The upper bounds of a histogram's buckets; none of another kind.
    pub(super) fn bounds(&self) -> &'static [f64] {
        match self.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        }
    }
}

impl Kind {
    /// As the exposition format calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        }
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    bounds: &'static [f64],
    help: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram(bounds), labels, help }
}
