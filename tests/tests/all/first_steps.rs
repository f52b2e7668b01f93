//! What a new user does first: builds a plugin, checks an application, looks around, produces to topics that are not there yet.

use pelton_tests::app::{Draft, cli, plugin};
use pelton_tests::host::Exit;
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, broker, kafka};
use std::fs;
use std::path::Path;

/// A new topic is not known to every broker and client at once, and the command that made it needs it next.
#[test]
fn the_first_records_of_a_new_topic_go_in_at_once() {
    for round in 0..3 {
        let app = echoing(Log::Kafka, "first").without_topics().ready();
        let input = app.dir().join("lines");
        fs::write(&input, "a\nb\nc\n").unwrap();
        let (file, topic) = (app.file(), app.topic("in"));
        let words = ["produce", text(&file), &topic, "--input", text(&input), "--format", "raw", "--if-empty"];
        for says in ["produced 3 records", "nothing produced"] {
            let (exit, said) = cli(&words, secs(60));
            assert_eq!(exit, Exit::Code(0), "round {round}: {said}");
            assert!(said.contains(says), "round {round}: {said}");
        }
        assert_eq!((kafka::partition_count(&topic), app.read("in").len()), (4, 3));
    }
}

#[test]
fn looking_makes_nothing() {
    let app = echoing(Log::Embedded, "look").ready();
    let (file, topic) = (app.file(), app.topic("in"));
    let before = listing(app.dir());
    for (words, code) in [
        (vec!["check", text(&file)], 0),
        (vec!["topics", text(&file)], 0),
        (vec!["consume", text(&file), &topic], 3),
        (vec!["dlq", "list", text(&file), "echo"], 3),
    ] {
        let (exit, said) = cli(&words, secs(60));
        assert_eq!(exit, Exit::Code(code), "{words:?}: {said}");
        assert_eq!(listing(app.dir()), before, "{words:?} made something");
    }
}

/// What no host loads is not built: the message is that of the host.
#[test]
fn a_plugin_that_declares_a_store_twice_is_not_built() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_crate(dir.path(), "twice", TWICE);
    let (exit, said) = cli(&["build", text(dir.path()), "--out", text(out.path())], secs(600));
    assert_eq!(exit, Exit::Code(3), "{said}");
    assert!(said.contains("plugin twice: ") && said.contains("store `seen` is declared twice"), "{said}");
    assert_eq!(listing(out.path()), Vec::<String>::new(), "nothing is written");
}

const TWICE: &str = r#"//! Declares a store twice.
use pelton_sdk::prelude::*;
struct Twice;
impl Aggregate for Twice {
    fn declare(declaration: &mut StatefulDeclaration) -> Self {
        declaration.input("in");
        let _: (KeyStore<u64>, KeyStore<u64>) = (declaration.key_store("seen"), declaration.key_store("seen"));
        Self
    }
    fn process(&mut self, _: &Record, _: &mut Context) -> Outcome {
        Ok(())
    }
}
pelton_sdk::aggregate!(Twice);
"#;

/// A crate outside the workspace, with the workspace's versions so that nothing is fetched.
fn write_crate(dir: &Path, name: &str, source: &str) {
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\npelton-sdk = {{ path = {:?} }}\n",
        broker::root().join("sdk")
    );
    fs::create_dir(dir.join("src")).unwrap();
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.join("src/lib.rs"), source).unwrap();
    fs::copy(broker::root().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
}

/// The plugin `echo` over topics that the application makes.
fn echoing(log: Log, name: &str) -> Draft {
    let processor = Processor::new("echo").input("in", "in").output("out", "out");
    let echo = plugin("echo.wasm");
    assert!(echo.exists(), "{}: `make build` builds it", echo.display());
    App::draft(log, name).topic("in", 4).topic("out", 4).at(&["log", "create_topics"], true).processor(processor)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

fn listing(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
