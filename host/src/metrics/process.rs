//! What the system says of this process, read when the metrics page is made. Where there is no `/proc`, nothing.

use super::names::{self, Metric};
use std::fs;

/// Ticks a second in `/proc`: the kernel scales to this for every reader, whatever it runs at.
const TICKS: f64 = 100.0;
/// Where the fields after the command's name lie in `/proc/self/stat`: utime is the 14th of the line, the 12th after the name.
const UTIME: usize = 11;
const STIME: usize = 12;
const THREADS: usize = 17;
const START: usize = 19;

/// Each number that could be read.
pub(super) fn read() -> Vec<(Metric, f64)> {
    let (stat, status) = (file("/proc/self/stat"), file("/proc/self/status"));
    let field = |at| stat_field(&stat, at);
    let cpu = field(UTIME).zip(field(STIME)).map(|(user, system)| (user + system) / TICKS);
    let found = [
        (names::PROCESS_CPU_SECONDS, cpu),
        (names::PROCESS_RESIDENT_BYTES, kilobytes(&status, "VmRSS:")),
        (names::PROCESS_VIRTUAL_BYTES, kilobytes(&status, "VmSize:")),
        (names::PROCESS_OPEN_FDS, open_files()),
        (names::PROCESS_MAX_FDS, most_files(&file("/proc/self/limits"))),
        (names::PROCESS_THREADS, field(THREADS)),
        (
            names::PROCESS_START_TIME,
            booted(&file("/proc/stat")).zip(field(START)).map(|(at, ticks)| at + ticks / TICKS),
        ),
    ];
    found.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}

fn file(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The name before the fields is in parentheses, and may have spaces and parentheses of its own.
fn stat_field(stat: &str, at: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(at)?.parse().ok()
}

fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

fn open_files() -> Option<f64> {
    // one of them is the folder that is being read
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

fn most_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn booted(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 4200 1000 25";
        assert_eq!([UTIME, STIME, THREADS, START].map(|at| stat_field(stat, at)), [250.0, 50.0, 9.0, 4200.0].map(Some));
        assert_eq!(stat_field("", UTIME), None);
        assert_eq!(kilobytes("Name:\tx\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12288.0));
        assert_eq!(
            most_files("Max open files            1024                 4096                 files\n"),
            Some(1024.0)
        );
        assert_eq!(most_files("Max open files            unlimited            unlimited            files\n"), None);
        assert_eq!(booted("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_told_of() {
        let found = read();
        let value =
            |metric: Metric| found.iter().find(|(m, _)| m.name == metric.name).map(|(_, value)| *value).unwrap();
        assert!(value(names::PROCESS_RESIDENT_BYTES) > 1e6 && value(names::PROCESS_THREADS) >= 1.0);
        assert!(value(names::PROCESS_OPEN_FDS) >= 1.0 && value(names::PROCESS_START_TIME) > 1.6e9);
    }
}
