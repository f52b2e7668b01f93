//! A running host asked over its admin surface, by the address that it leaves in its state folder.

use crate::app::App;
use crate::wait;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// As long as an answer may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Where a host of an application can be asked.
pub struct Window {
    address: String,
}

impl Window {
    /// Waits until host `n` of an application has said where it listens.
    pub fn of(app: &App, n: u32, pid: u32) -> Window {
        let file = app.state_dir(n).join("admin.json");
        let what = format!("{} host {n} says where it listens", app.id);
        wait::until(&what, Duration::from_secs(60), || {
            let note: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
            let address = note["address"].as_str()?.strip_prefix("http://")?.to_owned();
            // one of an earlier life may still be there
            (note["pid"] == pid).then_some(Window { address })
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Code and body of a GET; `None` where nobody answers.
    pub fn try_get(&self, path: &str) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let code = text.split(' ').nth(1)?.parse().ok()?;
        let body = text.split_once("\r\n\r\n")?.1;
        Some((code, serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()))))
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        self.try_get(path).unwrap_or_else(|| panic!("{} does not answer {path}", self.address))
    }

    /// `/v1/status`, once the host knows its topics.
    pub fn status(&self) -> Value {
        wait::until("the host can be asked", Duration::from_secs(60), || {
            let (code, body) = self.get("/v1/status");
            (code == 200).then_some(body)
        })
    }

    /// Whether it is live and ready, as the two pages have it, and its reasons.
    pub fn health(&self) -> (bool, bool, Vec<String>) {
        let ((live, _), (ready, body)) = (self.get("/healthz"), self.get("/readyz"));
        let reasons = body["reasons"].as_array().into_iter().flatten();
        (live == 200, ready == 200, reasons.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Waits until the status is as `wanted` says; gives it.
    pub fn until(&self, what: &str, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until(what, limit, || Some(self.status()).filter(&wanted))
    }

    /// Waits until the host is ready, or is not.
    pub fn ready(&self, wanted: bool, limit: Duration) -> Vec<String> {
        wait::until(&format!("ready is {wanted}"), limit, || {
            let (_, ready, reasons) = self.health();
            (ready == wanted).then_some(reasons)
        })
    }
}
