//! An application on either log, in a folder of its own with names of its own, so that tests run side by side on one broker.
//!
//! Tests speak of topics by short names (`in`, `out`); on the log they carry the application's id as prefix.

use crate::broker::{broker, root};
use crate::host::{Exit, Launch};
use crate::kafka;
use crate::record::Rec;
use crate::wait::secs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use toml::{Table, Value};

/// How long a job of test size may take until it is idle.
pub const IDLE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Log {
    Kafka,
    Embedded,
}

/// An application file in the making; [`Draft::ready`] writes it.
pub struct Draft {
    log: Log,
    id: String,
    table: Table,
    brokers: Option<String>,
    create: bool,
}

/// An application that can be run.
pub struct App {
    pub log: Log,
    /// Application id and prefix of its topics.
    pub id: String,
    dir: tempfile::TempDir,
    runs: AtomicU32,
}

/// One `[[processor]]`, with short names of topics.
#[derive(Clone, Debug)]
pub struct Processor(Table);

impl App {
    pub fn draft(log: Log, name: &str) -> Draft {
        Draft { log, id: unique(name), table: Table::new(), brokers: None, create: true }
    }

    /// A processor `count` from `in` to `out`, dead letters to `dead`, all with `partitions` partitions.
    pub fn counting(log: Log, name: &str, partitions: i32) -> Draft {
        let topics = ["in", "out", "dead"];
        let draft = topics.iter().fold(App::draft(log, name), |draft, topic| draft.topic(topic, partitions));
        draft.processor(Processor::new("count").input("in", "in").output("out", "out").dead_letters("dead"))
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self) -> PathBuf {
        self.dir().join("app.toml")
    }

    /// The topic's name on the log.
    pub fn topic(&self, short: &str) -> String {
        topic_name(&self.id, short)
    }

    /// The consumer group of a processor.
    pub fn group(&self, processor: &str) -> String {
        format!("{}-{processor}", self.id)
    }

    pub fn changelog(&self, processor: &str, store: &str) -> String {
        format!("{}-{processor}-{store}-changelog", self.id)
    }

    /// Where host `n` keeps its state.
    pub fn state_dir(&self, n: u32) -> PathBuf {
        self.dir().join(format!("state-{n}"))
    }

    /// Host `n` of this application, not yet started.
    pub fn host(&self, n: u32) -> Launch {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        Launch::new(format!("{} host {n} run {run}", self.id), self.dir().join(format!("host-{n}-{run}.log")))
            .arg("run")
            .arg(self.file())
            .arg("--state-dir")
            .arg(self.state_dir(n))
    }

    /// Runs host `n` until there is nothing left to do; it must end well.
    pub fn finish(&self, n: u32) {
        let mut host = self.host(n).arg("--until-idle").start();
        let exit = host.wait(IDLE);
        assert_eq!(exit, Exit::Code(0), "{} did not end well: {}", host.name, host.log());
    }

    /// Runs host `n` until it is ready, so that its stores are restored also where there is no input left, and stops it.
    pub fn settle(&self, n: u32) {
        let mut host = self.host(n).start();
        host.says("ready=true", IDLE);
        host.stop(secs(60));
    }

    /// Deletes what host `n` keeps on disk.
    pub fn wipe(&self, n: u32) {
        std::fs::remove_dir_all(self.state_dir(n)).expect("the state folder can be deleted");
    }

    /// Appends to a topic, outside any host.
    pub fn produce(&self, topic: &str, records: &[Rec]) {
        match self.log {
            Log::Kafka => kafka::produce(&self.topic(topic), records),
            Log::Embedded => self.produce_local(&self.topic(topic), records),
        }
    }

    /// What committed readers see of a topic now, by partition and offset. On the embedded log no host may be running.
    pub fn read(&self, topic: &str) -> Vec<Rec> {
        self.read_named(&self.topic(topic))
    }

    /// [`App::read`] by the topic's full name.
    pub fn read_named(&self, topic: &str) -> Vec<Rec> {
        match self.log {
            Log::Kafka => kafka::read(topic, kafka::Isolation::Committed),
            Log::Embedded => self.consume_with_cli(topic),
        }
    }

    /// A topic as `pelton consume` prints it.
    pub fn consume_with_cli(&self, topic: &str) -> Vec<Rec> {
        let file = self.file();
        let text = self.pelton(&["consume", path(&file), topic, "--format", "jsonl"]);
        let mut records = Rec::all_from_json(&text);
        records.sort_by_key(|r| (r.partition, r.offset));
        records
    }

    fn produce_local(&self, topic: &str, records: &[Rec]) {
        let file = self.dir().join(format!("input-{}.jsonl", self.runs.fetch_add(1, Ordering::Relaxed)));
        let lines: Vec<String> = records.iter().map(|r| r.to_json(false)).collect();
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        let app = self.file();
        self.pelton(&["produce", path(&app), topic, "--input", path(&file), "--format", "jsonl"]);
    }

