//! What one caller cannot do to the others, or to the host.

use super::fake::Rig;
use super::raw::{self, ask, connect, get, send};
use crate::config::settings::Admin;
use crate::http::changes::COMPONENT_BYTES;
use proptest::prelude::*;
use std::io::{Read, Write};

#[test]
fn so_many_questions_at_a_time_and_health_meanwhile() {
    let rig = Rig::plain();
    rig.fake.hold(true);
    let request = format!("GET /v1/status HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", rig.address);
    let mut waiting: Vec<_> = (0..8).map(|_| connect(&rig.address)).collect();
    waiting.iter_mut().for_each(|stream| stream.write_all(request.as_bytes()).unwrap());
    // all eight are with the host once it has heard them, beside where it listens
    while rig.fake.asked.lock().unwrap().len() < 9 {
        std::thread::yield_now();
    }
    let more = get(&rig.address, "/v1/status");
    assert_eq!((more.status, more.code().as_str()), (503, "busy"));
    assert_eq!(get(&rig.address, "/healthz").status, 200);
    assert_eq!(get(&rig.address, "/metrics").status, 200);
    rig.fake.hold(false);
    for stream in &mut waiting {
        assert_eq!(raw::receive(stream).unwrap().status, 200);
    }
    assert_eq!(ask(&rig.address, "POST", "/v1/processors/p/pause").status, 200, "changes have a lane of their own");
}

#[test]
fn who_does_not_wait_for_an_answer_keeps_its_place_until_there_is_one() {
    let rig = Rig::plain();
    rig.fake.hold(true);
    let request = format!("POST /v1/processors/p/pause HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", rig.address);
    let heard = |n| {
        while rig.fake.asked.lock().unwrap().len() < n {
            std::thread::yield_now();
        }
    };
    for n in 0..2 {
        let mut stream = connect(&rig.address);
        stream.write_all(request.as_bytes()).unwrap();
        heard(2 + n);
    }
    assert_eq!(ask(&rig.address, "POST", "/v1/processors/p/resume").code(), "busy");
    rig.fake.hold(false);
    while ask(&rig.address, "POST", "/v1/processors/p/resume").status != 200 {
        std::thread::yield_now();
    }
}

#[test]
fn a_component_that_is_too_large_is_not_read() {
    let rig = Rig::plain();
    let head = |more: &str| {
        let address = &rig.address;
        format!(
            "POST /v1/processors/p/deploy HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/wasm\r\nConnection: close\r\n{more}\r\n\r\n"
        )
    };
    let said = send(&rig.address, head(&format!("Content-Length: {}", COMPONENT_BYTES + 1)).as_bytes()).unwrap();
    assert_eq!((said.status, said.code().as_str()), (413, "component-too-large"));
    // in parts, without saying how large it will be
    let mut stream = connect(&rig.address);
    stream.write_all(head("Transfer-Encoding: chunked").as_bytes()).unwrap();
    let part = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![0; 1 << 20], b"\r\n"].concat();
    let sent = (0..COMPONENT_BYTES >> 20).all(|_| stream.write_all(&part).is_ok());
    assert!(sent, "so much is taken");
    let _ = stream.write_all(&part);
    assert_eq!(raw::receive(&mut stream).map(|answer| answer.status), Some(413));
    assert_eq!(rig.fake.asked.lock().unwrap().len(), 1, "the host got none");
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let rig = Rig::plain();
    let address = &rig.address;
    let long = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    assert_eq!(send(address, long.as_bytes()).unwrap().status, 431);
    let many = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert_eq!(send(address, many.as_bytes()).unwrap().status, 431);
    let path = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "x".repeat(20_000));
    assert!([414, 431].contains(&send(address, path.as_bytes()).unwrap().status));
    assert_eq!(get(address, "/healthz").status, 200);
}

