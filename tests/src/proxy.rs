//! A TCP proxy on loopback that can be cut: while cut, open connections are closed and new ones are refused by closing them.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    target: u16,
    cut: AtomicBool,
    ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

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
        });
        let accepting = shared.clone();
        thread::spawn(move || accept(&listener, &accepting));
        Proxy { shared, port }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Closes every connection and lets no new one live until [`Proxy::heal`].
    pub fn cut(&self) {
        self.shared.cut.store(true, Ordering::SeqCst);
        self.shared.close_all();
    }

    pub fn heal(&self) {
        self.shared.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.close_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes the accepting thread
    }
}

impl Shared {
    fn close_all(&self) {
        self.open.lock().unwrap().drain(..).for_each(|s| drop(s.shutdown(Shutdown::Both)));
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
            join(&client, &server, shared);
        }
    }
}

fn join(client: &TcpStream, server: &TcpStream, shared: &Shared) {
    for stream in [client, server] {
        let _ = stream.set_nodelay(true);
        shared.open.lock().unwrap().push(stream.try_clone().unwrap());
    }
    pump(client.try_clone().unwrap(), server.try_clone().unwrap());
    pump(server.try_clone().unwrap(), client.try_clone().unwrap());
    if shared.cut.load(Ordering::SeqCst) {
        shared.close_all(); // cut while this one was on its way
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}
