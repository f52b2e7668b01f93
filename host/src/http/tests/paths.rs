//! What each path answers.

use super::fake::Rig;
use super::raw::{ask, get, post};
use crate::model::Fault;
use crate::runtime::Snapshot;
use serde_json::json;

#[test]
fn health_is_the_hosts() {
    let rig = Rig::plain();
    let both = || (get(&rig.address, "/healthz"), get(&rig.address, "/readyz"));
    let (live, ready) = both();
    assert_eq!((live.status, ready.status), (200, 200));
    assert_eq!(ready.json(), json!({"live": true, "ready": true, "reasons": []}));
    let set = |live, reason: &str| {
        *rig.fake.health.lock().unwrap() = Snapshot { live, ready: false, reasons: vec![reason.to_owned()] };
    };
    set(true, "task p/3: restoring");
    let (live, ready) = both();
    assert_eq!((live.status, ready.status), (200, 503));
    assert_eq!(ready.json()["reasons"], json!(["task p/3: restoring"]));
    set(false, "worker 0 is silent");
    let (live, ready) = both();
    assert_eq!((live.status, ready.status), (503, 503));
    assert_eq!(rig.fake.asked.lock().unwrap().len(), 1, "only where it listens was told");
}

#[test]
fn metrics_are_text() {
    let answer = get(&Rig::plain().address, "/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
    assert_eq!(answer.body, b"a_metric 1\n");
}

#[test]
fn status_and_one_processor() {
    let rig = Rig::plain();
    assert_eq!(get(&rig.address, "/v1/status").json()["processors"][0]["name"], "p");
    assert_eq!(get(&rig.address, "/v1/processors/p").json()["tasks"][0]["state"], "opening");
    assert_eq!(get(&rig.address, "/v1/processors/%70/history").json()["processor"], "p");
    let none = get(&rig.address, "/v1/processors/q");
    assert_eq!((none.status, none.code().as_str()), (404, "processor-unknown"));
}

#[test]
fn faults_come_in_one_form() {
    let rig = Rig::plain();
    *rig.fake.fault.lock().unwrap() = Some(Fault::transient("starting", "the host is starting").hint("wait"));
    let answer = get(&rig.address, "/v1/status");
    assert_eq!((answer.status, answer.head.contains("retry-after: 1")), (503, true), "{}", answer.head);
    assert_eq!(answer.json(), json!({"code": "starting", "message": "the host is starting", "hint": "wait"}));
}

#[test]
fn one_key() {
    let rig = Rig::plain();
    let value = |query: &str| get(&rig.address, &format!("/v1/state/p/s?{query}"));
    assert_eq!(value("key=a").json(), json!({"partition": 0, "key": "a", "value": {"hex": "80"}}));
    assert_eq!(value("key_hex=80&partition=0").json()["key"], json!({"hex": "80"}));
    assert_eq!(value("key=none").json()["value"], json!(null));
    let elsewhere = value("key=elsewhere");
    let told = json!({
        "code": "held-elsewhere", "message": "partition 3 is held by the host 4567", "hint": "ask http://b:1",
        "partition": 3, "instance": "4567", "address": "http://b:1",
    });
    assert_eq!((elsewhere.status, elsewhere.json()), (421, told));
    let asked = rig.fake.asked.lock().unwrap();
    assert!(asked[2].contains("key: [128], partition: Some(0)"), "{asked:?}");
}

#[test]
fn a_range_goes_on_where_its_page_ended() {
    let rig = Rig::plain();
    let page = |query: &str| get(&rig.address, &format!("/v1/state/p/s?{query}")).json();
    let first = page("prefix=a&limit=2");
    assert_eq!(first["entries"][1], json!({"partition": 1, "key": {"hex": "ff"}, "value": "v"}));
    let cursor = first["cursor"].as_str().unwrap().to_owned();
    assert_eq!(page(&format!("prefix=a&limit=2&cursor={cursor}"))["cursor"], json!(null));
    let scan = rig.fake.scan.lock().unwrap().clone().unwrap();
    assert_eq!((scan.from, scan.range.limit), (Some((1, b"c\xff".to_vec())), 2));
    assert_eq!(page(&format!("partition=0&cursor={cursor}"))["code"], "bad-query");
}

#[test]
fn a_misspelt_name_is_no_wider_question() {
    let rig = Rig::plain();
    let bad = [
        "/v1/state/p/s?limt=1",
        "/v1/state/p/s?key=a&limit=1",
        "/v1/state/p/s?key=a&key=b",
        "/v1/state/p/s?cursor=1",
        "/v1/state/p/s?partition=-1",
        "/v1/state/p/s?key=%80",
        "/v1/state/%80/s?key=a",
        "/v1/status?x=1",
        "/v1/processors/p?x",
        "/v1/processors/p/history?limit=1",
        "/healthz?verbose",
        "/metrics?name=x",
        "/openapi.json?x",
    ];
    for path in bad {
        let answer = get(&rig.address, path);
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(["bad-query", "bad-path"].contains(&answer.code().as_str()), "{path}");
    }
    assert_eq!(rig.fake.asked.lock().unwrap().len(), 1, "the host was asked nothing");
}

#[test]
fn changes() {
    let rig = Rig::plain();
    let wasm =
        |query: &str| post(&rig.address, &format!("/v1/processors/p/deploy{query}"), "application/wasm", b"1234");
    assert_eq!(wasm("?by=me%40here&no_rollback=true").json()["sequence"], 4);
    assert_eq!(ask(&rig.address, "POST", "/v1/processors/p/rollback?to=ab").status, 200);
    let paused = ask(&rig.address, "POST", "/v1/processors/p/pause").json();
    assert_eq!(paused, json!({"processor": "p", "paused": true, "changed": true}));
    assert_eq!(ask(&rig.address, "POST", "/v1/processors/p/resume?by=me").json()["paused"], false);
    let asked: Vec<String> = rig.fake.asked.lock().unwrap()[1..].to_vec();
    let rollback = "rollback Rollback { processor: \"p\", to: Some(\"ab\"), by: \"http\" }";
    assert_eq!(asked, ["deploy p 4 me@here true", rollback, "pause p true http", "pause p false me"]);
    for wrong in ["?by=", "?by=a%0Ab", "?no_rollback=yes", "?component=x", &format!("?by={}", "x".repeat(201))] {
        assert_eq!(wasm(wrong).code(), "bad-query", "{wrong}");
    }
    let other = post(&rig.address, "/v1/processors/p/deploy", "application/json", b"{}");
    assert_eq!((other.status, other.code().as_str()), (415, "not-a-component"));
    *rig.fake.fault.lock().unwrap() = Some(Fault::fatal("plugin-core-module", "a core module"));
    assert_eq!(wasm("").status, 422);
}

#[test]
fn other_paths_and_methods() {
    let rig = Rig::plain();
    for path in ["/", "/v1", "/v1/", "/v1/status/", "/v1/processors/", "/healthz/", "/%68ealthz"] {
        let answer = get(&rig.address, path);
        assert_eq!((answer.status, answer.code().as_str()), (404, "path-unknown"), "{path}");
    }
    for (method, path, allowed) in [
        ("POST", "/v1/status", "GET,HEAD"),
        ("DELETE", "/healthz", "GET,HEAD"),
        ("GET", "/v1/processors/p/pause", "POST"),
        ("TRACE", "/metrics", "GET,HEAD"),
        ("BREW", "/v1/state/p/s", "GET,HEAD"),
    ] {
        let answer = ask(&rig.address, method, path);
        assert_eq!((answer.status, answer.code().as_str()), (405, "method-not-allowed"), "{method} {path}");
        assert!(answer.head.contains(&format!("allow: {allowed}")), "{}", answer.head);
    }
    let head = ask(&rig.address, "HEAD", "/healthz");
    assert_eq!((head.status, head.body.len()), (200, 0));
}
