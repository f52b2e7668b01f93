//! What `pelton dlq` prints, over an embedded log.

use super::on;
use crate::cli::args::{Cli, Verb};
use crate::cli::{Out, exit};
use crate::runtime::letters::tests::{Dead, Rig};
use clap::Parser;

/// Runs `pelton dlq VERB app.toml p …`: what it printed, or the error with its exit code.
fn dlq(rig: &Rig, arguments: &[&str]) -> String {
    let words = ["pelton", "dlq", arguments[0], "app.toml", "p"].into_iter().chain(arguments[1..].iter().copied());
    let Verb::Dlq(args) = Cli::try_parse_from(words).unwrap().verb else { panic!() };
    let mut text = vec![];
    let result = on(&rig.application, &rig.log, &args, &mut Out { to: &mut text, terminal: false });
    let text = String::from_utf8(text).unwrap();
    match result {
        Ok(()) => text,
        Err(error) => format!("{text}{}: {error:#}", exit::code(&error)),
    }
}

fn refused(arguments: &[&str]) -> bool {
    let words = ["pelton", "dlq", arguments[0], "app.toml", "p"].into_iter().chain(arguments[1..].iter().copied());
    Cli::try_parse_from(words).is_err()
}

/// Five letters, each with its own code, key and time.
fn rig() -> Rig {
    let rig = Rig::new();
    let keys: [Option<&[u8]>; 5] = [Some(b"a"), None, Some(b"\x80\xff"), Some(b""), Some(b"a b")];
    let letters: Vec<Dead<'_>> = (0..5)
        .map(|i| Dead {
            key: keys[i],
            code: ["trap", "panic", "trap", "down", "trap"][i],
            failed_at: 86_400_000 * i as i64,
            replays: i as u32,
            ..Dead::default()
        })
        .collect();
    rig.bury(&letters);
    rig
}

fn places(rig: &Rig, filters: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = ["list"].into_iter().chain(filters.iter().copied()).collect();
    let text = dlq(rig, &arguments);
    text.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn letters_are_listed_one_a_line() {
    let rig = rig();
    let text = dlq(&rig, &["list"]);
    let words: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        words[..4],
        [
            "place given up code calls replays replayed source key message",
            "0:0 1970-01-01T00:00:00.000Z trap 2 0 no in/1:0 a it went wrong",
            "0:1 1970-01-02T00:00:00.000Z panic 2 1 no in/1:1 null it went wrong",
            "0:2 1970-01-03T00:00:00.000Z trap 2 2 no in/1:2 0x80ff it went wrong",
        ]
    );
    assert!(words[4].contains(" \"\" ") && words[5].contains(" \"a b\" "), "{text}");
}

#[test]
fn filters_choose_what_is_listed() {
    let rig = rig();
    assert_eq!(places(&rig, &["--code", "trap"]), ["0:0", "0:2", "0:4"]);
    assert_eq!(places(&rig, &["--code", "panic", "--code", "down"]), ["0:1", "0:3"]);
    assert_eq!(places(&rig, &["--code", "trap", "--limit", "2"]), ["0:0", "0:2"]);
    assert_eq!(places(&rig, &["--since", "1970-01-02", "--until", "1970-01-04"]), ["0:1", "0:2"]);
    assert_eq!(places(&rig, &["--since", "1h"]), [""; 0]);
    for (key, place) in [("a", "0:0"), ("null", "0:1"), ("0x80ff", "0:2"), ("\"\"", "0:3"), ("", "0:3"), ("a b", "0:4")]
    {
        assert_eq!(places(&rig, &["--key", key]), [place], "{key}");
    }
    assert_eq!(places(&rig, &["--at", "0:4", "--at", "0:1", "--at", "7:7"]), ["0:1", "0:4"]);
    dlq(&rig, &["replay", "--limit", "1"]);
    assert_eq!(places(&rig, &["--replayed"]), ["0:0"]);
    assert_eq!(places(&rig, &["--unreplayed"]).len(), 4);
}

