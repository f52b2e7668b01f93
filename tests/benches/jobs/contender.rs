//! Who runs a job on Kafka. Every run has an application id and an output of its own, so that all start from nothing on the same input.

use crate::process::Process;
use crate::settings::{PARTITIONS, number, pelton, plugin, raw_loop};
use pelton_tests::broker::broker;
use pelton_tests::kafka;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pelton,
    /// The raw loop, by `poll` and `send`.
    Poll,
    /// The raw loop, by batches from the queues of partitions.
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    Echo,
    Count,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) kind: Kind,
    pub(crate) job: Job,
    pub(crate) commit_ms: u64,
}

/// A contender at work. Its topics go with it.
pub(crate) struct Run {
    pub(crate) process: Process,
    pub(crate) group: String,
    pub(crate) output: String,
    /// Must stay empty.
    pub(crate) dead_letters: Option<String>,
    topics: Vec<String>,
    _dir: TempDir,
}

impl Contender {
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Pelton => "Pelton",
            Kind::Poll => "raw loop (poll and send)",
            Kind::Batch => "raw loop (batches)",
        }
    }

    /// Starts it on a topic. With `records` it ends by itself after so many.
    pub(crate) fn start(&self, input: &str, records: Option<u64>) -> Run {
        let dir = tempfile::Builder::new().prefix("pelton-bench-").tempdir().unwrap();
        let id = unique(self.job.name());
        let output = format!("{id}.out");
        kafka::create_topic(&output, PARTITIONS, &[]);
        match self.kind {
            Kind::Pelton => self.start_pelton(dir, &id, input, records.is_some()),
            Kind::Poll | Kind::Batch => self.start_raw(dir, &id, input, records),
        }
    }

    fn start_pelton(&self, dir: TempDir, id: &str, input: &str, ends: bool) -> Run {
        let (file, output, job) = (dir.path().join("app.toml"), format!("{id}.out"), self.job.name());
        std::fs::write(&file, self.application(id, input, &output)).unwrap();
        let mut command = Command::new(pelton());
        command.arg("run").arg(&file).args(ends.then_some("--until-idle"));
        let process = Process::start(&mut command, log(dir.path()));
        let group = format!("{id}-{job}");
        let dead_letters = format!("{group}-dead-letters");
        let changelog = (self.job == Job::Count).then(|| format!("{group}-counts-changelog"));
        let topics = [output.clone(), dead_letters.clone()].into_iter().chain(changelog).collect();
        Run { process, group, output, dead_letters: Some(dead_letters), topics, _dir: dir }
    }

    /// Everything that is not said is the default.
    fn application(&self, id: &str, input: &str, output: &str) -> String {
        let (job, commit_ms, brokers) = (self.job.name(), self.commit_ms, &broker().address);
        let plugin = plugin(job);
        format!(
            "[application]\nid = {id:?}\nstate_dir = \"state\"\ncommit_interval = \"{commit_ms}ms\"\n\n\
             [log]\nkind = \"kafka\"\nbrokers = {brokers:?}\n\n\
             [[processor]]\nname = {job:?}\nplugin = {plugin:?}\ninputs.in = {input:?}\noutputs.out = {output:?}\n"
        )
    }

    fn start_raw(&self, dir: TempDir, id: &str, input: &str, records: Option<u64>) -> Run {
        let output = format!("{id}.out");
        let mut topics = vec![output.clone()];
        let mut command = Command::new(raw_loop());
        let mode = if self.kind == Kind::Batch { "batch" } else { "poll" };
        let mut set = |name: &str, value: &str| {
            command.arg(format!("{name}={value}"));
        };
        for (name, value) in [("mode", mode), ("job", self.job.name()), ("brokers", &broker().address), ("group", id)] {
            set(name, value);
        }
        set("input", input);
        set("output", &output);
        set("commit_ms", &self.commit_ms.to_string());
        set("linger_ms", &number("BENCH_LINGER_MS", 5).to_string());
        if let Some(records) = records {
            set("records", &records.to_string());
        }
        if self.job == Job::Count {
            let changelog = format!("{id}.changelog");
            kafka::create_topic(&changelog, PARTITIONS, &[("cleanup.policy", "compact")]);
            set("changelog", &changelog);
            topics.push(changelog);
        }
        let process = Process::start(&mut command, log(dir.path()));
        Run { process, group: id.to_owned(), output, dead_letters: None, topics, _dir: dir }
    }
}

impl Job {
    /// Of the plugin, and of the raw loop's job.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Job::Echo => "echo",
            Job::Count => "count",
        }
    }
}

impl Run {
    /// Ends it, and deletes what it wrote, so that the next one finds the broker as this one did.
    pub(crate) fn clear(self) {
        drop(self.process);
        let there = kafka::topics();
        self.topics.iter().filter(|topic| there.contains(topic)).for_each(|topic| kafka::delete_topic(topic));
    }
}

fn log(dir: &Path) -> std::path::PathBuf {
    dir.join("log")
}

/// Another name for every run, also on a broker that is kept.
pub(crate) fn unique(job: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("bench-{job}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