#[test]
fn so_many_connections_at_a_time() {
    let rig = Rig::plain();
    let mut open: Vec<_> = (0..128).map(|_| connect(&rig.address)).collect();
    // one that was answered has its place for sure, and those before it in the queue too
    let last = open.last_mut().unwrap();
    last.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", rig.address).as_bytes()).unwrap();
    let mut first = [0; 12];
    last.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert!(raw::receive(&mut connect(&rig.address)).is_none(), "closed without an answer");
    open.truncate(100);
    while send(&rig.address, format!("GET /healthz HTTP/1.0\r\nHost: {}\r\n\r\n", rig.address).as_bytes()).is_none() {
        std::thread::yield_now();
    }
}

#[test]
fn without_the_token_every_path_looks_the_same() {
    let admin = Admin { listen: "127.0.0.1:0".into(), token: Some("secret".into()), ..Admin::default() };
    let rig = Rig::new(&admin);
    let plain = |method, path: &str| {
        let answer = ask(&rig.address, method, path);
        (answer.status, answer.body)
    };
    let there = plain("GET", "/v1/status");
    assert_eq!(there.0, 401);
    for (method, path) in
        [("GET", "/nowhere"), ("POST", "/v1/status"), ("GET", "/v1/processors/p?x"), ("POST", "/healthy")]
    {
        assert_eq!(plain(method, path), there, "{method} {path}");
    }
    assert_eq!(plain("GET", "/healthz").0, 200);
    let with = "GET /v1/status HTTP/1.0\r\nHost: other.example\r\nAuthorization: Bearer secret\r\n\r\n";
    assert_eq!(send(&rig.address, with.as_bytes()).unwrap().status, 200);
}

/// Paths and queries made of what means something, and of what does not.
fn target() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "v1",
            "status",
            "state",
            "processors",
            "p",
            "s",
            "pause",
            "deploy",
            "history",
            "healthz",
            "metrics",
            "..",
            "%2e",
            "%00",
            "%ff",
            "%",
            "*",
            "{name}",
        ])
        .prop_map(str::to_owned),
        "[!-~&&[^ ?#]]{0,12}",
    ];
    let pair = prop_oneof![
        "(key|key_hex|from|to|prefix|limit|partition|cursor|reverse|by|to|no_rollback)=[!-~&&[^#]]{0,12}",
        "[!-~&&[^#]]{0,20}",
    ];
    let parts = (prop::collection::vec(word, 0..5), prop::collection::vec(pair, 0..4));
    parts.prop_map(|(path, query)| match query.is_empty() {
        true => format!("/{}", path.join("/")),
        false => format!("/{}?{}", path.join("/"), query.join("&")),
    })
}

#[test]
fn nothing_that_is_asked_is_a_failure_of_ours() {
    let rig = Rig::plain();
    let method = prop::sample::select(vec!["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "get", "X"]);
    let header = "[a-zA-Z-]{1,12}: [ -~]{0,20}";
    let headers = prop::collection::vec(header, 0..4);
    let body = prop::collection::vec(any::<u8>(), 0..200);
    let config = ProptestConfig { cases: 400, ..ProptestConfig::default() };
    proptest!(config, |(method in method, target in target(), headers in headers, body in body)| {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{}\r\n",
            rig.address, body.len(), headers.iter().map(|header| format!("{header}\r\n")).collect::<String>()
        );
        let answer = send(&rig.address, &[head.as_bytes(), &body].concat());
        prop_assert!(answer.as_ref().is_none_or(|answer| answer.status < 500), "{head}: {answer:?}");
    });
    assert_eq!(get(&rig.address, "/healthz").status, 200);
}

#[test]
fn bytes_that_are_no_request_end_their_connection_and_nothing_else() {
    let rig = Rig::plain();
    let noise = prop::collection::vec(any::<u8>(), 1..300);
    let config = ProptestConfig { cases: 100, ..ProptestConfig::default() };
    proptest!(config, |(noise in noise)| {
        let mut stream = connect(&rig.address);
        let _ = stream.write_all(&noise);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = raw::receive(&mut stream);
        prop_assert!(answer.as_ref().is_none_or(|answer| answer.status < 500), "{answer:?}");
    });
    assert_eq!(get(&rig.address, "/healthz").status, 200);
}
