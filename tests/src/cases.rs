//! End-to-end cases that are folders: `app.toml` (an application file without `[log]`), `input.jsonl` and `expected.jsonl`.
//!
//! A line of either is a record with `topic`, the short name. A case is run on both logs; what both have in all topics that are no
//! input must equal each other and `expected.jsonl` to the byte. `PELTON_BLESS=1` writes what was found on the embedded log.

use crate::app::{App, Log};
use crate::broker::manifest_dir;
use crate::letter::settled;
use crate::record::Rec;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A folder with a case.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    dir: PathBuf,
}

/// Every folder under `tests/cases`, by name.
pub fn all() -> Vec<Case> {
    let dir = manifest_dir().join("cases");
    let folders = std::fs::read_dir(&dir).expect("tests/cases").flatten().map(|e| e.path()).filter(|p| p.is_dir());
    let mut cases: Vec<Case> = folders.map(|dir| Case { name: file_name(&dir), dir }).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    /// Runs on both logs and judges.
    pub fn check(&self) {
        let local = self.run(Log::Embedded);
        if std::env::var_os("PELTON_BLESS").is_some() {
            std::fs::write(self.dir.join("expected.jsonl"), &local).unwrap();
        }
        let expected = self.text("expected.jsonl");
        equal(&format!("case {}, embedded log", self.name), &expected, &local);
        equal(&format!("case {}, Kafka", self.name), &expected, &self.run(Log::Kafka));
    }

    /// The outputs of one run as lines.
    pub fn run(&self, log: Log) -> String {
        let app = App::draft(log, &format!("case-{}", self.name)).merge(&self.text("app.toml")).ready();
        for (topic, records) in self.input() {
            app.produce(&topic, &records);
        }
        app.finish(1);
        self.output_topics().iter().map(|topic| lines(&app, topic)).collect()
    }

    fn input(&self) -> BTreeMap<String, Vec<Rec>> {
        let mut input: BTreeMap<String, Vec<Rec>> = BTreeMap::new();
        for line in self.text("input.jsonl").lines().filter(|l| !l.trim().is_empty()) {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("case {}: {e}: {line}", self.name));
            let topic = value["topic"].as_str().unwrap_or("in").to_owned();
            input.entry(topic).or_default().push(Rec::from_json(line));
        }
        input
    }

    /// All topics of the application that get no input.
    fn output_topics(&self) -> BTreeSet<String> {
        let table: toml::Table = self.text("app.toml").parse().expect("TOML");
        let inputs = self.input();
        let topics = table["topics"].as_table().expect("[topics]").keys().cloned();
        topics.filter(|t| !inputs.contains_key(t)).collect()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.dir.join(file)).unwrap_or_else(|e| panic!("case {}: {file}: {e}", self.name))
    }
}

/// The topic's records as lines: offsets left out, full names of topics made short again, headers that differ between runs silenced.
fn lines(app: &App, topic: &str) -> String {
    let prefix = format!("{}.", app.id);
    let line = |record: Rec| {
        let record = settled(record).to_json(false).replace(&prefix, "");
        format!("{{\"topic\":\"{topic}\",{}\n", &record[1..])
    };
    app.read(topic).into_iter().map(line).collect()
}

fn equal(what: &str, expected: &str, found: &str) {
    let differs = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_owned();
    assert!(expected == found, "{what}: line {}\n expected {}\n found    {}", at + 1, line(expected), line(found));
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a folder's name").to_string_lossy().into_owned()
}
