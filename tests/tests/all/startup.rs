//! Mistakes that are told at start: one clear message, the documented exit code, nothing changed.

use pelton_tests::app::{Draft, cli, plugin};
use pelton_tests::host::{Exit, Launch};
use pelton_tests::load::one_each;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, kafka};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Configuration wrong, or the start refused (docs/exit-codes.md).
const REFUSED: Exit = Exit::Code(3);

/// What is wrong, and what the message must hold.
struct Mistake {
    what: &'static str,
    draft: Draft,
    says: Vec<String>,
}

#[test]
fn b71_mistakes_in_the_file_are_refused_with_the_remedy() {
    let base = |log| App::counting(log, "mistake", 2);
    let mistakes = vec![
        Mistake::new(
            "unknown key",
            base(Log::Embedded).set("comit_interval", "1s"),
            &["comit_interval", "commit_interval"],
        ),
        Mistake::new(
            "hyphen",
            base(Log::Embedded).set("commit-interval", "1s"),
            &["commit-interval", "commit_interval"],
        ),
        Mistake::new("wrong type", base(Log::Embedded).set("commit_interval", 10), &["commit_interval"]),
        Mistake::new(
            "wrong choice",
            base(Log::Embedded).set("delivery", "exactly_once"),
            &["delivery", "exactly-once"],
        ),
        Mistake::new(
            "unknown section",
            base(Log::Embedded).at(&["aplication", "workers"], 2),
            &["aplication", "application"],
        ),
        Mistake::new(
            "an action that is none",
            base(Log::Embedded)
                .processor(Processor::new("echo").input("in", "in").retry_code("card-service-down", "drop")),
            &["retry.codes.card-service-down", "\"retry\" or \"dead-letter\" or \"stop\""],
        ),
        Mistake::new(
            "unknown property",
            base(Log::Kafka).without_topics().property("max.pol.interval.ms", "1000"),
            &["max.pol.interval.ms", "max.poll.interval.ms"],
        ),
        Mistake::new(
            "a property that breaks a promise",
            base(Log::Kafka).without_topics().property("isolation.level", "read_uncommitted"),
            &["isolation.level"],
        ),
    ];
    mistakes.into_iter().for_each(Mistake::check);
}

#[test]
fn plugins_that_do_not_fit_are_refused() {
    let files = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = files.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let missing = files.path().join("missing.wasm").to_str().unwrap().to_owned();
    let text = put("text.wasm", b"this is no component");
    let core = put("core.wasm", b"\0asm\x01\0\0\0");
    let empty = put("empty.wasm", b"\0asm\x0d\0\x01\0");
    let other = put("other.wasm", &other_interface());
    let with = |file: &str| {
        let processor = Processor::new("count").put("plugin", file).input("in", "in").output("out", "out");
        App::draft(Log::Embedded, "plugin").topic("in", 1).topic("out", 1).processor(processor)
    };
    let mistakes = [
        Mistake::new("missing file", with(&missing), &["missing.wasm"]),
        Mistake::new("no wasm", with(&text), &["text.wasm"]),
        Mistake::new("a core module", with(&core), &["core.wasm", "module"]),
        Mistake::new("another world", with(&empty), &["empty.wasm"]),
        Mistake::new("another version", with(&other), &["other.wasm", "0.9.9"]),
    ];
    mistakes.into_iter().for_each(Mistake::check);
}

#[test]
fn names_that_the_plugin_does_not_know_are_refused() {
    let with = |input: &str, output: &str| {
        let processor = Processor::new("count").input(input, "in").output(output, "out");
        App::draft(Log::Embedded, "names").topic("in", 1).topic("out", 1).processor(processor)
    };
    Mistake::new("input", with("imput", "out"), &["inputs.imput", "it has: in"]).check();
    Mistake::new("output", with("in", "outt"), &["outputs.outt", "it has: out"]).check();
}

#[test]
fn ordering_by_key_is_refused_for_a_partition_scoped_store() {
    let processor = Processor::new("scan").put("ordering", "key").input("in", "in").output("out", "out");
    let draft = App::draft(Log::Embedded, "ordering").topic("in", 1).topic("out", 1).processor(processor);
    Mistake::new("scope", draft, &["ordering = \"key\"", "store table", "ordering = \"partition\""]).check();
}

