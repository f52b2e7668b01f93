//! Records of odd shapes, and outputs that a topic refuses.

use super::{BOTH, see};
use pelton_tests::load::one_each;
use pelton_tests::wait::secs;
use pelton_tests::{App, Log, Processor, Rec, oracle};

#[test]
fn b01_null_empty_and_falsy_keys_are_four_things() {
    for log in BOTH {
        let app = App::draft(log, "b01")
            .topic("in", 1)
            .topic("counts", 1)
            .topic("echoes", 1)
            .topic("dead", 1)
            .processor(Processor::new("count").input("in", "in").output("out", "counts").dead_letters("dead"))
            .processor(Processor::new("echo").input("in", "in").output("out", "echoes"))
            .ready();
        let keys: [Option<&[u8]>; 6] = [None, Some(b""), Some(b"\0"), Some(b"0"), Some(b"a"), None];
        let input: Vec<Rec> = keys.iter().enumerate().map(|(i, k)| Rec::raw(*k, Some(&[i as u8])).at(0)).collect();
        app.produce("in", &input);
        app.finish(1);
        oracle::same("echo", &input, &app.read("echoes"));
        let keyed: Vec<Rec> = input.iter().filter(|r| r.key.is_some()).cloned().collect();
        oracle::counts(&keyed, &app.read("counts"));
        assert_eq!(app.read("counts").len(), 4, "four keys");
        let dead = app.read("dead");
        assert_eq!(dead.iter().map(oracle::code).collect::<Vec<_>>(), ["null-key", "null-key"], "{log:?}");
        oracle::accounting(&input, &keyed, &dead);
    }
}

#[test]
fn b02_tombstones_delete_and_are_no_errors() {
    for log in BOTH {
        let app = App::draft(log, "b02")
            .topic("in", 1)
            .topic_setting("in", "cleanup.policy", "compact")
            .topic("out", 1)
            .topic("dead", 1)
            .processor(Processor::new("latest").input("in", "in").output("out", "out").dead_letters("dead"))
            .ready();
        let put = |key: &str, value: &str| Rec::new(key, value);
        let gone = |key: &str| Rec::raw(Some(key.as_bytes()), None);
        let halves = [
            vec![put("a", "1"), put("b", "1"), put("c", "1"), put("a", "2"), gone("a")],
            vec![put("b", "2"), gone("b"), gone("c"), gone("c"), put("a", "")],
        ];
        app.produce("in", &halves[0]);
        app.host(1).arg("--until-idle").failpoints("commit-after-transaction=return").start().wait(secs(60));
        app.produce("in", &halves[1]);
        app.finish(1);
        let out: Vec<_> = app.read("out").into_iter().map(|r| (r.key, r.value)).collect();
        let input: Vec<_> = halves.concat().into_iter().map(|r| (r.key, r.value)).collect();
        assert_eq!(out, input, "{log:?}: what is stored after each record is what it brought");
        assert!(app.read("dead").is_empty(), "{log:?}");
        let view = oracle::view(&app.read_named(&app.changelog("latest", "values")));
        assert_eq!(view.len(), 1, "{log:?}: only a, which is empty and not deleted");
    }
}

#[test]
fn b06_bytes_that_are_not_utf8_stay_bytes() {
    for log in BOTH {
        let app = App::counting(log, "b06", 2).ready();
        let keys: [&[u8]; 5] = [&[0, 0, 0, 0, 7, 0xff], &[0x80], &[0x81], &[0xff, 0xfe], &[0, 0, 0, 0, 0, 0, 0, 0x2a]];
        let round = || keys.iter().map(|k| Rec::new(k, "x").header("h", Some(&[0xc3, 0x28]))).collect::<Vec<_>>();
        app.produce("in", &round());
        app.host(1).arg("--until-idle").failpoints("commit-after-transaction=return").start().wait(secs(60));
        app.finish(1);
        app.wipe(1);
        app.produce("in", &round());
        app.finish(1);
        oracle::counts(&[round(), round()].concat(), &app.read("out"));
        oracle::same("pelton consume", &app.read("in"), &app.consume_with_cli(&app.topic("in")));
    }
}

#[test]
fn b06_dead_letters_keep_bytes() {
    for log in BOTH {
        let app = App::draft(log, "b06-dead")
            .topic("in", 1)
            .topic("out", 1)
            .topic("dead", 1)
            .processor(Processor::new("bad").input("in", "in").output("out", "out").dead_letters("dead"))
            .ready();
        let record = Rec::new([0xff, 0xfe], b"reject \x80").header("h", Some(&[0xc3, 0x28]));
        app.produce("in", std::slice::from_ref(&record));
        app.finish(1);
        let dead = app.read("dead");
        assert_eq!(
            (&dead[0].key, &dead[0].value, &dead[0].headers[0]),
            (&record.key, &record.value, &record.headers[0])
        );
    }
}

