//! What goes in comes out.

use super::memory::Memory;
use crate::cli::args::{Cli, Verb};
use crate::cli::{Out, consume, exit, produce, topics};
use crate::config::{Application, Environment, parse};
use clap::Parser;
use std::io::Cursor;
use std::path::Path;

const APPLICATION: &str = r#"
application.id = "app"
[log]
kind = "local"
dir = "log"
create_topics = true
[topics.t]
partitions = 4
[[processor]]
name = "p"
plugin = "p.wasm"
inputs.in = "t"
"#;

fn application() -> Application {
    parse(APPLICATION, Path::new("app.toml"), &Environment::new()).unwrap()
}

/// Runs `pelton produce app.toml t …` and says how many records went in, or the error with its exit code.
fn produce(log: &Memory, arguments: &str, input: &str) -> String {
    let words = format!("pelton produce app.toml t {arguments}");
    let Verb::Produce(args) = Cli::try_parse_from(words.split_whitespace()).unwrap().verb else { panic!() };
    match produce::into(&application(), log, &args, Box::new(Cursor::new(input.to_owned()))) {
        Ok(count) => format!("{count:?}"),
        Err(error) => format!("{}: {error:#}", exit::code(&error)),
    }
}

fn consume(log: &Memory, arguments: &str) -> String {
    let words = format!("pelton consume app.toml t {arguments}");
    let Verb::Consume(args) = Cli::try_parse_from(words.split_whitespace()).unwrap().verb else { panic!() };
    let mut text = vec![];
    match consume::from(&application(), log, &args, &mut Out { to: &mut text, terminal: false }) {
        Ok(()) => String::from_utf8(text).unwrap(),
        Err(error) => format!("{}: {error:#}", exit::code(&error)),
    }
}

const ORDERS: &str =
    "customer_id,date,cds,dollars\n00001,19970101,1,11.77\n00002,19970112,1,12.00\n10000,19970112,5,77.00\n";

#[test]
fn csv_rows_become_json_digit_for_digit() {
    let log = Memory::default();
    assert_eq!(produce(&log, "--format csv --key customer_id --text date", ORDERS), "Some(3)");
    let mut lines: Vec<String> = consume(&log, "--fields key,value").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "00001 {\"customer_id\":\"00001\",\"date\":\"19970101\",\"cds\":1,\"dollars\":11.77}",
            "00002 {\"customer_id\":\"00002\",\"date\":\"19970112\",\"cds\":1,\"dollars\":12.00}",
            "10000 {\"customer_id\":\"10000\",\"date\":\"19970112\",\"cds\":5,\"dollars\":77.00}",
        ]
    );
}

#[test]
fn a_column_is_numbers_or_text_and_never_both() {
    let log = Memory::default();
    let mixed = "zip,n\n,1\n10001,\n02134,3\n";
    let expected =
        "1: line 4: column `zip` began with a number and now holds \"02134\"; use --text zip to keep it as text";
    assert_eq!(produce(&log, "--format csv", mixed), expected);
    assert_eq!(produce(&log, "--format csv --text zip", mixed), "Some(3)");
    let values = consume(&log, "--format raw");
    assert_eq!(values, "{\"zip\":\"\",\"n\":1}\n{\"zip\":\"10001\",\"n\":null}\n{\"zip\":\"02134\",\"n\":3}\n");
    let wrong = "2: the input has no column `zap`; it has zip, n";
    assert_eq!(produce(&log, "--format csv --text zap", mixed), wrong);
    assert_eq!(produce(&log, "--format csv --key zip --value n", "zip,n\nA,7\n"), "Some(1)");
    assert!(consume(&log, "--fields key,value").contains("A 7\n"));
}

#[test]
fn if_empty_is_all_or_nothing_and_idempotent() {
    let log = Memory::default();
    let rows: String = (0..25_000).map(|i| format!("{i}\n")).collect();
    assert_eq!(produce(&log, "--format raw --if-empty", &rows), "Some(25000)");
    assert_eq!(*log.commits.lock().unwrap(), 1);
    assert_eq!(produce(&log, "--format raw --if-empty", &rows), "None");
    assert_eq!(produce(&log, "--format raw", &rows), "Some(25000)");
    assert_eq!(*log.commits.lock().unwrap(), 4);
    assert_eq!(consume(&log, "--count"), "50000\n");
}

#[test]
fn jsonl_goes_round_unchanged() {
    let log = Memory::default();
    let lines = [
        r#"{"partition":0,"offset":0,"timestamp":-1,"key":null,"value":null}"#,
        r#"{"partition":0,"offset":1,"timestamp":5,"key":"","value":""}"#,
        r#"{"partition":1,"offset":0,"timestamp":6,"key":{"hex":"80"},"value":"v","headers":[["n","a"],["n",null],[{"hex":"ff"},{"hex":"c328"}]]}"#,
        r#"{"partition":3,"offset":0,"timestamp":7,"key":"null","value":"a\nb"}"#,
    ];
    let text = lines.map(|l| format!("{l}\n")).concat();
    assert_eq!(produce(&log, "", &text), "Some(4)");
    assert_eq!(consume(&log, "--format jsonl"), text);
    let table = consume(&log, "--format table --partition 1");
    assert!(table.ends_with("0             6  0x80                 v  n=a  n=null  0xff=0xc328\n"), "{table}");
}