    /// Runs a verb that must succeed; gives its output.
    fn pelton(&self, args: &[&str]) -> String {
        let output = Command::new(crate::host::binary()).args(args).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pelton {}: {}: {said}", args.join(" "), output.status);
        String::from_utf8(output.stdout).expect("JSON lines are UTF-8")
    }
}

impl Draft {
    /// An application from the text of a fragment, which is an application file without `[log]`.
    pub fn merge(mut self, fragment: &str) -> Draft {
        let table: Table = fragment.parse().unwrap_or_else(|e| panic!("{}: {e}", self.id));
        for (key, value) in table {
            self.table.insert(key, value);
        }
        self
    }

    pub fn topic(self, short: &str, partitions: i32) -> Draft {
        self.at(&["topics", short, "partitions"], partitions)
    }

    /// A topic's setting by Kafka's name.
    pub fn topic_setting(self, short: &str, key: &str, value: &str) -> Draft {
        self.at(&["topics", short, "properties", key], value)
    }

    pub fn processor(mut self, processor: Processor) -> Draft {
        let list = self.table.entry("processor").or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut().expect("processors are a list").push(Value::Table(processor.0));
        self
    }

    /// A key of `[application]`.
    pub fn set(self, key: &str, value: impl Into<Value>) -> Draft {
        self.at(&["application", key], value)
    }

    /// A key of `[log]` that only Kafka has.
    pub fn kafka_log(self, key: &str, value: impl Into<Value>) -> Draft {
        self.at(&["log", key], value)
    }

    /// A librdkafka property; nothing on the embedded log.
    pub fn property(self, key: &str, value: &str) -> Draft {
        self.at(&["kafka", "properties", key], value)
    }

    /// Other brokers than the shared one's address.
    pub fn brokers(mut self, address: &str) -> Draft {
        self.brokers = Some(address.to_owned());
        self
    }

    /// Leaves the topics to the test, or to fate.
    pub fn without_topics(mut self) -> Draft {
        self.create = false;
        self
    }

    /// Any key, by its path.
    pub fn at(mut self, keys: &[&str], value: impl Into<Value>) -> Draft {
        let (last, parents) = keys.split_last().expect("a path");
        let mut table = &mut self.table;
        for key in parents {
            let entry = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            table = entry.as_table_mut().expect("a table");
        }
        table.insert((*last).to_owned(), value.into());
        self
    }

    /// Writes the file, and creates the topics where that is not the host's business.
    pub fn ready(self) -> App {
        let dir = tempfile::Builder::new().prefix(&format!("{}-", self.id)).tempdir().expect("a folder");
        std::fs::write(dir.path().join("app.toml"), self.text()).unwrap();
        if self.log == Log::Kafka && self.create {
            self.create_topics();
        }
        App { log: self.log, id: self.id, dir, runs: AtomicU32::new(0) }
    }

    /// The application file.
    pub fn text(&self) -> String {
        let mut table = self.table.clone();
        rename_topics(&mut table, &self.id);
        if let Some(Value::Array(processors)) = table.get_mut("processor") {
            processors.iter_mut().filter_map(Value::as_table_mut).for_each(|p| resolve(p, &self.id));
        }
        let application = table.entry("application").or_insert_with(|| Value::Table(Table::new()));
        application.as_table_mut().unwrap().entry("id").or_insert_with(|| self.id.clone().into());
        let log = table.entry("log").or_insert_with(|| Value::Table(Table::new()));
        self.fill_log(log.as_table_mut().expect("[log] is a table"));
        let by_host = table["log"].get("create_topics").and_then(Value::as_bool).unwrap_or(false);
        if !by_host {
            table.remove("topics");
        }
        if self.log == Log::Embedded {
            table.remove("kafka");
        }
        toml::to_string(&table).expect("TOML")
    }

    fn fill_log(&self, log: &mut Table) {
        let mut default = |key: &str, value: Value| {
            log.entry(key).or_insert(value);
        };
        match self.log {
            Log::Kafka => {
                let address = self.brokers.clone().unwrap_or_else(|| broker().address.clone());
                default("kind", "kafka".into());
                default("brokers", address.into());
            }
            Log::Embedded => {
                default("kind", "local".into());
                default("dir", "log".into());
                default("create_topics", true.into());
            }
        }
    }

    fn create_topics(&self) {
        let Some(Value::Table(topics)) = self.table.get("topics") else { return };
        for (short, topic) in topics {
            let partitions = topic["partitions"].as_integer().expect("a partition count");
            let settings = topic.get("properties").and_then(Value::as_table).cloned().unwrap_or_default();
            let settings: Vec<_> = settings.iter().map(|(k, v)| (k.as_str(), v.as_str().expect("text"))).collect();
            kafka::create_topic(&topic_name(&self.id, short), partitions as i32, &settings);
        }
    }
}

