//! Connections: so many at a time, none that is slow for long, and a thread that serves them.

use crate::model::Fault;
use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_openssl::{OpenSSLAcceptor, OpenSSLConfig};
use std::future::{Future, Ready, ready};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::Sleep;

/// Connections at a time; more are closed at once.
const CONNECTIONS: usize = 128;
/// Within which a request's head must be there, counted from the end of the one before.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// How long a reader may take nothing of what is ready for it.
const STALL: Duration = Duration::from_secs(20);
/// How long requests have that are being answered when the surface ends.
const LAST: Duration = Duration::from_millis(500);
/// Threads for questions that may take a while, beyond what the lanes let through.
const SPARE_THREADS: usize = 16;

/// A server on a thread of its own.
pub(super) struct Server {
    runtime: Option<Runtime>,
    handle: Handle<SocketAddr>,
    served: Option<JoinHandle<io::Result<()>>>,
}

/// What lies between a connection and its requests.
pub(super) enum Transport {
    Plain,
    Tls(OpenSSLConfig),
}

impl Transport {
    pub(super) fn of(tls: Option<OpenSSLConfig>) -> Transport {
        tls.map_or(Transport::Plain, Transport::Tls)
    }
}

impl Server {
    pub(super) fn start(socket: TcpListener, transport: Transport, router: Router) -> Result<Server, Fault> {
        let fail = |error: io::Error| Fault::fatal("no-thread", format!("starting the admin surface: {error}"));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(SPARE_THREADS).thread_name("admin");
        let runtime = builder.enable_all().build().map_err(fail)?;
        let _inside = runtime.enter();
        let handle = Handle::new();
        let mut server = axum_server::from_tcp(socket).map_err(fail)?.http1_only().handle(handle.clone());
        server.http_builder().http1().header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
        let server = server.first_request_timeout(HEAD);
        let (gate, service) = (Gate::default(), router.into_make_service());
        let served = match transport {
            Transport::Plain => runtime.spawn(server.acceptor(gate).serve(service)),
            Transport::Tls(config) => {
                let acceptor = OpenSSLAcceptor::new(config).handshake_timeout(HEAD).acceptor(gate);
                runtime.spawn(server.acceptor(acceptor).serve(service))
            }
        };
        drop(_inside);
        Ok(Server { runtime: Some(runtime), handle, served: Some(served) })
    }

    /// Lets what is being answered end, for a moment.
    pub(super) fn stop(&mut self) {
        let (Some(runtime), Some(served)) = (self.runtime.take(), self.served.take()) else { return };
        self.handle.graceful_shutdown(Some(LAST));
        let _ = runtime.block_on(async { tokio::time::timeout(LAST * 2, served).await });
        // for the threads that serve; a question that the host has not answered by then is left alone
        runtime.shutdown_timeout(LAST);
    }
}

/// Takes so many connections.
#[derive(Clone)]
struct Gate {
    places: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Gate { places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl<S> Accept<TcpStream, S> for Gate {
    type Stream = Watched;
    type Service = S;
    type Future = Ready<io::Result<(Watched, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let place = self.places.clone().try_acquire_owned();
        let place = place.map_err(|_| io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections"));
        ready(place.map(|place| (Watched { stream, stalled: None, _place: place }, service)))
    }
}

/// A connection that ends where its reader stalls. Slow writers are seen where heads and bodies are read.
struct Watched {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl Watched {
    fn watch(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