#[test]
fn a_transaction_is_done_again_and_nothing_doubles() {
    let log = Memory::default();
    *log.failures.lock().unwrap() = 3;
    assert_eq!(produce(&log, "--format raw", "a\nb\n"), "Some(2)");
    assert_eq!(consume(&log, "--format raw"), "a\nb\n");
    *log.failures.lock().unwrap() = 5;
    let error = produce(&log, "--format raw", "c\n");
    assert_eq!(error, "1: producing, after 0 committed records: committing in memory");
    assert_eq!(consume(&log, "--count"), "2\n");
}

#[test]
fn refused_records_name_their_line() {
    let log = Memory::default();
    let error = produce(&log, "--format raw", "a\nrefuse me\n");
    assert_eq!(
        error,
        "1: line 2: for its value (output-refused)\nthe topic refused records; 0 before them are committed"
    );
    assert_eq!(consume(&log, "--count"), "0\n");
    let error = produce(&log, "", "\n{\"partition\":4}\n");
    assert_eq!(error, "1: line 2: there is no partition 4: the topic has 4");
    assert!(produce(&log, "", "{\"kye\":1}\n").starts_with("1: line 1: not a record: unknown field `kye`"));
    assert!(produce(&log, "--key a", "").starts_with("2: --key, --value, --text and --delimiter go with --format csv"));
}

#[test]
fn the_last_of_each_key() {
    let log = Memory::default();
    let lines = "{\"key\":\"b\",\"value\":\"{\\\"cds\\\":1}\"}\n{\"key\":\"a\",\"value\":\"{\\\"cds\\\":2}\"}
{\"key\":\"b\",\"value\":\"{\\\"cds\\\":3}\"}\n{\"key\":\"c\",\"value\":\"x\"}\n{\"key\":\"d\",\"value\":\"x\"}\n{\"key\":\"d\",\"value\":null}\n{\"value\":\"y\"}";
    assert_eq!(produce(&log, "", lines), "Some(7)");
    assert_eq!(consume(&log, "--latest --fields key,value.cds"), "a 2\nb 3\nc -\n");
    assert_eq!(consume(&log, "--latest --count"), "3\n");
    assert!(consume(&log, "--fields kye").starts_with("2: no field `kye`"));
}

#[test]
fn where_reading_begins_and_ends() {
    let log = Memory::default();
    let lines: String = (0..10).map(|i| format!("{{\"partition\":2,\"value\":\"{i}\"}}\n")).collect();
    produce(&log, "", &lines);
    assert_eq!(consume(&log, "--format raw --from 7"), "7\n8\n9\n");
    assert_eq!(consume(&log, "--format raw --max 2"), "0\n1\n");
    assert_eq!(consume(&log, "--format raw --from end"), "");
    assert_eq!(consume(&log, "--format raw --from 99"), "");
    assert_eq!(consume(&log, "--format raw --partition 1"), "");
    assert_eq!(consume(&log, "--format raw --follow --max 3 --partition 2"), "0\n1\n2\n");
    assert_eq!(consume(&log, "--partition 9"), "2: there is no partition 9: t has 4");
    assert_eq!(
        consume(&Memory::default(), ""),
        "3: the topic `t` does not exist (pelton topics FILE lists those that exist)"
    );
}

#[test]
fn topics_are_listed_with_what_is_internal() {
    let log = Memory::default();
    for name in ["t", "app-p-totals-changelog", "app-p-dead-letters", "app-p-dead-letters-replayed", "t-replayed"] {
        use crate::model::log::Log;
        log.create_topic(&crate::model::log::TopicSpec {
            name: name.to_owned(),
            partitions: 1,
            replication: None,
            properties: vec![],
        })
        .unwrap();
    }
    produce(&log, "--format raw", "a\nb\n");
    let list = |json| {
        let mut text = vec![];
        topics::list(&application(), &log, json, &mut Out { to: &mut text, terminal: false }).unwrap();
        String::from_utf8(text).unwrap()
    };
    assert_eq!(
        list(false).lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>(),
        [
            "topic partitions offsets kind ends",
            "app-p-dead-letters 1 0 internal 0",
            "app-p-dead-letters-replayed 1 0 internal 0",
            "app-p-totals-changelog 1 0 internal 0",
            "t 1 2 2",
            "t-replayed 1 0 0",
        ]
    );
    assert!(list(true).contains(r#""internal":false,"offsets":2,"partitions":1,"topic":"t""#), "{}", list(true));
}
