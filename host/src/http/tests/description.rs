//! `docs/openapi.json` and what is served agree.

use super::fake::Rig;
use super::raw::{ask, get, post};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const METHODS: &[&str] = &["get", "post", "put", "delete", "patch"];

fn document() -> Value {
    serde_json::from_str(crate::http::status::DESCRIPTION).unwrap()
}

fn paths(document: &Value) -> &Map<String, Value> {
    document["paths"].as_object().unwrap()
}

/// With names that the fake host knows.
fn filled(path: &str) -> String {
    path.replace("{name}", "p").replace("{processor}", "p").replace("{store}", "s")
}

#[test]
fn it_is_served_as_it_is() {
    assert_eq!(get(&Rig::plain().address, "/openapi.json").json(), document());
}

#[test]
fn every_path_takes_the_methods_that_are_described_and_no_others() {
    let (rig, document) = (Rig::plain(), document());
    for (path, methods) in paths(&document) {
        for method in METHODS {
            let answer = ask(&rig.address, &method.to_uppercase(), &filled(path));
            let is_taken = ![404, 405].contains(&answer.status);
            assert_eq!(is_taken, methods.get(method).is_some(), "{method} {path}: {answer:?}");
        }
    }
}

/// The source of the router is the list of what there is.
#[test]
fn every_path_of_the_router_is_described() {
    let source = include_str!("../router.rs");
    let routes = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next());
    let document = document();
    let described: BTreeSet<&str> = paths(&document).keys().map(String::as_str).collect();
    assert_eq!(routes.collect::<BTreeSet<_>>(), described);
}

#[test]
fn every_name_in_a_query_that_is_described_is_known() {
    let (rig, document) = (Rig::plain(), document());
    for (path, methods) in paths(&document) {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                // with a value that is wrong for most: then the name itself is not what is refused
                let target = format!("{}?{name}=-", filled(path));
                let answer = match method.as_str() {
                    "post" => post(&rig.address, &target, "application/wasm", b""),
                    _ => ask(&rig.address, &method.to_uppercase(), &target),
                };
                let said = String::from_utf8_lossy(&answer.body);
                assert!(!said.contains("means nothing here"), "{method} {target}: {said}");
            }
        }
    }
}

/// Fields that the runtime gives, and fields that are described: one list.
#[test]
fn answers_have_the_fields_that_are_described() {
    let (rig, document) = (Rig::plain(), document());
    let schema = |name: &str| {
        let schema = &document["components"]["schemas"][name];
        let keys = schema["properties"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let required: BTreeSet<String> = serde_json::from_value(schema["required"].clone()).unwrap();
        assert_eq!(keys, required, "{name}");
        keys
    };
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let status = get(&rig.address, "/v1/status").json();
    assert_eq!(fields(&status), schema("Status"));
    assert_eq!(fields(&status["processors"][0]), schema("Processor"));
    assert_eq!(fields(&status["processors"][0]["tasks"][0]), schema("Task"));
    assert_eq!(fields(&status["processors"][0]["version"]), schema("Version"));
    assert_eq!(fields(&get(&rig.address, "/v1/state/p/s?key=a").json()), schema("Value"));
    assert_eq!(fields(&get(&rig.address, "/v1/state/p/s?key=elsewhere").json()), schema("HeldElsewhere"));
    let page = get(&rig.address, "/v1/state/p/s").json();
    assert_eq!((fields(&page), fields(&page["entries"][0])), (schema("Page"), schema("Entry")));
    assert_eq!(fields(&get(&rig.address, "/v1/processors/p/history").json()), schema("History"));
    assert_eq!(fields(&ask(&rig.address, "POST", "/v1/processors/p/rollback").json()), schema("Deployed"));
    assert_eq!(fields(&ask(&rig.address, "POST", "/v1/processors/p/pause").json()), schema("Paused"));
    assert_eq!(fields(&get(&rig.address, "/readyz").json()), schema("Health"));
    assert_eq!(fields(&get(&rig.address, "/nowhere").json()), schema("Error"));
    use crate::runtime::control::{FailureStatus, HistoryEntry, LagStatus, PositionStatus, RestoreStatus};
    let of = |value: Result<Value, serde_json::Error>| fields(&value.unwrap());
    assert_eq!(of(serde_json::to_value(HistoryEntry::default())), schema("HistoryEntry"));
    assert_eq!(of(serde_json::to_value(PositionStatus::default())), schema("Position"));
    assert_eq!(of(serde_json::to_value(RestoreStatus::default())), schema("Restore"));
    assert_eq!(of(serde_json::to_value(LagStatus::default())), schema("Lag"));
    assert_eq!(of(serde_json::to_value(FailureStatus::default())), schema("Failure"));
}