#[test]
fn large_records_pass() {
    for log in BOTH {
        let app = App::draft(log, "large")
            .topic("in", 1)
            .topic("out", 1)
            .processor(Processor::new("echo").input("in", "in").output("out", "out"))
            .ready();
        let large: Vec<u8> = (0..900 * 1024u32).map(|i| (i % 251) as u8).collect();
        let input = [Rec::new("a", "small").at(0), Rec::new("b", &large).at(0), Rec::new("c", &large).at(0)];
        app.produce("in", &input);
        app.finish(1);
        oracle::same("echo", &input, &app.read("out"));
    }
}

#[test]
fn outputs_that_the_topic_refuses_are_their_records_failures() {
    for log in BOTH {
        let app = App::draft(log, "refused")
            .topic("in", 1)
            .topic_setting("in", "message.timestamp.after.max.ms", "9223372036854775807")
            .topic("out", 1)
            .topic_setting("out", "max.message.bytes", "20000")
            .topic("dead", 1)
            .topic_setting("dead", "message.timestamp.after.max.ms", "9223372036854775807")
            .processor(Processor::new("echo").input("in", "in").output("out", "out").dead_letters("dead"))
            .ready();
        let mut input: Vec<Rec> = (0..20).map(|i| Rec::new("k", format!("{i}")).at(0)).collect();
        input[5].value = Some(vec![b'x'; 30_000]);
        input[11].timestamp = 4_102_444_800_000; // the year 2100
        app.produce("in", &input);
        app.finish(1);
        let dead = app.read("dead");
        let codes: Vec<String> = dead.iter().map(oracle::code).collect();
        assert_eq!(codes, ["output-too-large", "output-timestamp-refused"], "{log:?}");
        oracle::accounting(&input, &app.read("out"), &dead);
        oracle::order(&input, &app.read("out"));
    }
}

/// A plugin that misbehaves costs its own records their delivery and no other.
#[test]
fn a_bad_plugin_costs_its_records_only() {
    for log in BOTH {
        let app = App::draft(log, "bad")
            .topic("in", 2)
            .topic("out", 2)
            .topic("dead", 1)
            .processor(
                Processor::new("bad")
                    .input("in", "in")
                    .output("out", "out")
                    .dead_letters("dead")
                    .limit("record_deadline", "300ms"),
            )
            .ready();
        let verbs = ["ok", "reject", "trap", "panic", "loop"];
        let input: Vec<Rec> = (0..100)
            .map(|i| Rec::new(format!("k{}", i % 7), format!("{} {i}", if i % 9 == 4 { verbs[i % 5] } else { "ok" })))
            .collect();
        app.produce("in", &input);
        app.finish(1);
        let (out, dead) = (app.read("out"), app.read("dead"));
        oracle::accounting(&input, &out, &dead);
        oracle::order(&input, &out);
        let wrong = out
            .iter()
            .find(|r| !r.value_text().starts_with("ok"))
            .or_else(|| dead.iter().find(|r| r.value_text().starts_with("ok")));
        assert!(wrong.is_none(), "{log:?}: {wrong:?}");
        assert!(dead.iter().all(|r| !oracle::code(r).is_empty()), "{log:?}: each says why");
    }
}

/// Two processors on one topic, one of which stops at a record: the other goes on, before and after a crash.
#[test]
fn a_stopped_processor_does_not_hold_its_neighbour() {
    let app = App::draft(Log::Kafka, "neighbours")
        .topic("in", 2)
        .topic("counts", 2)
        .topic("out", 2)
        .processor(Processor::new("count").input("in", "in").output("out", "counts"))
        .processor(Processor::new("bad").input("in", "in").output("out", "out"))
        .ready();
    let mut input: Vec<Rec> = one_each(20);
    input.push(Rec::new("k1", "stop"));
    input.extend(one_each(20));
    app.produce("in", &input);
    let mut host = app.host(1).start();
    see(&app, "counts", input.len(), secs(60));
    host.kill();
    app.produce("in", &one_each(20));
    input.extend(one_each(20));
    let mut host = app.host(1).start();
    see(&app, "counts", input.len(), secs(60));
    host.kill();
    oracle::counts(&input, &app.read("counts"));
    let passed = app.read("out");
    oracle::order(&input, &passed);
    let (stop, ..) = input.iter().enumerate().find(|(_, r)| r.value_text() == "stop").unwrap();
    let stopped: Vec<&Rec> = passed.iter().filter(|r| r.key_text() == "k1").collect();
    assert_eq!(stopped.len(), 1, "nothing after record {stop} of its partition is passed over");
}
