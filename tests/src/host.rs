//! The built binary as a child process: started, signalled, waited for with a limit, its log kept and shown when a test fails.

use crate::broker::root;
use crate::wait;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// SIGABRT: how a failpoint kills.
pub const ABORTED: Exit = Exit::Signal(6);
/// SIGKILL.
pub const KILLED: Exit = Exit::Signal(9);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A process to be started.
pub struct Launch {
    name: String,
    log: PathBuf,
    command: Command,
    out: Option<Stdio>,
    err: Option<Stdio>,
}

/// A process that was started. Killed when dropped.
pub struct Host {
    pub name: String,
    log: PathBuf,
    child: Child,
}

/// The binary with its failpoints (`make test` builds it), or the one that `PELTON_BIN` names.
pub fn binary() -> PathBuf {
    let path = std::env::var_os("PELTON_BIN").map_or_else(|| root().join("bin/test/pelton"), PathBuf::from);
    assert!(path.exists(), "{} is missing: `make test-binary` builds it", path.display());
    path
}

impl Launch {
    pub fn new(name: impl Into<String>, log: PathBuf) -> Launch {
        Launch { name: name.into(), log, command: Command::new(binary()), out: None, err: None }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Launch {
        self.command.arg(arg);
        self
    }

    /// Standard output elsewhere than into the log.
    pub fn out(self, to: impl Into<Stdio>) -> Launch {
        Launch { out: Some(to.into()), ..self }
    }

    /// Standard error elsewhere than into the log.
    pub fn err(self, to: impl Into<Stdio>) -> Launch {
        Launch { err: Some(to.into()), ..self }
    }

    pub fn env(mut self, name: &str, value: &str) -> Launch {
        self.command.env(name, value);
        self
    }

    /// Such as `commit-after-flush=3*off->return`: dies there the fourth time.
    pub fn failpoints(self, points: &str) -> Launch {
        self.env("FAILPOINTS", points)
    }

    pub fn start(mut self) -> Host {
        let log = File::create(&self.log).expect("a log file");
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(self.out.take().unwrap_or_else(|| log.try_clone().unwrap().into()))
            .stderr(self.err.take().unwrap_or_else(|| log.into()))
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", self.name));
        Host { name: self.name, log: self.log, child }
    }
}

impl Host {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory, in KiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line VmRSS");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number of KiB")
    }

    /// TERM, STOP, CONT, …
    pub fn signal(&self, name: &str) {
        let done =
            Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status().expect("kill runs");
        assert!(done.success(), "kill -{name} {}", self.name);
    }

    /// SIGKILL, and the wait for it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM; it must end well within `limit`.
    pub fn stop(&mut self, limit: Duration) {
        self.signal("TERM");
        assert_eq!(self.wait(limit), Exit::Code(0), "{} after SIGTERM", self.name);
    }

    pub fn exited(&mut self) -> Option<Exit> {
        self.child.try_wait().expect("a child can be waited for").map(exit)
    }

    /// How it ended; panics when it has not within `limit`.
    pub fn wait(&mut self, limit: Duration) -> Exit {
        let what = format!("{} ends", self.name);
        wait::until(&what, limit, || self.exited())
    }

    /// Everything said so far, without colours.
    pub fn log(&self) -> String {
        plain(&String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()))
    }

    /// Waits until the log holds `text` in any case.
    pub fn says(&mut self, text: &str, limit: Duration) {
        let what = format!("{} says {text:?}", self.name);
        wait::until(&what, limit, || self.log().to_lowercase().contains(&text.to_lowercase()).then_some(()));
    }

    /// Must still be running.
    pub fn assert_running(&mut self) {
        assert_eq!(self.exited(), None, "{} has ended", self.name);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let skip = log.lines().count().saturating_sub(60);
            let tail: Vec<&str> = log.lines().skip(skip).collect();
            eprintln!("---- {}: end of its log\n{}\n----", self.name, tail.join("\n"));
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None => Exit::Signal(status.signal().unwrap_or(0)),
    }
}

/// Without terminal colours.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => drop(chars.by_ref().find(|c| c.is_ascii_alphabetic())),
            c => out.push(c),
        }
    }
    out
}