#[test]
fn the_json_of_a_letter() {
    let rig = rig();
    dlq(&rig, &["replay", "--limit", "1"]);
    let lines = dlq(&rig, &["list", "--json"]);
    let all: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 5);
    assert_eq!((&all[0]["replayed"]["to"], &all[0]["replayed"]["by"]), (&"in/1".into(), &"app-dlq-p".into()));
    assert!(all[1]["replayed"].is_null() && all[1]["key"].is_null());
    assert_eq!(all[2]["key"]["hex"], "80ff");
    let start = r#"{"partition":0,"offset":1,"code":"panic","verdict":"broke","message":"it went wrong","attempts":2,"first_failure":86399990,"last_failure":86400000,"replays":1,"replayed":null,"source":{"topic":"in","partition":1,"offset":1,"timestamp":77},"plugin":{"name":"plug","version":"1.0","digest":"abc"},"truncated_from":null,"key":null"#;
    assert_eq!(lines.lines().nth(1).unwrap(), format!("{start}}}"));
    let shown = dlq(&rig, &["show", "0:1", "--json"]);
    let rest =
        r#","timestamp":99,"stack":["inner","outer"],"details":[["row","7"]],"headers":[["own","1"]],"value":"v"}"#;
    assert_eq!(shown, format!("{start}{rest}\n"));
}

#[test]
fn one_letter_is_shown_whole() {
    let rig = rig();
    let expected = "\
place         0:2 of dead
code          trap
verdict       broke
message       it went wrong
calls         2
first failure 1970-01-02T23:59:59.990Z
last failure  1970-01-03T00:00:00.000Z
source        in/1 offset 2
timestamp     1970-01-01T00:00:00.077Z (77)
processor     p
plugin        plug 1.0 (abc)
replays       2
replayed      no
detail        row: 7
stack         inner
stack         outer
key           0x80ff
header        own=1
value         v
";
    assert_eq!(dlq(&rig, &["show", "0:2"]), expected);
    let missing = dlq(&rig, &["show", "0:5"]);
    assert!(missing.starts_with("3: no dead letter of processor p at 0:5 of dead"), "{missing}");
}

#[test]
fn the_outcome_of_a_replay() {
    let rig = rig();
    let dry = dlq(&rig, &["replay", "--dry-run", "--code", "trap"]);
    let lines = "0:0: would be replayed to in/1\n0:2: would be replayed to in/1\nwould replay 2 dead letters of dead\n";
    assert_eq!(dry, format!("{lines}6: not replayed: 1 dead letter, each named above"));
    assert_eq!(dlq(&rig, &["replay", "--at", "0:0"]), "replayed 1 dead letter of dead\n");
    assert_eq!(
        dlq(&rig, &["replay"]),
        "replayed 2 dead letters of dead\n6: not replayed: 2 dead letters, each named above"
    );
    let json = r#"{"dry_run":false,"refused":[{"code":"replay-limit","message":"it has been replayed 4 times, and the limit is 4","offset":4,"partition":0}],"replayed":1}"#;
    assert_eq!(
        dlq(&rig, &["replay", "--json", "--max-replays", "4"]),
        format!("{json}\n6: not replayed: 1 dead letter, each named above")
    );
}

#[test]
fn the_outcome_of_a_purge() {
    let rig = rig();
    dlq(&rig, &["replay", "--limit", "1"]);
    let dry = dlq(&rig, &["purge", "--before", "1970-01-03", "--dry-run"]);
    assert_eq!(dry, "would purge 2 dead letters of dead, 1 of them never replayed\n");
    let json = "{\"behind\":0,\"dry_run\":false,\"purged\":2,\"unreplayed\":1}\n";
    assert_eq!(dlq(&rig, &["purge", "--before", "1970-01-03", "--json"]), json);
    assert_eq!(dlq(&rig, &["purge", "--all"]), "purged 3 dead letters of dead, 3 of them never replayed\n");
    assert_eq!(places(&rig, &[]), [""; 0]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for wrong in [
        &["purge"][..],
        &["purge", "--all", "--before", "1h"],
        &["list", "--replayed", "--unreplayed"],
        &["list", "--since", "yesterday"],
        &["list", "--limit", "0"],
        &["list", "--key", "0x8"],
        &["show", "17"],
        &["replay", "--max-replays", "0"],
        &["replay", "--follow"],
    ] {
        assert!(refused(wrong), "{wrong:?}");
    }
    assert!(!refused(&["list", "--key", "-5"]));
}
