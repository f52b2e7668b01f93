//! The admin surface: health, metrics, status, state and deploys over HTTP, and the client by which the command line asks a running
//! host. The only room that names the web crates. It decides nothing: every answer is the host's.

mod access;
mod answer;
mod asked;
mod changes;
mod client;
mod connection;
mod cursor;
mod decode;
mod health;
mod lanes;
mod listen;
mod note;
mod query;
mod router;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod wire;

pub use asked::Asked;
pub use client::{Client, Failure, Reach};
pub use note::Note;
pub use wire::{EntryReply, PageReply, PauseReply, ValueReply};

use crate::config::settings::Admin;
use crate::model::Fault;
use connection::{Server, Transport};
use lanes::Lanes;
use listen::Listening;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Gives the metrics page.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// An admin surface that answers until it is dropped.
pub struct Surface {
    server: Server,
    note: Note,
    folder: PathBuf,
    /// Let go of last: what is in it may not end on a thread that serves connections.
    _host: Arc<dyn Asked>,
}

/// What every request is answered from.
#[derive(Clone)]
struct App {
    host: Arc<dyn Asked>,
    metrics: RenderMetrics,
    lanes: Lanes,
}

/// Listens where the application file says so and leaves a note of the address in the state folder.
///
/// Fatal, with the setting's name, where that cannot be done.
pub fn open(host: Arc<dyn Asked>, admin: &Admin, state_dir: &Path, metrics: RenderMetrics) -> Result<Surface, Fault> {
    let Listening { socket, tls, url, told } = listen::listen(admin)?;
    let identity = host.identity();
    let note = Note {
        address: url,
        pid: identity.pid,
        instance: identity.instance.clone(),
        application: identity.application.clone(),
    };
    let app = App { host: host.clone(), metrics, lanes: Lanes::default() };
    let server = Server::start(socket, Transport::of(tls), router::router(app, access::Access::of(admin)))?;
    note.put(state_dir)?;
    tracing::info!(address = note.address, "the admin surface listens");
    if let Some(told) = told {
        host.listens_at(&told);
    }
    Ok(Surface { server, note, folder: state_dir.to_owned(), _host: host })
}

/// What [`open`] would refuse, as far as that can be seen without listening.
pub fn check(admin: &Admin) -> Result<(), Fault> {
    listen::tls(admin).map(drop)
}

impl Drop for Surface {
    fn drop(&mut self) {
        self.note.remove(&self.folder);
        self.server.stop();
    }
}
