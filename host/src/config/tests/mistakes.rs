//! Mistakes and what is said of them, in full.

use super::{MINIMAL, load, mistakes};
use crate::model::{Fault, Verdict};

#[track_caller]
fn check(from: &str, to: &str, expected: &str) {
    assert!(MINIMAL.contains(from), "{from}");
    assert_eq!(mistakes(&MINIMAL.replacen(from, to, 1)).trim_end(), expected);
}

#[test]
fn unknown_keys_are_refused_with_the_nearest() {
    check("kind =", "kinds = 1\nkind =", "5:1: log.kinds: is not a known setting; did you mean `log.kind`?");
    check(
        "id =",
        "memory = \"1MiB\"\nid =",
        "3:1: application.memory: is not a known setting; it belongs elsewhere: `processor.limits.memory`, under [processor.limits]",
    );
    check(
        "[log]",
        "[limits]\nmemory = \"1MiB\"\n[log]",
        "4:2: limits: is not a known setting; it belongs elsewhere: `processor.limits`, under [[processor]]",
    );
    check(
        "kind =",
        "max.poll.interval.ms = 5\nkind =",
        "5:1: log.max: is not a known setting; it belongs elsewhere: `kafka.properties`, as \"max.poll.interval.ms\" under [kafka.properties]",
    );
    check(
        "[log]",
        "[zebra]\n[log]",
        "4:2: zebra: is not a known setting; known here: application, admin, components, log, kafka, topics, processor",
    );
}

#[test]
fn wrong_types_are_told_the_right_form() {
    check(
        "\"app\"",
        "5",
        "3:1: application.id: must be text in double quotes, not a whole number; write it as id = \"5\"",
    );
    check(
        "[log]",
        "workers = \"5\"\n[log]",
        "4:1: application.workers: must be a whole number, without quotes, not text; write it as workers = 5",
    );
    check(
        "[log]",
        "commit_interval = 10\n[log]",
        "4:1: application.commit_interval: must be a duration with its unit (ms, s, m or h) in double quotes, not a whole number; write it as commit_interval = \"10s\" (or \"10ms\")",
    );
    check(
        "[log]",
        "cache = \"64mib\"\n[log]",
        "4:1: application.cache: must be a size with its unit (KiB, MiB, GiB, or KB, MB, GB) in double quotes; did you mean \"64MiB\"?",
    );
    check(
        "\"local\"",
        "\"lokal\"",
        "5:1: log.kind: is none of the known words; did you mean \"local\"? it is \"kafka\" or \"local\"",
    );
    check(
        "[[processor]]",
        "[processor]",
        "7:2: processor: must be a list of sections; write [[processor]], with two brackets",
    );
}

#[test]
fn what_is_missing_is_named() {
    check("id = \"app\"\n", "", "2:1: application.id: is missing; add id = \"orders\" under [application]");
    check(
        "inputs.in = \"a\"\n",
        "",
        "7:1: processor.inputs: is missing; add inputs.orders = \"orders\" (the plugin's input name = the topic) under [[processor]]",
    );
    check(
        "dir = \"log\"\n",
        "",
        "4:1: log.dir: is missing: it is needed with kind = \"local\"; add dir = \"log\" under [log]",
    );
    let all = mistakes("");
    for key in ["application.id", "log.kind", "processor.name", "processor.plugin"] {
        assert!(all.contains(&format!("1:1: {key}: is missing")), "{key} in {all}");
    }
}

#[test]
fn settings_that_contradict_each_other() {
    let second = "[[processor]]\nname = \"p\"\nplugin = \"q.wasm\"\ninputs.in = \"b\"\noutputs.out = \"b\"\ndead_letter_topic = \"app-p-x-changelog\"\n[[processor]]";
    check(
        "[[processor]]",
        second,
        "11:9: processor.outputs.out: the processor also reads the topic `b`, so it would feed itself for ever; write to another topic
12:1: processor.dead_letter_topic: `app-p-x-changelog` is the name of a changelog of this application; write to another topic
14:1: processor.name: two processors are named `p`; give one of them another name: it names the consumer group and the changelogs",
    );
    check(
        "dir =",
        "brokers = \"b:1\"\ndir =",
        "6:1: log.brokers: has no meaning with kind = \"local\"; remove it, or change log.kind",
    );
    check(
        "[[processor]]",
        "[topics.aa]\npartitions = 2\n[[processor]]",
        "7:9: topics.aa: is a topic that no processor reads or writes; did you mean [topics.a]?",
    );
    check(
        "inputs.in = \"a\"",
        "inputs.in = \"a\"\ninputs.two = \"a\"",
        "11:8: processor.inputs.two: another input of the processor reads the topic `a` already; name each topic once, or use two processors",
    );
    let kafka = "kind = \"kafka\"\nbrokers = \"b:1\"\ntransaction_timeout = \"3s\"\n[application]\ncommit_interval = \"1001ms\"\nid = \"app\"";
    let text = MINIMAL.replace("[application]\nid = \"app\"\n", "").replace("kind = \"local\"\ndir = \"log\"", kafka);
    assert_eq!(
        mistakes(&text).trim_end(),
        "7:1: application.commit_interval: is more than a third of log.transaction_timeout (3s); at most 1s with it; or raise log.transaction_timeout"
    );
}

