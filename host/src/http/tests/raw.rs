//! Requests as bytes on a connection, so that they can be wrong in every way.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer taken apart.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(super) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

/// Sends bytes, and gives what comes until the connection ends; `None` where nothing does.
pub(super) fn send(address: &str, bytes: &[u8]) -> Option<Answer> {
    let mut stream = connect(address);
    // an answer may come, and the connection end, before all is sent
    let _ = stream.write_all(bytes);
    receive(&mut stream)
}

pub(super) fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

pub(super) fn receive(stream: &mut TcpStream) -> Option<Answer> {
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(received[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head, body: received[end + 4..].to_vec() })
}

/// A request without a body, on a connection of its own.
pub(super) fn ask(address: &str, method: &str, path: &str) -> Answer {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    send(address, request.as_bytes()).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

pub(super) fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path)
}

/// A request with a body.
pub(super) fn post(address: &str, path: &str, kind: &str, body: &[u8]) -> Answer {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    send(address, &[head.as_bytes(), body].concat()).unwrap_or_else(|| panic!("no answer to {path}"))
}
