//! A TCP proxy on loopback between clients and broker. It can be cut: open connections are closed and new ones are refused by closing
//! them. And it can refuse writes to one topic, as a broker does while too few replicas are in sync.

use crate::refusal;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    target: u16,
    cut: AtomicBool,
    ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
    refused: Mutex<Option<String>>,
}

/// The way back to a client, for whoever has a whole answer.
type Back = Arc<Mutex<TcpStream>>;

impl Proxy {
    /// Listens on `port` (0: any) and forwards to `target`.
    pub fn start(port: u16, target: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the proxy's port is free");
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            target,
            cut: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
            refused: Mutex::new(None),
        });
        let of_thread = shared.clone();
        let accepting = Some(thread::spawn(move || accept(&listener, &of_thread)));
        Proxy { shared, port, accepting }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Closes every connection and lets no new one live until [`Proxy::heal`].
    pub fn cut(&self) {
        self.shared.cut.store(true, Ordering::SeqCst);
        self.shared.close_all();
    }

    /// Answers every write to this topic with a refusal until [`Proxy::heal`].
    pub fn refuse(&self, topic: &str) {
        *self.shared.refused.lock().unwrap() = Some(topic.to_owned());
    }

    pub fn heal(&self) {
        *self.shared.refused.lock().unwrap() = None;
        self.shared.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.close_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the accepting thread
        let _ = self.accepting.take().map(JoinHandle::join); // the port is free for the next one
    }
}

impl Shared {
    fn close_all(&self) {
        self.open.lock().unwrap().drain(..).for_each(|s| drop(s.shutdown(Shutdown::Both)));
    }

    /// What is said to the client in the broker's place.
    fn refusal(&self, request: &[u8]) -> Option<Vec<u8>> {
        let refused = self.refused.lock().unwrap();
        refused.as_ref().and_then(|topic| refusal::answer(request, topic))
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        if shared.cut.load(Ordering::SeqCst) {
            continue;
        }
        if let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target)) {
            join(client, server, shared);
        }
    }
}

fn join(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
        shared.open.lock().unwrap().push(stream.try_clone().unwrap());
    }
    let back: Back = Arc::new(Mutex::new(client.try_clone().unwrap()));
    let (to_server, from_server, to_client, shared_there) =
        (server.try_clone().unwrap(), server, back.clone(), shared.clone());
    thread::spawn(move || there(client, to_server, &to_client, &shared_there));
    thread::spawn(move || back_again(from_server, &back));
    if shared.cut.load(Ordering::SeqCst) {
        shared.close_all(); // cut while this one was on its way
    }
}

/// Requests to the broker, but those that are refused.
fn there(mut client: TcpStream, mut server: TcpStream, back: &Back, shared: &Shared) {
    while let Ok(Some(request)) = frame(&mut client) {
        let sent = match shared.refusal(&request) {
            Some(answer) => send(&mut back.lock().unwrap(), &answer),
            None => send(&mut server, &request),
        };
        if sent.is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn back_again(mut server: TcpStream, back: &Back) {
    while let Ok(Some(answer)) = frame(&mut server) {
        if send(&mut back.lock().unwrap(), &answer).is_err() {
            break;
        }
    }
    let _ = back.lock().unwrap().shutdown(Shutdown::Both);
}

/// What follows the next length; `None` at the end.
fn frame(from: &mut TcpStream) -> Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn send(to: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let length = u32::try_from(bytes.len()).expect("a frame that was read").to_be_bytes();
    to.write_all(&[&length[..], bytes].concat())
}
