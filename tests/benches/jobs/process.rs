//! A child process whose CPU time and peak memory are read from `/proc`: also after its end, because it is reaped only then.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ticks of `/proc/PID/stat` in a second; the same on every Linux that this runs on.
const TICKS: f64 = 100.0;
const LOOK: Duration = Duration::from_millis(5);

/// Killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    started: Instant,
    peak_kib: u64,
}

/// What a whole process cost, its start and end included.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_mib: f64,
}

impl Process {
    /// Both of its streams go to `log`.
    pub(crate) fn start(command: &mut Command, log: PathBuf) -> Process {
        let file = std::fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        let started = Instant::now();
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Process { child, log, started, peak_kib: 0 }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU seconds so far, of all its threads.
    pub(crate) fn cpu(&self) -> f64 {
        self.stat().1
    }

    /// Resident memory now.
    pub(crate) fn resident_mib(&self) -> f64 {
        status_kib(self.child.id(), "VmRSS:") as f64 / 1024.0
    }

    /// Takes note of the peak memory, which cannot be asked for after the end; panics when it ended too early.
    pub(crate) fn look(&mut self) {
        let ended = self.ended();
        assert!(!ended, "a process ended before its work was done:\n{}", self.said());
    }

    /// Waits for its own end, which must be a good one.
    pub(crate) fn finish(&mut self, limit: Duration) -> Cost {
        let deadline = Instant::now() + limit;
        while !self.ended() {
            assert!(Instant::now() < deadline, "a process did not end within {limit:?}:\n{}", self.said());
            std::thread::sleep(LOOK);
        }
        let cost = self.cost();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a process ended with {status}:\n{}", self.said());
        cost
    }

    /// Everything it said.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    fn ended(&mut self) -> bool {
        self.peak_kib = self.peak_kib.max(status_kib(self.child.id(), "VmHWM:"));
        self.stat().0 == 'Z'
    }

    pub(crate) fn cost(&self) -> Cost {
        let seconds = self.started.elapsed().as_secs_f64();
        Cost { seconds, cpu_seconds: self.cpu(), peak_mib: self.peak_kib as f64 / 1024.0 }
    }

    /// State and CPU seconds. The second field is a name in parentheses that may hold anything; state is the third field, user and
    /// system time are the 14th and 15th.
    fn stat(&self) -> (char, f64) {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let rest = &text[text.rfind(')').expect("a name in parentheses") + 2..];
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
        (rest.chars().next().unwrap(), (ticks(11) + ticks(12)) as f64 / TICKS)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end; gives what it cost and said.
pub(crate) fn whole(command: &mut Command, dir: &Path) -> (Cost, String) {
    let mut process = Process::start(command, dir.join("whole.log"));
    let cost = process.finish(Duration::from_secs(1800));
    (cost, process.said())
}

/// A line of `/proc/PID/status` that is a size; 0 for a process that has ended.
fn status_kib(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