impl Processor {
    /// Named as its plugin.
    pub fn new(plugin: &str) -> Processor {
        let mut table = Table::new();
        table.insert("name".into(), plugin.into());
        table.insert("plugin".into(), format!("{plugin}.wasm").into());
        Processor(table)
    }

    pub fn named(self, name: &str) -> Processor {
        self.put("name", name)
    }

    pub fn input(self, name: &str, topic: &str) -> Processor {
        self.nested("inputs", name, topic)
    }

    pub fn output(self, name: &str, topic: &str) -> Processor {
        self.nested("outputs", name, topic)
    }

    pub fn dead_letters(self, topic: &str) -> Processor {
        self.put("dead_letter_topic", topic)
    }

    pub fn limit(self, name: &str, value: impl Into<Value>) -> Processor {
        self.nested("limits", name, value)
    }

    /// What is done about a failure of this code.
    pub fn retry_code(mut self, code: &str, action: &str) -> Processor {
        let retry =
            self.0.entry("retry").or_insert_with(|| Value::Table(Table::new())).as_table_mut().expect("a table");
        let codes = retry.entry("codes").or_insert_with(|| Value::Table(Table::new()));
        codes.as_table_mut().expect("a table").insert(code.to_owned(), action.into());
        self
    }

    /// A key of `[processor.SECTION]`.
    pub fn section(self, section: &str, key: &str, value: impl Into<Value>) -> Processor {
        self.nested(section, key, value)
    }

    pub fn put(mut self, key: &str, value: impl Into<Value>) -> Processor {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    fn nested(mut self, table: &str, key: &str, value: impl Into<Value>) -> Processor {
        let entry = self.0.entry(table).or_insert_with(|| Value::Table(Table::new()));
        entry.as_table_mut().expect("a table").insert(key.to_owned(), value.into());
        self
    }
}

/// A built plugin: the examples are in `bin/plugins`, the tests' own guests in `bin/test/plugins`.
pub fn plugin(file: &str) -> PathBuf {
    let own = root().join("bin/test/plugins").join(file);
    let example = root().join("bin/plugins").join(file);
    if own.exists() && !example.exists() { own } else { example }
}

/// A bounded run of `pelton` with these arguments: how it ended and all it said.
pub fn cli(args: &[&str], limit: Duration) -> (Exit, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut host = args.iter().fold(Launch::new(args.join(" "), dir.path().join("log")), |l, a| l.arg(a)).start();
    let exit = host.wait(limit.max(secs(1)));
    (exit, host.log())
}

fn topic_name(id: &str, short: &str) -> String {
    format!("{id}.{short}")
}

/// Another name for every run of every test.
fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() % 100_000_000;
    format!("{name}-{since}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

fn rename_topics(table: &mut Table, id: &str) {
    if let Some(Value::Table(topics)) = table.get_mut("topics") {
        *topics = std::mem::take(topics).into_iter().map(|(short, t)| (topic_name(id, &short), t)).collect();
    }
}

/// Gives a processor's topics their full names and its plugin its path.
fn resolve(processor: &mut Table, id: &str) {
    let full = |value: &mut Value| match value {
        Value::String(short) => *short = topic_name(id, short),
        Value::Table(input) => {
            if let Some(Value::String(short)) = input.get_mut("topic") {
                *short = topic_name(id, short);
            }
        }
        _ => {}
    };
    for table in ["inputs", "outputs"] {
        let topics = processor.get_mut(table).and_then(Value::as_table_mut);
        topics.into_iter().flat_map(|t| t.iter_mut()).for_each(|(_, topic)| full(topic));
    }
    processor.get_mut("dead_letter_topic").into_iter().for_each(full);
    if let Some(Value::String(file)) = processor.get_mut("plugin") {
        *file = plugin(file).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_writes_full_names() {
        let draft =
            App::counting(Log::Embedded, "t", 4).set("workers", 2).topic_setting("in", "cleanup.policy", "compact");
        let text = draft.text();
        let table: Table = text.parse().unwrap();
        let id = table["application"]["id"].as_str().unwrap();
        assert!(id.starts_with("t-"));
        assert_eq!(table["application"]["workers"].as_integer(), Some(2));
        let processor = &table["processor"][0];
        assert_eq!(processor["inputs"]["in"].as_str(), Some(format!("{id}.in").as_str()));
        assert_eq!(processor["dead_letter_topic"].as_str(), Some(format!("{id}.dead").as_str()));
        assert!(processor["plugin"].as_str().unwrap().ends_with("bin/plugins/count.wasm"));
        assert_eq!(table["topics"][format!("{id}.in")]["properties"]["cleanup.policy"].as_str(), Some("compact"));
        assert_eq!(table["log"]["create_topics"].as_bool(), Some(true));
    }
}
