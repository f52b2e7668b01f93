//! Who may ask: who has the token, or on loopback who is no web page.

use super::answer::Refusal;
use crate::config;
use crate::config::settings::Admin;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Answered to anybody, so that an orchestrator needs no secret.
const OPEN: &[&str] = &["/healthz", "/readyz"];

/// The rule of one surface.
pub(super) struct Access {
    /// The token's digest: digests are of one length, and tell nothing of how much of a guess was right.
    token: Option<[u8; 32]>,
    is_loopback: bool,
}

impl Access {
    pub(super) fn of(admin: &Admin) -> Access {
        let is_loopback = config::address(&admin.listen).is_some_and(|address| address.ip().is_loopback());
        Access { token: admin.token.as_deref().map(|token| digest(token.as_bytes())), is_loopback }
    }

    fn admits(&self, request: &Request) -> Result<(), Refusal> {
        match &self.token {
            Some(token) => {
                let is_open = OPEN.contains(&request.uri().path());
                if is_open || carries(request.headers(), token) { Ok(()) } else { Err(token_wanted()) }
            }
            // what listens elsewhere has a token: the settings see to that
            None if self.is_loopback => no_web_page(request),
            None => Err(token_wanted()),
        }
    }
}

/// Before anything else is looked at: without the token nobody learns which paths there are.
pub(super) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    match access.admits(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn carries(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let (scheme, given) = value.as_bytes().split_at(value.len().min("Bearer ".len()));
    scheme.eq_ignore_ascii_case(b"bearer ") && same(&digest(given.trim_ascii()), token)
}

/// In a time that does not depend on where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn token_wanted() -> Refusal {
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "token-wanted", "the bearer token is missing or another one");
    refusal.hint("send `Authorization: Bearer TOKEN` with the value of admin.token")
}

/// A web page that a browser on this machine shows can send requests to loopback: under a name of its own that it has pointed here, or
/// without being able to read the answers. Neither may do anything.
fn no_web_page(request: &Request) -> Result<(), Refusal> {
    let names = request.headers().get_all(HOST).iter().map(|value| value.to_str().unwrap_or("?"));
    let in_line = request.uri().authority().map(|authority| authority.as_str());
    if names.chain(in_line).any(|name| !is_loopback_name(name)) {
        let message = "the request names a host other than this machine's loopback";
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "host-refused", message);
        return Err(refusal.hint("ask 127.0.0.1 or localhost; for other names set admin.token"));
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && request.headers().contains_key(ORIGIN) {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "origin-refused", "the request comes from a web page");
        return Err(refusal.hint("web pages may change nothing without a token: set admin.token"));
    }
    Ok(())
}

/// `localhost`, or an address of loopback, with or without a port.
fn is_loopback_name(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split_once(']').and_then(|(address, _)| address.parse::<Ipv6Addr>().ok());
        return address.is_some_and(|address| address.is_loopback());
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        let builder = Request::builder().method(method).uri(path);
        let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
        builder.body(Body::empty()).unwrap()
    }

    fn access(listen: &str, token: Option<&str>) -> Access {
        let token = token.map(str::to_owned);
        Access::of(&Admin { listen: listen.to_owned(), token, ..Admin::default() })
    }

    fn code(access: &Access, request: &Request) -> &'static str {
        access.admits(request).map_or_else(|refusal| refusal.code, |()| "")
    }

    #[test]
    fn a_token_opens_everything_and_nothing_else_does() {
        let access = access("0.0.0.0:9400", Some("secret"));
        let ask = |path, headers: &[(&str, &str)]| code(&access, &request("GET", path, headers));
        assert_eq!(ask("/v1/status", &[("authorization", "Bearer secret")]), "");
        assert_eq!(ask("/v1/status", &[("authorization", "bearer  secret ")]), "");
        assert_eq!(ask("/healthz", &[]), "");
        assert_eq!(ask("/readyz?x", &[]), "");
        for path in ["/v1/status", "/metrics", "/openapi.json", "/nowhere", "/healthz/", "//healthz", "/HEALTHZ"] {
            assert_eq!(ask(path, &[]), "token-wanted", "{path}");
        }
        let wrong =
            ["Bearer", "Bearer ", "Bearer secre", "Bearer secret2", "Basic secret", "secret", "", "Bearersecret"];
        for value in wrong {
            assert_eq!(ask("/metrics", &[("authorization", value)]), "token-wanted", "{value}");
        }
        let twice = [("authorization", "Bearer secret"), ("authorization", "Bearer wrong")];
        assert_eq!(ask("/metrics", &twice), "token-wanted");
    }

    #[test]
    fn what_is_neither_loopback_nor_has_a_token_answers_nobody() {
        let access = access("0.0.0.0:9400", None);
        assert_eq!(code(&access, &request("GET", "/healthz", &[])), "token-wanted");
    }

    #[test]
    fn other_names_for_loopback_are_refused() {
        let access = access("127.0.0.1:0", None);
        let ask = |host| code(&access, &request("GET", "/v1/status", &[("host", host)]));
        for own in ["127.0.0.1:9400", "127.9.9.9", "localhost", "LOCALHOST:80", "[::1]:9400", "[::1]"] {
            assert_eq!(ask(own), "", "{own}");
        }
        let others = [
            "evil.example",
            "evil.example:9400",
            "localhost.evil.example",
            "10.0.0.1",
            "[::2]:1",
            "",
            "::1:",
            "[::1",
            "a@127.0.0.1",
        ];
        for other in others {
            assert_eq!(ask(other), "host-refused", "{other}");
        }
        assert_eq!(code(&access, &request("GET", "http://evil.example/v1/status", &[])), "host-refused");
        let two = [("host", "127.0.0.1"), ("host", "evil.example")];
        assert_eq!(code(&access, &request("GET", "/healthz", &two)), "host-refused");
        assert_eq!(code(&access, &request("GET", "/healthz", &[])), "", "a probe may name none");
    }

    #[test]
    fn a_web_page_changes_nothing() {
        let access = access("[::1]:0", None);
        let ask = |method| code(&access, &request(method, "/v1/processors/p/pause", &[("origin", "http://127.0.0.1")]));
        assert_eq!((ask("POST"), ask("DELETE"), ask("GET")), ("origin-refused", "origin-refused", ""));
    }
}