#[test]
fn a_missing_topic_is_named_and_not_created() {
    let draft = App::counting(Log::Kafka, "no-topic", 2).without_topics();
    let before = kafka::topics().len();
    let app = draft.ready();
    let mut host = app.host(1).start();
    assert_eq!(host.wait(secs(30)), REFUSED, "{}", host.log());
    assert!(host.log().contains(&app.topic("in")), "{}", host.log());
    let mine = kafka::topics().into_iter().filter(|t| t.starts_with(&app.id)).count();
    assert_eq!(mine, 0, "nothing was created ({before} topics before)");
}

#[test]
fn topics_are_created_where_the_file_says_so() {
    let app = App::counting(Log::Kafka, "create", 3).at(&["log", "create_topics"], true).without_topics().ready();
    app.finish(1);
    assert_eq!(kafka::partition_count(&app.topic("in")), 3);
    assert_eq!(kafka::partition_count(&app.changelog("count", "counts")), 3);
}

#[test]
fn a_changelog_that_cannot_rebuild_is_refused() {
    for (what, partitions, policy, says) in
        [("policy", 2, "delete", "compact"), ("partitions", 3, "compact", "partition")]
    {
        let app = App::counting(Log::Kafka, &format!("changelog-{what}"), 2).ready();
        let changelog = app.changelog("count", "counts");
        kafka::create_topic(&changelog, partitions, &[("cleanup.policy", policy)]);
        app.produce("in", &one_each(4));
        let mut host = app.host(1).start();
        assert_eq!(host.wait(secs(30)), REFUSED, "{what}: {}", host.log());
        assert!(host.log().contains(&changelog) && host.log().contains(says), "{what}: {}", host.log());
        assert!(app.read("out").is_empty());
    }
}

#[test]
fn inputs_with_different_partition_counts_are_refused() {
    let processor = Processor::new("merge").input("left", "left").input("right", "right").output("out", "out");
    let draft =
        App::draft(Log::Kafka, "counts").topic("left", 2).topic("right", 3).topic("out", 2).processor(processor);
    let app = draft.ready();
    let mut host = app.host(1).start();
    assert_eq!(host.wait(secs(30)), REFUSED, "{}", host.log());
    assert!(host.log().contains(&app.topic("left")) && host.log().contains(&app.topic("right")), "{}", host.log());
}

#[test]
fn a_broker_that_is_away_is_said_and_waited_for() {
    let app = App::counting(Log::Kafka, "away", 2).brokers("127.0.0.1:1").without_topics().ready();
    let mut host = app.host(1).start();
    host.says("127.0.0.1:1", secs(10));
    host.says("ready=false", secs(10));
    host.assert_running();
    host.signal("TERM");
    assert!(matches!(host.wait(secs(40)), Exit::Code(_)));
}

#[test]
fn one_process_at_a_time_has_a_state_folder_and_an_embedded_log() {
    let app = App::counting(Log::Embedded, "locked", 2).ready();
    app.produce("in", &one_each(4));
    let mut first = app.host(1).start();
    first.says("ready=true", secs(60));
    for (n, what) in [(1, "the state folder"), (2, "the embedded log")] {
        let mut second = app.host(n).start();
        assert_eq!(second.wait(secs(40)), REFUSED, "{what}: {}", second.log());
        assert!(second.log().contains(&first.pid().to_string()), "{what}: the first is named: {}", second.log());
    }
    first.assert_running();
    first.kill();
    app.finish(1); // what a dead process leaves does not block
}

