//! What plugins do and how it is told: every way to misbehave, the stacks of traps and panics, and randomness that a replay repeats.

use super::BOTH;
use pelton_tests::app::cli;
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, Rec, broker, host::Exit, oracle};
use std::collections::BTreeSet;
use std::path::Path;

/// What a value asks for, and the values that come out or the code of its dead letter.
const VERBS: &[(&str, Result<&[&str], &str>)] = &[
    ("ok 1", Ok(&["ok 1"])),
    ("reject 2", Err("asked-to-reject")),
    ("panic 3", Err("panic")),
    ("trap 4", Err("trap")),
    ("loop 5", Err("deadline")),
    ("recurse 6", Err("limit-stack")),
    ("alloc 3 7", Ok(&["alloc 3 7"])),
    ("alloc 999 8", Err("limit-memory")),
    ("records 3 9", Ok(&["1", "2", "3"])),
    ("records 1001 10", Err("limit-emits")),
    ("bytes 5 11", Ok(&["xxxxx"])),
    ("bytes 9000000 12", Err("limit-output")),
    ("lie lengths 13", Err("malformed-result")),
    ("lie counts 14", Err("malformed-result")),
    ("lie indices 15", Err("malformed-result")),
    ("log 1000 16", Ok(&["log 1000 16"])),
    ("busy 1 17", Ok(&["busy 1 17"])),
    ("nonsense 18", Ok(&["nonsense 18"])),
];

fn bad(log: Log, name: &str, plugin: Option<&Path>) -> App {
    let mut processor = Processor::new("bad")
        .input("in", "in")
        .output("out", "out")
        .dead_letters("dead")
        .limit("record_deadline", "300ms")
        .limit("emits", 1000)
        .limit("output_bytes", "8MiB");
    if let Some(path) = plugin {
        processor = processor.put("plugin", path.to_str().unwrap());
    }
    App::draft(log, name).topic("in", 1).topic("out", 1).topic("dead", 1).processor(processor).ready()
}

/// The dead letters of records with these values, in order.
fn dead(app: &App, values: &[&str]) -> Vec<Rec> {
    let input: Vec<Rec> = values.iter().map(|value| Rec::new("k", value)).collect();
    app.produce("in", &input);
    app.finish(1);
    app.read("dead")
}

fn values(records: &[Rec]) -> Vec<String> {
    records.iter().map(Rec::value_text).collect()
}

#[test]
fn every_way_to_misbehave_ends_as_its_page_says() {
    for log in BOTH {
        let app = bad(log, "verbs", None);
        let dead = dead(&app, &VERBS.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        let told: Vec<(String, String)> = dead.iter().map(|r| (r.value_text(), oracle::code(r))).collect();
        let failures = VERBS.iter().filter_map(|(value, end)| Some(((*value).to_owned(), end.err()?.to_owned())));
        assert_eq!(told, failures.collect::<Vec<_>>(), "{log:?}");
        let outputs: Vec<&str> = VERBS.iter().filter_map(|(_, end)| end.ok()).flatten().copied().collect();
        assert_eq!(values(&app.read("out")), outputs, "{log:?}");
    }
}

#[test]
fn a_trap_names_its_functions_and_a_panic_says_where() {
    let app = bad(Log::Embedded, "stacks", None);
    let dead = dead(&app, &["trap", "panic", "recurse"]);
    let stack = |record: &Rec| record.text("pelton-stack").unwrap_or_default();
    assert!(stack(&dead[0]).starts_with("bad.wasm!bad::deeds::trap\n"), "{}", stack(&dead[0]));
    assert!(stack(&dead[0]).ends_with("!pelton:plugin/transform@0.1.0#apply"), "{}", stack(&dead[0]));
    let message = dead[1].text("pelton-message").unwrap();
    assert!(message.contains("src/deeds.rs:") && message.ends_with("record asks for a panic"), "{message}");
    assert!(stack(&dead[1]).contains("panic"), "{}", stack(&dead[1]));
    assert!(stack(&dead[2]).starts_with("bad.wasm!bad::deeds::recurse\n"), "{}", stack(&dead[2]));
}

#[test]
fn with_line_tables_a_trap_says_where_too() {
    let folder = tempfile::tempdir().unwrap();
    let crate_dir = broker::root().join("plugins/bad");
    let (dir, out) = (crate_dir.to_str().unwrap(), folder.path().to_str().unwrap());
    // The standard library is built for these settings the first time.
    let (exit, said) = cli(&["build", dir, "--lines", "--out", out], secs(600));
    assert_eq!(exit, Exit::Code(0), "{said}");
    let plugin = folder.path().join("bad.wasm");
    let plain = std::fs::metadata(pelton_tests::app::plugin("bad.wasm")).unwrap().len();
    assert!(std::fs::metadata(&plugin).unwrap().len() > 2 * plain, "line tables are large");
    let app = bad(Log::Embedded, "lines", Some(&plugin));
    let dead = dead(&app, &["trap"]);
    let stack = dead[0].text("pelton-stack").unwrap();
    // The functions that called it were inlined into the export; line tables know them all the same.
    for (function, file) in
        [("trap (", "/src/deeds.rs:"), ("perform (", "/src/deeds.rs:"), ("process (", "/src/lib.rs:")]
    {
        assert!(stack.lines().any(|line| line.contains(function) && line.contains(file)), "{function} in {stack}");
    }
}

#[test]
fn crates_that_ask_for_randomness_get_what_a_replay_repeats() {
    let app = App::draft(Log::Embedded, "random")
        .topic("in", 1)
        .topic("out", 1)
        .processor(Processor::new("random").input("in", "in").output("out", "out"))
        .ready();
    let input: Vec<Rec> = (0..20).map(|i| Rec::new("k", format!("{i}"))).collect();
    let run = |records: &[Rec]| {
        app.produce("in", records);
        app.finish(1);
        values(&app.read("out"))
    };
    let all = run(&input);
    let words: BTreeSet<&str> = all.iter().flat_map(|line| line.split(' ')).collect();
    assert_eq!(words.len(), 60, "{all:?}");
    let is_v4 = |line: &String| line.split(' ').nth(2).is_some_and(|uuid| uuid.as_bytes()[14] == b'4');
    assert!(all.iter().all(is_v4), "{all:?}");
    // The same records again, as if for the first time, in two batches at least.
    app.wipe(1);
    std::fs::remove_dir_all(app.dir().join("log")).unwrap();
    run(&input[..7]);
    assert_eq!(run(&input[7..]), all);
}
