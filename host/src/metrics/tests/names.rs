//! The list of metrics, and the grammar of their names.

use crate::metrics::names::{ALL, Kind};

/// Dashboards name these: a change here is a change for their owners.
const LIST: &str = "\
pelton_host_info{application,instance,release}
pelton_host_up{}
pelton_host_live{}
pelton_host_ready{}
pelton_task_records_in_total{processor}
pelton_task_bytes_in_total{processor}
pelton_task_records_out_total{processor}
pelton_task_bytes_out_total{processor}
pelton_task_timestamps_rewritten_total{processor}
pelton_task_overlay_bytes{processor}
pelton_task_parked_records{processor}
pelton_task_backing_off{processor}
pelton_task_backing_off_since_timestamp_seconds{processor}
pelton_task_halted{processor}
pelton_task_assigned{processor}
pelton_processor_stopped{processor}
pelton_delivery_dead_letters_total{processor,code}
pelton_delivery_retries_total{processor}
pelton_plugin_calls_total{processor}
pelton_plugin_call_seconds{processor}
pelton_plugin_batch_records{processor}
pelton_plugin_faults_total{processor,code}
pelton_plugin_instances_total{processor}
pelton_plugin_memory_bytes{processor}
pelton_plugin_log_lines_dropped_total{processor}
pelton_plugin_swaps_total{processor,result}
pelton_plugin_swap_pause_seconds{processor}
pelton_plugin_version_info{processor,digest,version}
pelton_plugin_custom_total{processor,name}
pelton_plugin_custom{processor,name}
pelton_plugin_custom_dropped_total{processor}
pelton_commit_transactions_total{}
pelton_commit_aborts_total{reason}
pelton_commit_seconds{phase}
pelton_commit_lateness_seconds{}
pelton_commit_open_since_timestamp_seconds{worker}
pelton_changelog_records_out_total{processor,store}
pelton_changelog_records_restored_total{processor,store}
pelton_changelog_restoring_tasks{processor}
pelton_changelog_restore_left_records{processor}
pelton_state_cache_bytes{}
pelton_state_cache_limit_bytes{}
pelton_state_memtable_bytes{}
pelton_state_memtable_limit_bytes{}
pelton_state_sst_bytes{processor,store}
pelton_state_keys{processor,store}
pelton_state_delayed_tasks{processor}
pelton_state_stopped_tasks{processor}
pelton_group_member{processor}
pelton_group_rebalances_total{processor}
pelton_group_partitions_lost_total{processor}
pelton_group_fencings_total{processor}
pelton_group_lag_records{processor,partition}
pelton_producer_rebuilds_total{}
pelton_producer_fencings_total{}
pelton_log_lines_lost_total{}
process_cpu_seconds_total{}
process_resident_memory_bytes{}
process_virtual_memory_bytes{}
process_open_fds{}
process_max_fds{}
process_threads{}
process_start_time_seconds{}
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
        assert!(
            plain && (metric.name.starts_with("pelton_") || metric.name.starts_with("process_")),
            "{}",
            metric.name
        );
        assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
        assert!(metric.help.ends_with('.') && !metric.help.contains(['|', '\n']), "{}", metric.name);
    }
}

#[test]
fn no_name_is_another_ones_series() {
    for histogram in ALL.iter().filter(|metric| !metric.bounds().is_empty()) {
        for suffix in ["_bucket", "_sum", "_count", "_total"] {
            let taken = format!("{}{suffix}", histogram.name);
            let other = ALL.iter().find(|metric| metric.name == taken && metric.kind != Kind::Counter);
            assert!(other.is_none(), "{taken}");
        }
    }
}