#[test]
fn what_is_done_about_a_code_is_one_of_three() {
    let with = |line: &str, expected: &str| {
        check("inputs.in = \"a\"", &format!("inputs.in = \"a\"\nretry.codes.{line}"), expected);
    };
    with(
        "down = \"drop\"",
        "11:13: processor.retry.codes.down: is none of the known words; write \"retry\" or \"dead-letter\" or \"stop\"",
    );
    with(
        "down = \"dead_letter\"",
        "11:13: processor.retry.codes.down: is none of the known words; did you mean \"dead-letter\"? it is \"retry\" or \"dead-letter\" or \"stop\"",
    );
    with(
        "down = true",
        "11:13: processor.retry.codes.down: must be text in double quotes, not true or false; write \"retry\" or \"dead-letter\" or \"stop\"",
    );
    with(
        "output-too-large = \"retry\"",
        "11:13: processor.retry.codes.output-too-large: cannot be retried: it would fail in the same way again; write \"dead-letter\" or \"stop\"",
    );
}

#[test]
fn delays_and_names_that_do_not_fit() {
    check(
        "inputs.in = \"a\"",
        "inputs.in = \"a\"\nretry.first_delay = \"11s\"",
        "11:7: processor.retry.first_delay: is more than processor.retry.max_delay (10s); lower it, or raise processor.retry.max_delay",
    );
    // 249 - "app" - "---changelog" leaves 234 for the names of processor and store; a park needs 13 of them
    let named = |length: usize, ordering: &str| {
        let name = format!("\"{}\"\nordering = \"{ordering}\"", "x".repeat(length));
        mistakes(&MINIMAL.replace("\"p\"", &name))
    };
    assert_eq!((named(233, "partition"), named(221, "key")), (String::new(), String::new()));
    assert!(named(222, "key").contains("leaves no room for a store"), "{}", named(222, "key"));
}

#[test]
fn names_that_cannot_be_topics() {
    check(
        "\"a\"",
        "\"a b\"",
        "10:8: processor.inputs.in: holds ' '; names have letters, digits, `.`, `_` and `-`; it becomes the name of a topic, or a part of one",
    );
    let long = format!("\"{}\"", "x".repeat(240));
    check(
        "\"p\"",
        &long,
        "8:1: processor.name: leaves no room for a store in the names of changelogs (at most 249 characters); shorten it, or application.id",
    );
}

#[test]
fn properties_are_checked_against_the_clients() {
    let text = |line: &str| MINIMAL.replace("[[processor]]", &format!("[kafka.properties]\n{line}\n[[processor]]"));
    assert_eq!(
        mistakes(&text("\"max.pol.interval.ms\" = 5")).trim_end(),
        "8:1: kafka.properties.\"max.pol.interval.ms\": librdkafka has no property of this name; did you mean `max.poll.interval.ms`?"
    );
    assert!(
        mistakes(&text("\"isolation.level\" = \"read_uncommitted\"")).contains("\"isolation.level\": may not be set: ")
    );
    let topic =
        MINIMAL.replace("[[processor]]", "[topics.a.properties]\n\"cleanup.polcy\" = \"compact\"\n[[processor]]");
    assert!(mistakes(&topic).contains("did you mean `cleanup.policy`?"), "{}", mistakes(&topic));
}

#[test]
fn all_mistakes_are_told_at_once_in_file_order() {
    let text = "application.id = 5\n[log]\nkimd = \"local\"\n[[processor]]\nname = \"p\"\nname = \"q\"\n";
    let errors = load(text).unwrap_err();
    let found: Vec<_> = errors.mistakes.iter().map(|m| (m.line, m.code)).collect();
    let expected = [
        (1, "wrong-type"),
        (2, "missing-key"),
        (3, "unknown-key"),
        (4, "missing-key"),
        (4, "missing-key"),
        (6, "duplicate-key"),
    ];
    assert_eq!(found, expected);
    assert!(
        errors.to_string().starts_with("/apps/app.toml:1:13: application.id: ") || errors.to_string().contains(":1:")
    );
    let fault = Fault::from(errors);
    assert_eq!((fault.verdict, fault.code), (Verdict::Fatal, "config-invalid"));
}

#[test]
fn duplicates_name_the_first() {
    check(
        "dir =",
        "kind = \"kafka\"\ndir =",
        "6:1: log.kind: is set twice; it stands on line 5 already: remove one of the two",
    );
    check(
        "[[processor]]",
        "[log]\n[[processor]]",
        "7:2: log: is set twice; it stands on line 4 already: remove one of the two",
    );
    check(
        "inputs.in = \"a\"",
        "inputs.in = \"a\"\ninputs.in = \"b\"",
        "11:8: processor.inputs.in: is set twice; it stands on line 10 already: remove one of the two",
    );
}

#[test]
fn broken_toml_is_only_that() {
    let errors = load("[application\nid = \"x\"").unwrap_err();
    assert!(errors.mistakes.iter().all(|m| m.code == "syntax"), "{errors}");
    assert_eq!(errors.mistakes[0].line, 1);
}

#[test]
fn an_unset_variable_is_told_once() {
    check(
        "\"local\"",
        "\"${KAFKA_PASWORD}\"",
        "5:8: log.kind: the environment variable `KAFKA_PASWORD` is not set; did you mean `${KAFKA_PASSWORD}`? set KAFKA_PASWORD otherwise",
    );
}
