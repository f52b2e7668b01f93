//! A host's admin surface from outside: its note, plain requests, and bytes that are no requests.

use crate::app::App;
use crate::wait;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

/// What a request came to.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Where a host listens.
#[derive(Clone, Debug)]
pub struct Admin {
    pub address: SocketAddr,
    pub token: Option<String>,
}

/// The note of host `n`.
pub fn note_file(app: &App, n: u32) -> PathBuf {
    app.state_dir(n).join("admin.json")
}

/// What stands in it; `None` where it is not there.
pub fn note(app: &App, n: u32) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(note_file(app, n)).ok()?).ok()
}

impl Admin {
    /// Waits until host `n`, whose process has this id, says where it listens.
    pub fn of(app: &App, n: u32, pid: u32) -> Admin {
        let what = format!("host {n} of {} says where it listens", app.id);
        let note = wait::until(&what, Duration::from_secs(60), || note(app, n).filter(|note| note["pid"] == pid));
        let address = note["address"].as_str().and_then(|url| url.split_once("://")).expect("a URL").1;
        Admin { address: address.parse().expect("an address with a port"), token: None }
    }

    /// The same surface by this machine's other address.
    pub fn from_outside(&self) -> Admin {
        Admin { address: SocketAddr::new(outside(), self.address.port()), token: None }
    }

    pub fn with_token(&self, token: &str) -> Admin {
        Admin { token: Some(token.to_owned()), ..self.clone() }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "", &[])
    }

    pub fn post(&self, path: &str) -> Reply {
        self.ask("POST", path, "", &[])
    }

    /// `headers` are whole lines.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let reply = self.send(&self.request(method, path, headers, body), false);
        reply.unwrap_or_else(|| panic!("no reply to {method} {path}"))
    }

    /// [`Admin::ask`]; `None` where nobody listens, or the host ends without an answer.
    pub fn try_ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<Reply> {
        TcpStream::connect(self.address).ok()?;
        self.send(&self.request(method, path, headers, body), false)
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{token}{headers}\r\n",
            self.address,
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    /// Any bytes; `None` where nothing comes back that could be a reply. With `done`, says that no more will come: who says so does
    /// not wait for an answer that takes a while.
    pub fn send(&self, bytes: &[u8], done: bool) -> Option<Reply> {
        let mut stream = TcpStream::connect(self.address).expect("somebody listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // the reply may come, and the connection end, before all is sent
        let _ = stream.write_all(bytes);
        if done {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        Reply::parse(&received)
    }

    /// Waits until the host is ready.
    pub fn ready(&self) {
        wait::until("the host is ready", Duration::from_secs(120), || {
            (self.get("/readyz").status == 200).then_some(())
        });
    }
}

/// What the surface says of the host.
impl Admin {
    /// Status and body of a GET; `None` where nobody answers.
    pub fn try_look(&self, path: &str) -> Option<(u16, Value)> {
        let reply = self.try_ask("GET", path, "", &[])?;
        let text = || Value::String(String::from_utf8_lossy(&reply.body).into_owned());
        Some((reply.status, serde_json::from_slice(&reply.body).unwrap_or_else(|_| text())))
    }

    pub fn look(&self, path: &str) -> (u16, Value) {
        self.try_look(path).unwrap_or_else(|| panic!("{} does not answer {path}", self.address))
    }

    /// `/v1/status`, once the host knows its topics.
    pub fn status(&self) -> Value {
        wait::until("the host can be asked", Duration::from_secs(60), || {
            let (code, body) = self.look("/v1/status");
            (code == 200).then_some(body)
        })
    }

    /// Whether it is live and ready, as the two pages have it, and its reasons.
    pub fn health(&self) -> (bool, bool, Vec<String>) {
        let ((live, _), (ready, body)) = (self.look("/healthz"), self.look("/readyz"));
        let reasons = body["reasons"].as_array().into_iter().flatten();
        (live == 200, ready == 200, reasons.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Waits until the status is as `wanted` says; gives it.
    pub fn until(&self, what: &str, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until(what, limit, || Some(self.status()).filter(&wanted))
    }

    /// Waits until the host is ready, or is not; gives its reasons.
    pub fn becomes_ready(&self, wanted: bool, limit: Duration) -> Vec<String> {
        wait::until(&format!("ready is {wanted}"), limit, || {
            let (_, ready, reasons) = self.health();
            (ready == wanted).then_some(reasons)
        })
    }
}

impl Reply {
    fn parse(received: &[u8]) -> Option<Reply> {
        let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8(received[..end].to_vec()).expect("heads are ASCII");
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Reply { status, head, body: received[end + 4..].to_vec() })
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned()
    }
}

/// This machine's address towards others, where it has one: nothing is sent to find out.
fn outside() -> IpAddr {
    let found = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    found.map_or_else(|_| Ipv4Addr::LOCALHOST.into(), |address| address.ip())
}