/// Root may write anywhere, so the folder's place is taken by a file instead of being made read-only where the tests run as root.
#[test]
fn a_state_folder_that_cannot_be_written_is_refused() {
    let app = App::counting(Log::Embedded, "unwritable", 2).ready();
    fs::create_dir_all(app.state_dir(1)).unwrap();
    fs::set_permissions(app.state_dir(1), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(app.state_dir(1).join("probe"), "").is_ok() {
        fs::remove_dir_all(app.state_dir(1)).unwrap();
        fs::write(app.state_dir(1), "in the way").unwrap();
    }
    let mut host = app.host(1).start();
    assert_eq!(host.wait(secs(30)), REFUSED, "{}", host.log());
    assert!(host.log().contains("state-1"), "{}", host.log());
}

/// Two applications in one folder share its default state folder, and one would take the other's stores for its own.
#[test]
fn a_state_folder_of_another_application_is_refused() {
    let (app, other) =
        (App::counting(Log::Embedded, "mine", 1).ready(), App::counting(Log::Embedded, "other", 1).ready());
    app.produce("in", &one_each(4));
    app.finish(1);
    let mut host = Launch::new("other", other.dir().join("log.txt"))
        .arg("run")
        .arg(other.file())
        .arg("--state-dir")
        .arg(app.state_dir(1))
        .start();
    assert_eq!(host.wait(secs(30)), REFUSED, "{}", host.log());
    for says in [&app.id, &other.id, "application.state_dir"] {
        assert!(host.log().contains(says), "{says}: {}", host.log());
    }
    app.finish(1);
}

#[test]
fn a_file_where_the_state_folder_should_be_is_named_with_the_setting() {
    for (dir, file) in [("taken", "taken"), ("taken/state", "taken")] {
        let app = App::counting(Log::Embedded, "taken", 1).set("state_dir", dir).ready();
        fs::write(app.dir().join(file), "in the way").unwrap();
        let path = app.file();
        for verb in ["run", "check"] {
            let (exit, log) = cli(&[verb, path.to_str().unwrap()], secs(30));
            assert_eq!(exit, REFUSED, "{log}");
            assert!(log.contains("/taken is a file, not a folder") && log.contains("application.state_dir"), "{log}");
        }
    }
}

#[test]
fn a_filter_of_log_lines_that_is_none_is_refused() {
    let app = App::counting(Log::Embedded, "filter", 1).ready();
    let mut host = app.host(1).env("PELTON_LOG", "debgu").start();
    assert_eq!(host.wait(secs(30)), Exit::Code(2), "{}", host.log());
    assert!(host.log().contains("PELTON_LOG=`debgu`") && host.log().contains("TARGET=LEVEL"), "{}", host.log());
}

/// Retention has deleted what was not yet read: going on would skip records in silence.
#[test]
fn a_committed_offset_that_is_gone_is_told() {
    let app = App::counting(Log::Kafka, "gone", 1).ready();
    app.produce("in", &one_each(10));
    app.finish(1);
    app.produce("in", &one_each(10));
    kafka::delete_records(&app.topic("in"), 0, 15);
    let mut host = app.host(1).start();
    let what = format!("{} is named", app.topic("in"));
    wait::until(&what, secs(60), || host.log().contains(&app.topic("in")).then_some(()));
    assert!(matches!(host.wait(secs(60)), Exit::Code(1 | 3)), "{}", host.log());
    assert_eq!(app.read("out").len(), 10, "nothing is skipped in silence");
}

impl Mistake {
    fn new(what: &'static str, draft: Draft, says: &[&str]) -> Mistake {
        Mistake { what, draft, says: says.iter().map(|s| (*s).to_owned()).collect() }
    }

    /// `run` and `check` say the same, and nothing is made on disk.
    fn check(self) {
        let app = self.draft.ready();
        let before = listing(app.dir());
        let file = app.file();
        for verb in ["check", "run"] {
            let (exit, log) = cli(&[verb, file.to_str().unwrap()], secs(30));
            assert_eq!(exit, REFUSED, "{}: {verb}: {log}", self.what);
            self.says.iter().for_each(|s| assert!(log.contains(s), "{}: {verb} does not say {s:?}: {log}", self.what));
            assert!(!log.contains("panicked"), "{}: {log}", self.what);
            assert_eq!(before, listing(app.dir()), "{}: {verb} changed something", self.what);
        }
    }
}

/// A built plugin that asks for an interface version that does not exist: the version's text has the same length.
fn other_interface() -> Vec<u8> {
    let mut bytes = fs::read(plugin("echo.wasm")).expect("bin/plugins/echo.wasm: `make build` builds it");
    let (from, to) = (b"@0.1.0", b"@0.9.9");
    let places: Vec<usize> = (0..bytes.len() - from.len()).filter(|&i| bytes[i..].starts_with(from)).collect();
    assert!(!places.is_empty(), "the component names its interface with version 0.1.0");
    places.into_iter().for_each(|i| bytes[i..i + to.len()].copy_from_slice(to));
    bytes
}

fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
