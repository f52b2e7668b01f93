//! The admin surface of a running host, and the verbs that ask it.

use super::BOTH;
use pelton_tests::admin::{Admin, note, note_file};
use pelton_tests::app::{Draft, cli};
use pelton_tests::host::{Exit, Host, Launch};
use pelton_tests::versions::Version;
use pelton_tests::wait::{self, secs};
use pelton_tests::{App, Log, Processor, Rec, Rng};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const NOT_RUNNING: Exit = Exit::Code(7);
const REFUSED: Exit = Exit::Code(3);

/// Host 1, ready, with its surface.
fn running(app: &App) -> (Host, Admin) {
    let host = app.host(1).start();
    let admin = Admin::of(app, 1, host.pid());
    admin.ready();
    (host, admin)
}

/// Runs a verb on host 1; gives how it ended and all it said.
fn verb(app: &App, words: &[&str]) -> (Exit, String) {
    let (file, folder) = (app.file(), app.state_dir(1));
    let (name, rest) = split(words);
    let mut all = name.to_vec();
    all.push(text(&file));
    all.extend(rest);
    all.extend(["--state-dir", text(&folder)]);
    cli(&all, secs(60))
}

/// `state get`, or one word.
fn split<'a>(words: &'a [&'a str]) -> (&'a [&'a str], &'a [&'a str]) {
    words.split_at(if words[0] == "state" { 2 } else { 1 })
}

/// What a verb prints where it must succeed.
fn said(app: &App, words: &[&str]) -> String {
    let (exit, said) = verb(app, words);
    assert_eq!(exit, Exit::Code(0), "{words:?}: {said}");
    said
}

fn said_json(app: &App, words: &[&str]) -> Value {
    let said = said(app, &[words, &["--json"]].concat());
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

#[test]
fn a_host_says_where_it_listens_and_how_it_is() {
    for log in BOTH {
        let app = App::counting(log, "admin-says", 4).ready();
        app.produce("in", &(0..20).map(|n| Rec::new(format!("k{n}"), "x")).collect::<Vec<_>>());
        let (mut host, admin) = running(&app);
        let there = note(&app, 1).unwrap();
        assert_eq!((&there["pid"], &there["application"]), (&json!(host.pid()), &json!(app.id)));
        assert_eq!(std::fs::metadata(note_file(&app, 1)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(admin.get("/healthz").json(), json!({"live": true, "ready": true, "reasons": []}));
        let metrics = String::from_utf8(admin.get("/metrics").body).unwrap();
        assert!(metrics.contains("# TYPE pelton_task_records_in_total counter"), "{metrics}");
        let status = wait::until("all is committed", secs(60), || {
            let status = said_json(&app, &["status"]);
            (status["processors"][0]["lag"] == 0).then_some(status)
        });
        assert_eq!(status["instance"], there["instance"]);
        assert_eq!(
            (&status["ready"], &status["processors"][0]["tasks"][3]["state"]),
            (&json!(true), &json!("running"))
        );
        assert!(said(&app, &["status"]).contains("count/3"), "a table has a line for each task");
        let lag = said_json(&app, &["lag"]);
        assert_eq!(
            (&lag["processors"][0]["lag"], lag["processors"][0]["partitions"].as_array().unwrap().len()),
            (&json!(0), 4)
        );
        host.stop(secs(60));
        assert!(!note_file(&app, 1).exists(), "a clean end takes the note along");
        let (exit, told) = verb(&app, &["status"]);
        assert_eq!((exit, told.lines().count()), (NOT_RUNNING, 1), "{told}");
    }
}

#[test]
fn a_host_that_was_killed_is_not_running() {
    let app = App::counting(Log::Embedded, "admin-killed", 1).ready();
    let (mut host, _) = running(&app);
    host.kill();
    let left = note(&app, 1).expect("a kill leaves the note");
    for words in [
        &["status"][..],
        &["lag"],
        &["state", "get", "count", "counts", "k"],
        &["pause", "count"],
        &["history", "count"],
    ] {
        let (exit, told) = verb(&app, words);
        assert_eq!((exit, told.lines().count()), (NOT_RUNNING, 1), "{words:?}: {told}");
        assert!(told.contains(&format!("process {} is gone", host.pid())), "{told}");
    }
    let (mut host, _) = running(&app);
    assert_ne!(note(&app, 1).unwrap()["pid"], left["pid"]);
    said(&app, &["status"]);
    host.stop(secs(60));
    // somebody else has the process id now
    let mut stale = left;
    stale["pid"] = json!(std::process::id());
    std::fs::write(note_file(&app, 1), stale.to_string()).unwrap();
    let (exit, told) = verb(&app, &["status"]);
    assert_eq!((exit, told.lines().count()), (NOT_RUNNING, 1), "{told}");
}

#[test]
fn a_watched_status_goes_on_over_a_restart() {
    let app = App::counting(Log::Embedded, "admin-watch", 1).ready();
    let (mut host, _) = running(&app);
    let watch = Launch::new("watch", app.dir().join("watch.log")).arg("status").arg(app.file());
    let watch = watch.arg("--state-dir").arg(app.state_dir(1)).arg("--watch").arg("--json").arg("--every").arg("1");
    let mut watch = watch.start();
    watch.says(&format!("\"pid\":{}", host.pid()), secs(60));
    host.kill();
    watch.says("{\"away\":", secs(60));
    let (mut host, _) = running(&app);
    watch.says(&format!("\"pid\":{}", host.pid()), secs(60));
    host.stop(secs(60));
    watch.assert_running();
}

/// Counts of keys that are no text, too, one by one, in ranges and all of them, beside what the job has put out.
#[test]
fn committed_state_is_read() {
    for log in BOTH {
        let app = App::counting(log, "admin-state", 4).ready();
        let keys: Vec<Vec<u8>> = (0..250u32).map(|n| [&b"k\x80"[..], &n.to_be_bytes()[2..]].concat()).collect();
        let records: Vec<Rec> = keys.iter().chain(&keys[..100]).map(|key| Rec::new(key, "x")).collect();
        app.produce("in", &records);
        let (mut host, _admin) = running(&app);
        wait::until("all is committed", secs(60), || {
            (said_json(&app, &["lag"])["processors"][0]["lag"] == 0).then_some(())
        });
        let dump = said(&app, &["state", "dump", "count", "counts"]);
        let entries: Vec<Value> = dump.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let counts: BTreeMap<Vec<u8>, u64> = entries.iter().map(|e| (bytes(&e["key"]), count(&e["value"]))).collect();
        assert_eq!((entries.len(), counts.len()), (250, 250));
        keys.iter().enumerate().for_each(|(n, key)| assert_eq!(counts[key], if n < 100 { 2 } else { 1 }, "{n}"));
        let of: BTreeSet<i64> = entries.iter().map(|entry| entry["partition"].as_i64().unwrap()).collect();
        assert_eq!(of.len(), 4, "every partition has keys");
        // each where the partitioner puts it, in each form
        for n in [0, 7, 249] {
            let key = format!("0x{}", hex(&keys[n]));
            let found = said_json(&app, &["state", "get", "count", "counts", &key]);
            assert_eq!((bytes(&found["key"]), count(&found["value"])), (keys[n].clone(), counts[&keys[n]]));
        }
        assert_eq!(said(&app, &["state", "get", "count", "counts", "none"]).trim(), "null");
        let prefix = format!("0x{}", hex(b"k\x80\0"));
        let scan = said(&app, &["state", "scan", "count", "counts", "--prefix", &prefix, "--limit", "1000"]);
        assert_eq!(scan.lines().count(), 250);
        assert!(scan.lines().all(|line| line.split(' ').nth(1).unwrap().starts_with(&prefix)), "{scan}");
        let few = said(&app, &["state", "scan", "count", "counts", "--limit", "3", "--reverse", "--partition", "2"]);
        let last: Vec<&[u8]> =
            counts.keys().map(|k| &**k).filter(|key| partition_of(&entries, key) == 2).rev().take(3).collect();
        let shown: Vec<String> = few.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
        assert_eq!(shown, last.iter().map(|key| format!("0x{}", hex(key))).collect::<Vec<_>>());
        for (words, code) in
            [(["state", "get", "count", "nothing", "k"], REFUSED), (["state", "get", "nobody", "counts", "k"], REFUSED)]
        {
            assert_eq!(verb(&app, &words).0, code, "{words:?}");
        }
        host.stop(secs(60));
    }
}

fn partition_of(entries: &[Value], key: &[u8]) -> i64 {
    let entry = entries.iter().find(|entry| bytes(&entry["key"]) == key).expect("an entry");
    entry["partition"].as_i64().unwrap()
}

/// Text, or hex.
fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => unhex(other["hex"].as_str().unwrap_or_else(|| panic!("no bytes: {other}"))),
    }
}

/// As the SDK keeps a `u64`.
fn count(value: &Value) -> u64 {
    let bytes: [u8; 8] = bytes(value).try_into().expect("eight bytes");
    u64::from_le_bytes(bytes).min(u64::from_be_bytes(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap()).collect()
}

/// Two hosts: what one of them does not hold it says where to find.
#[test]
fn a_key_of_another_host_comes_with_its_address() {
    let app = App::counting(Log::Kafka, "admin-two", 8).ready();
    app.produce("in", &(0..200).map(|n| Rec::new(format!("k{n}"), "x")).collect::<Vec<_>>());
    let (mut one, mut two) = (app.host(1).start(), app.host(2).start());
    let admins = [Admin::of(&app, 1, one.pid()), Admin::of(&app, 2, two.pid())];
    let tasks = |admin: &Admin| admin.get("/v1/processors/count").json()["tasks"].as_array().map_or(0, Vec::len);
    wait::until("each has four tasks", secs(120), || admins.iter().all(|admin| tasks(admin) == 4).then_some(()));
    admins.iter().for_each(Admin::ready);
    let (mut here, mut there) = (0, 0);
    for n in 0..200 {
        let path = format!("/v1/state/count/counts?key=k{n}");
        let reply = wait::until("an answer from here or there", secs(60), || {
            let reply = admins[0].get(&path);
            let is_known = reply.status == 200 || (reply.status == 421 && reply.json()["address"].is_string());
            is_known.then_some(reply)
        });
        if reply.status == 200 {
            here += 1;
            continue;
        }
        there += 1;
        assert_eq!(reply.json()["address"], json!(format!("http://{}", admins[1].address)));
        assert_eq!(admins[1].get(&path).status, 200);
    }
    assert!(here > 20 && there > 20, "{here} here, {there} there");
    one.stop(secs(60));
    two.stop(secs(60));
}

/// Listening on all addresses, with a token and a proxy that is said to do TLS.
#[test]
fn elsewhere_than_on_loopback_only_health_is_answered_without_the_token() {
    let app = admin(App::counting(Log::Embedded, "admin-token", 1), &[("listen", "0.0.0.0:0"), ("token", "secret")])
        .at(&["admin", "behind_proxy"], true)
        .ready();
    let (mut host, here) = running(&app);
    let outside = here.from_outside();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(outside.get(path).status, 200, "{path}");
    }
    let (refused, unknown) = (outside.get("/v1/status"), outside.get("/nowhere"));
    assert_eq!((refused.status, refused.code().as_str()), (401, "token-wanted"));
    assert_eq!((unknown.status, &unknown.body), (401, &refused.body), "paths are not told");
    for path in ["/metrics", "/openapi.json", "/v1/state/count/counts?key=k", "/v1/processors/count/history"] {
        assert_eq!(outside.get(path).status, 401, "{path}");
    }
    assert_eq!(outside.post("/v1/processors/count/pause").status, 401);
    assert_eq!(outside.with_token("secre").get("/v1/status").status, 401);
    assert_eq!(outside.with_token("secret").get("/v1/status").status, 200);
    assert_eq!(said_json(&app, &["status"])["application"], json!(app.id), "the file has the token");
    host.stop(secs(60));
}

#[test]
fn on_loopback_no_web_page_is_served() {
    let app = App::counting(Log::Embedded, "admin-page", 1).ready();
    let (mut host, admin) = running(&app);
    let port = admin.address.port();
    let named = |host: &str| {
        let request = format!("GET /v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        admin.send(request.as_bytes(), false).unwrap()
    };
    assert_eq!(named(&format!("localhost:{port}")).status, 200);
    let other = named(&format!("rebound.example:{port}"));
    assert_eq!((other.status, other.code().as_str()), (403, "host-refused"));
    let paged = admin.ask("POST", "/v1/processors/count/pause", "Origin: https://evil.example\r\n", b"");
    assert_eq!((paged.status, paged.code().as_str()), (403, "origin-refused"));
    host.stop(secs(60));
}

/// A certificate that signed itself: trusted by those who have the application file, over TLS only.
#[test]
fn tls_is_spoken_with_the_certificate_of_the_file() {
    let draft = App::counting(Log::Embedded, "admin-tls", 1);
    let settings =
        [("listen", "0.0.0.0:0"), ("token", "secret"), ("tls_certificate", "own.crt"), ("tls_key", "own.key")];
    let app = admin(draft, &settings).ready();
    certify(app.dir());
    let host = app.host(1).start();
    let surface = Admin::of(&app, 1, host.pid());
    assert!(note(&app, 1).unwrap()["address"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    wait::until("the host is ready", secs(60), || {
        let (exit, told) = verb(&app, &["status", "--json"]);
        (exit == Exit::Code(0) && told.contains("\"ready\":true")).then_some(())
    });
    // by name and address, as from another machine
    let named = format!("localhost:{}", surface.address.port());
    let file = app.file();
    assert_eq!(cli(&["status", text(&file), "--host", &named], secs(60)).0, Exit::Code(0));
    let plain = format!("http://{named}");
    assert_ne!(cli(&["status", text(&file), "--host", &plain], secs(60)).0, Exit::Code(0), "no TLS, no answer");
    // without the token, over TLS
    assert!(over_tls(&surface, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(over_tls(&surface, "/v1/status").starts_with("HTTP/1.1 401"));
    // a file with another certificate does not take the host for its own
    certify(app.dir());
    assert_eq!(verb(&app, &["status"]).0, Exit::Code(1));
    drop(host);
}

#[test]
fn what_cannot_listen_does_not_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let app = admin(App::counting(Log::Embedded, "admin-taken", 1), &[("listen", &address)]).ready();
    let mut host = app.host(1).start();
    assert_eq!(host.wait(secs(60)), REFUSED);
    let log = host.log();
    assert!(log.contains("admin.listen") && log.contains(&address), "{log}");
    let settings = [("listen", "127.0.0.1:0"), ("tls_certificate", "none.crt"), ("tls_key", "none.key")];
    let app = admin(App::counting(Log::Embedded, "admin-no-cert", 1), &settings).ready();
    let file = app.file();
    let (exit, told) = cli(&["check", text(&file)], secs(60));
    assert!(exit == REFUSED && told.contains("admin.tls_certificate"), "{told}");
}

#[test]
fn health_is_answered_before_the_log_is() {
    // nobody listens there
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let app = App::counting(Log::Kafka, "admin-start", 1).without_topics().brokers(&unused).ready();
    let mut host = app.host(1).start();
    let admin = Admin::of(&app, 1, host.pid());
    assert_eq!(admin.get("/healthz").status, 200);
    wait::until("readiness names the start", secs(60), || {
        let reply = admin.get("/readyz");
        (reply.status == 503 && reply.json()["reasons"][0].as_str()?.starts_with("start")).then_some(())
    });
    let status = admin.get("/v1/status");
    assert_eq!((status.status, status.code().as_str()), (503, "starting"));
    assert_eq!(verb(&app, &["status"]).0, Exit::Code(1));
    host.stop(secs(60));
}

#[test]
fn what_is_no_component_is_not_sent() {
    let app = App::counting(Log::Embedded, "admin-deploy", 1).ready();
    let (mut host, admin) = running(&app);
    let wrong = app.dir().join("wrong.wasm");
    std::fs::write(&wrong, b"\0asm\x01\0\0\0").unwrap();
    let inspected = cli(&["inspect", text(&wrong)], secs(60));
    assert_eq!(verb(&app, &["deploy", "count", text(&wrong)]), inspected, "the same words, the same code");
    let missing = app.dir().join("missing.wasm");
    assert_eq!(verb(&app, &["deploy", "count", text(&missing)]), cli(&["inspect", text(&missing)], secs(60)));
    // the host looks, too
    let sent =
        admin.ask("POST", "/v1/processors/count/deploy", "Content-Type: application/wasm\r\n", b"\0asm\x01\0\0\0");
    assert_eq!(sent.status, 422, "{sent:?}");
    let nobody = admin.ask("POST", "/v1/processors/nobody/pause", "", b"");
    assert!([404, 422].contains(&nobody.status), "{nobody:?}");
    admin.ready();
    host.stop(secs(60));
}

/// A version goes in, comes back, and everything that was asked is told.
#[test]
fn a_plugin_is_changed_by_the_command_line() {
    for log in BOTH {
        let app = App::draft(log, "admin-change").topic("in", 2).topic("out", 2).processor(versioned()).ready();
        let (mut host, _admin) = running(&app);
        let second = Version::of(2).file(app.dir());
        let deployed = said_json(&app, &["deploy", "versioned", text(&second), "--by", "me"]);
        let sequence = deployed["sequence"].as_i64().unwrap();
        let status = said_json(&app, &["status"]);
        assert_eq!(status["processors"][0]["version"]["digest"], deployed["digest"]);
        let history = said_json(&app, &["history", "versioned"]);
        let newest = &history["entries"][0];
        assert_eq!(
            (&newest["by"], &newest["how"], &newest["result"]),
            (&json!("me"), &json!("deploy"), &json!("active"))
        );
        let first = history["entries"][1]["digest"].as_str().unwrap().to_owned();
        // back, by default to the one before, as whoever runs this
        assert!(said(&app, &["rollback", "versioned"]).contains(&first[..12]), "the digest is told");
        let back = said_json(&app, &["history", "versioned"]);
        assert_eq!((&back["entries"][0]["digest"], &back["entries"][0]["how"]), (&json!(first), &json!("rollback")));
        assert!(back["entries"][0]["by"].as_str().unwrap().contains('@'), "{back}");
        assert!(back["entries"][0]["sequence"].as_i64().unwrap() > sequence);
        let table = said(&app, &["history", "versioned"]);
        assert_eq!(table.lines().count(), back["entries"].as_array().unwrap().len() + 1, "{table}");
        // forth, by name
        let digest = deployed["digest"].as_str().unwrap();
        assert_eq!(said_json(&app, &["rollback", "versioned", "--to", &digest[..10]])["digest"], deployed["digest"]);
        host.stop(secs(60));
    }
}

#[test]
fn what_cannot_be_deployed_changes_nothing_and_says_why() {
    let app = App::draft(Log::Embedded, "admin-refused").topic("in", 1).topic("out", 1).processor(versioned()).ready();
    let (mut host, admin) = running(&app);
    let before = said(&app, &["history", "versioned", "--json"]);
    let unwilling = Version { deed: "init", ..Version::of(2) }.file(app.dir());
    let (exit, told) = verb(&app, &["deploy", "versioned", text(&unwilling)]);
    assert!(exit == REFUSED && told.contains("this version does not start"), "{exit:?} {told}");
    let willing = Version::of(3).file(app.dir());
    for (words, why) in [
        (vec!["deploy", "nobody", text(&willing)], "nobody"),
        (vec!["rollback", "versioned", "--to", "ffffffff"], "no such earlier version"),
        (vec!["rollback", "nobody"], "nobody"),
        (vec!["pause", "nobody"], "nobody"),
        (vec!["history", "nobody"], "nobody"),
    ] {
        let (exit, told) = verb(&app, &words);
        assert!(exit == REFUSED && told.contains(why), "{words:?}: {exit:?} {told}");
    }
    assert_eq!(admin.post("/v1/processors/nobody/pause").status, 404);
    assert_eq!(admin.post("/v1/processors/versioned/rollback?to=ffffffff").status, 404);
    assert_eq!(said(&app, &["history", "versioned", "--json"]), before);
    host.stop(secs(60));
}

#[test]
fn a_paused_processor_stays_paused_until_it_is_told_to_go_on() {
    let app = App::draft(Log::Embedded, "admin-pause").topic("in", 1).topic("out", 1).processor(versioned()).ready();
    app.produce("in", &[Rec::new("k", "x")]);
    let (mut host, _admin) = running(&app);
    assert_eq!(said(&app, &["pause", "versioned"]).trim(), "processor versioned is paused");
    assert_eq!(said(&app, &["pause", "versioned"]).trim(), "processor versioned is already paused");
    assert_eq!(said_json(&app, &["status"])["processors"][0]["state"], "paused");
    host.stop(secs(60));
    app.produce("in", &[Rec::new("k", "y")]);
    let mut host = app.host(1).start();
    Admin::of(&app, 1, host.pid());
    let state = || {
        let (exit, told) = verb(&app, &["status", "--json"]);
        (exit == Exit::Code(0)).then(|| serde_json::from_str::<Value>(&told).unwrap()["processors"][0]["state"].clone())
    };
    let paused = wait::until("the host can be asked", secs(60), state);
    assert_eq!(paused, "paused", "over restarts");
    assert_eq!(
        said_json(&app, &["resume", "versioned"]),
        json!({"processor": "versioned", "paused": false, "changed": true})
    );
    let lag = || said_json(&app, &["lag"])["processors"][0]["lag"].clone();
    wait::until("it goes on", secs(60), || (lag() == 0).then_some(()));
    assert_eq!(said_json(&app, &["status"])["processors"][0]["state"], "running");
    host.stop(secs(60));
}

fn versioned() -> Processor {
    Processor::new("versioned").input("in", "in").output("out", "out")
}

#[test]
fn the_topology_needs_no_host() {
    let app = App::counting(Log::Embedded, "admin-topology", 1)
        .topic("again", 1)
        .processor(Processor::new("echo").input("in", "out").output("out", "again"))
        .ready();
    let file = app.file();
    let show = |more: &[&str]| {
        let (exit, said) = cli(&[&["topology", text(&file)], more].concat(), secs(60));
        assert_eq!(exit, Exit::Code(0), "{said}");
        said
    };
    let json: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    let between = &json["topics"][app.topic("out")];
    assert_eq!((&between["written_by"], &between["read_by"]), (&json!(["count"]), &json!(["echo"])));
    assert_eq!(json["processors"][0]["stores"][0]["changelog"], json!(app.changelog("count", "counts")));
    assert!(show(&[]).contains(&format!("in     in <- {}", app.topic("out"))));
    let graph = show(&["--dot"]);
    assert!(graph.starts_with("digraph ") && graph.trim_end().ends_with('}'), "{graph}");
    assert!(!app.dir().join("log").exists(), "nothing is made");
}

/// Whatever is sent: no answer is a failure of the host, its memory stays, and it still works.
#[test]
fn nothing_that_is_sent_harms_the_host() {
    let app = App::counting(Log::Embedded, "admin-fuzz", 1).ready();
    app.produce("in", &[Rec::new("k", "x")]);
    let (mut host, admin) = running(&app);
    let mut rng = Rng::seeded("admin-fuzz");
    (0..200).for_each(|_| drop(admin.send(&noise(&mut rng), true)));
    let before = host.memory();
    for _ in 0..3000 {
        let request = noise(&mut rng);
        let reply = admin.send(&request, true);
        let is_fine = reply.as_ref().is_none_or(|reply| reply.status < 500 || reply.status == 503);
        assert!(is_fine, "{:?}: {reply:?}", String::from_utf8_lossy(&request));
    }
    let grown = host.memory().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    // heads that never end, bodies that never come, and who asks for much and reads nothing
    let mut open: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(admin.address).unwrap()).collect();
    for (n, stream) in open.iter_mut().enumerate() {
        let _ = match n % 3 {
            0 => stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: "),
            1 => stream.write_all(b"POST /v1/processors/count/deploy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/wasm\r\nContent-Length: 60000000\r\n\r\n"),
            _ => (0..50).try_for_each(|_| stream.write_all(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        };
    }
    assert_eq!(admin.get("/healthz").status, 200);
    assert_eq!(admin.get("/metrics").status, 200);
    assert_eq!(admin.get("/v1/status").status, 200);
    drop(open);
    admin.ready();
    assert_eq!(said(&app, &["state", "get", "count", "counts", "k"]).lines().count(), 1);
    host.stop(secs(60));
    assert!(!host.log().contains("panicked"), "{}", host.log());
}

/// A head that does not end, a connection that asks nothing more, a body that stalls: each has its time.
#[test]
fn who_is_slow_is_cut_off() {
    let app = App::counting(Log::Embedded, "admin-slow", 1).ready();
    let (mut host, admin) = running(&app);
    let deploy = "POST /v1/processors/count/deploy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/wasm\r\nContent-Length: 9\r\n\r\nx";
    let slow = [
        ("", ""),
        ("GET /healthz HTTP/1.1\r\nHost: loc", ""),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"),
        (deploy, "HTTP/1.1 408"),
    ];
    let mut open: Vec<TcpStream> = slow.iter().map(|_| TcpStream::connect(admin.address).unwrap()).collect();
    open.iter_mut().zip(slow).for_each(|(stream, (sent, _))| stream.write_all(sent.as_bytes()).unwrap());
    for (stream, (sent, begins)) in open.iter_mut().zip(slow) {
        stream.set_read_timeout(Some(secs(60))).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap_or_else(|e| panic!("{sent:?}: {e}"));
        let received = String::from_utf8(received).unwrap();
        assert!(received.starts_with(begins), "{sent:?}: {received}");
        assert!(!begins.is_empty() || received.is_empty(), "{sent:?}: {received}");
    }
    admin.ready();
    host.stop(secs(60));
}

/// Who asks for much and takes nothing of it.
#[test]
fn who_does_not_read_is_cut_off() {
    let app = App::counting(Log::Embedded, "admin-unread", 1).ready();
    let (mut host, admin) = running(&app);
    let mut stream = TcpStream::connect(admin.address).unwrap();
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", admin.address);
    // more than the buffers between here and there hold; the rest waits for its turn
    stream.set_nonblocking(true).unwrap();
    let mut write = move || match stream.write(request.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => Some(error),
        _ => None,
    };
    (0..2000).for_each(|_| drop(write()));
    let before = host.memory();
    wait::until("the connection is cut", secs(120), &mut write);
    assert!(host.memory() < before + (64 << 10), "what is not taken is not kept");
    admin.ready();
    host.stop(secs(60));
}

/// A request that is right, wrong in one place, or none at all.
fn noise(rng: &mut Rng) -> Vec<u8> {
    const PATHS: &[&str] = &[
        "/healthz",
        "/metrics",
        "/v1/status",
        "/v1/state/count/counts",
        "/v1/state/count/%ff",
        "/v1/processors/count",
        "/v1/processors/nobody/pause",
        "/v1/processors/nobody/deploy",
        "/v1/processors/count/history",
        "/openapi.json",
        "/../..",
        "*",
        "/%",
    ];
    const QUERIES: &[&str] = &[
        "",
        "?",
        "?key=k",
        "?key=%80",
        "?key_hex=8",
        "?limit=99999999999999999999",
        "?cursor=0-",
        "?a&b&c",
        "?prefix=&reverse=true",
        "?%",
    ];
    const METHODS: &[&str] = &["GET", "POST", "HEAD", "OPTIONS", "DELETE", "G\u{0}T", ""];
    const HEADERS: &[&str] = &[
        "",
        "Content-Length: 5\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Expect: 100-continue\r\n",
        "Content-Type: application/wasm\r\n",
        "Host: localhost\r\n",
        "Authorization: Bearer \r\n",
        "X\r\n",
        ": \r\n",
        "Upgrade: websocket\r\nConnection: upgrade\r\n",
    ];
    let mut pick = |from: &[&str]| from[rng.below(from.len() as u64) as usize].to_owned();
    let head = format!(
        "{} {}{} HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        pick(METHODS),
        pick(PATHS),
        pick(QUERIES),
        pick(HEADERS)
    );
    let mut bytes = head.into_bytes();
    if rng.below(2) == 0 {
        bytes.extend((0..rng.below(300)).map(|_| rng.below(256) as u8).collect::<Vec<_>>());
    }
    for _ in 0..rng.below(3) {
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] = rng.below(256) as u8;
    }
    bytes
}

/// A draft with keys of `[admin]`.
fn admin(draft: Draft, settings: &[(&str, &str)]) -> Draft {
    settings.iter().fold(draft, |draft, (key, value)| draft.at(&["admin", key], *value))
}

/// Makes a key and a certificate that it signed, for `localhost`.
fn certify(dir: &Path) {
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost \
                 -addext subjectAltName=DNS:localhost -keyout own.key -out own.crt";
    let made = Command::new("openssl").args(words.split_whitespace()).current_dir(dir).output().expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A request by a client that takes any certificate.
fn over_tls(admin: &Admin, path: &str) -> String {
    let address = admin.address.to_string();
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap()
}
