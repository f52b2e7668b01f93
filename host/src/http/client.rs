//! The other side: how the command line finds a running host and asks it.

use super::note::Note;
use super::wire::ErrorReply;
use crate::config::settings::{Admin, Application};
use reqwest::blocking::{Client as Http, RequestBuilder};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Method, Url};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How a host is to be reached.
#[derive(Clone, Copy)]
pub struct Reach<'a> {
    pub application: &'a Application,
    /// An address that was named, instead of the note in the state folder.
    pub host: Option<&'a str>,
}

/// A running host.
pub struct Client {
    http: Http,
    base: Url,
    token: Option<String>,
    /// What a host that does not answer is called.
    name: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no host.
    NotRunning(String),
    /// There may be one, and it cannot be asked.
    Unreachable(String),
    /// It answers, and does not do it.
    Refused { status: u16, code: String, message: String, hint: Option<String> },
}

const CONNECT: Duration = Duration::from_secs(5);
/// For a question.
const QUESTION: Duration = Duration::from_secs(30);
/// For a change: a deploy compiles, probes and waits until the tasks run the version.
const CHANGE: Duration = Duration::from_secs(15 * 60);

impl Client {
    /// Finds the host, without asking it anything yet.
    pub fn find(reach: Reach<'_>) -> Result<Client, Failure> {
        let admin = &reach.application.admin;
        let (address, name) = match reach.host {
            Some(host) => (with_scheme(host, admin), format!("the host at {host}")),
            None => here(reach.application)?,
        };
        let unusable = |error: &dyn fmt::Display| Failure::Unreachable(format!("{address} is no address: {error}"));
        let base = Url::parse(&address).map_err(|error| unusable(&error))?;
        if base.cannot_be_a_base() {
            return Err(unusable(&"it has no host"));
        }
        let http = http(admin, reach.host.is_none()).map_err(|error| unusable(&cause(&error)))?;
        Ok(Client { http, base, token: admin.token.clone(), name })
    }

    /// Asks a question; `path` in parts, which may hold anything.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, String)]) -> Result<T, Failure> {
        self.send(self.request(Method::GET, path, query).timeout(QUESTION))
    }

    /// Asks for a change.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        component: Option<Vec<u8>>,
    ) -> Result<T, Failure> {
        let request = self.request(Method::POST, path, query).timeout(CHANGE);
        self.send(match component {
            Some(bytes) => request.header(CONTENT_TYPE, "application/wasm").body(bytes),
            None => request,
        })
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let response = request.send().map_err(|error| self.unanswered(&error))?;
        let status = response.status().as_u16();
        let is_success = response.status().is_success();
        let body = response.bytes().map_err(|error| self.unanswered(&error))?;
        if !is_success {
            return Err(refused(status, &body));
        }
        let odd = |error| Failure::Unreachable(format!("{} answers as no host of this release: {error}", self.name));
        serde_json::from_slice(&body).map_err(odd)
    }

    fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let Client { name, base, .. } = self;
        match is_nobody(error) {
            true => Failure::NotRunning(format!("{name} is not running: nothing listens at {base}")),
            false => Failure::Unreachable(format!("{name} does not answer at {base}: {}", cause(error))),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotRunning(message) | Failure::Unreachable(message) => f.write_str(message),
            Failure::Refused { message, hint: None, .. } => f.write_str(message),
            Failure::Refused { message, hint: Some(hint), .. } => write!(f, "{message} ({hint})"),
        }
    }
}

impl Error for Failure {}

/// The host of the application's state folder: its address, and what it is called.
fn here(application: &Application) -> Result<(String, String), Failure> {
    let folder = &application.state_dir;
    let name = format!("the host of application {} with the state folder {}", application.id, folder.display());
    let gone = |why: &str| {
        let hint = "start it with `pelton run`, or name another with --state-dir or --host";
        Failure::NotRunning(format!("{name} is not running{why} ({hint})"))
    };
    match Note::read(folder) {
        Ok(Some(note)) if note.is_alive() => Ok((note.address, name)),
        Ok(Some(note)) => Err(gone(&format!(": its process {} is gone", note.pid))),
        Ok(None) => Err(gone("")),
        Err(error) => Err(Failure::Unreachable(format!("{}: {error}", folder.join("admin.json").display()))),
    }
}

/// What is named without a scheme is reached as its settings say.
fn with_scheme(host: &str, admin: &Admin) -> String {
    let is_safe = admin.tls.is_some() || admin.behind_proxy;
    match host {
        host if host.contains("://") => host.to_owned(),
        host if is_safe => format!("https://{host}"),
        host => format!("http://{host}"),
    }
}

fn http(admin: &Admin, is_here: bool) -> reqwest::Result<Http> {
    // what is on this machine is not asked by way of a proxy, whatever the environment says
    let builder = Http::builder().no_proxy().redirect(Policy::none()).connect_timeout(CONNECT);
    let own = admin.tls.as_ref().map(|(certificate, _)| certificates(certificate)).unwrap_or_default();
    let builder = match own {
        own if own.is_empty() => builder,
        // its address here is in no certificate, and only this one will do
        own if is_here => builder.tls_certs_only(own).tls_danger_accept_invalid_hostnames(true),
        own => builder.tls_certs_merge(own),
    };
    builder.build()
}

/// Those of the application file, where this user can read them.
fn certificates(file: &Path) -> Vec<Certificate> {
    std::fs::read(file).ok().and_then(|pem| Certificate::from_pem_bundle(&pem).ok()).unwrap_or_default()
}

fn refused(status: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice(body) {
        Ok(ErrorReply { code, message, hint }) => Failure::Refused { status, code, message, hint },
        Err(_) => {
            let message = format!("the host answers with status {status}");
            Failure::Refused { status, code: "status".to_owned(), message, hint: None }
        }
    }
}

/// The innermost reason; the outer ones only say that something was sent.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Whether nobody listens. Somebody who speaks no TLS, or has a certificate that is not trusted, is there.
fn is_nobody(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}
