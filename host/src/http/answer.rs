//! Answers: JSON, and one form for everything that is refused.

use crate::model::{Fault, Verdict};
use axum::Json;
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Why a request is not answered with what it asked for.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
    /// What else stands in the answer, by name.
    pub more: Map<String, Value>,
}

/// What a handler comes to.
pub(super) type Answered = Result<Response, Refusal>;

/// Codes of faults that say that something is not there.
const ABSENT: &[&str] = &["processor-unknown", "store-unknown", "partition-unknown", "version-unknown"];
/// Codes of faults that say that something else is going on, or went before.
const CONFLICTS: &[&str] = &["deploy-overtaken"];

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, code, message: message.into(), hint: None, more: Map::new() }
    }

    /// A request that makes no sense.
    pub(super) fn bad(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Refusal {
        self.more.insert(name.to_owned(), value.into());
        self
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let Fault { code, message, hint, .. } = &fault;
        Refusal { status: status(&fault), code, message: message.clone(), hint: hint.clone(), more: Map::new() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({"code": self.code, "message": self.message, "hint": self.hint});
        if let Value::Object(fields) = &mut body {
            fields.extend(self.more);
        }
        let extra = match self.status {
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "1")),
            _ => None,
        };
        let mut response = (self.status, Json(body)).into_response();
        extra.into_iter().for_each(|(name, value)| put(&mut response, name, value));
        response
    }
}

/// A JSON answer.
pub(super) fn ok(body: &impl Serialize) -> Answered {
    Ok(Json(body).into_response())
}

/// What every answer carries: it is for the one who asked, now, and is what it says.
pub(super) fn finish(mut response: Response) -> Response {
    put(&mut response, CACHE_CONTROL, "no-store");
    put(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn put(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

fn status(fault: &Fault) -> StatusCode {
    match fault.verdict {
        Verdict::Fatal if ABSENT.contains(&fault.code) => StatusCode::NOT_FOUND,
        _ if CONFLICTS.contains(&fault.code) => StatusCode::CONFLICT,
        Verdict::Transient | Verdict::Corrupt => StatusCode::SERVICE_UNAVAILABLE,
        Verdict::Fenced => StatusCode::CONFLICT,
        Verdict::Record | Verdict::Fatal => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_their_statuses() {
        let of = |fault: Fault| Refusal::from(fault).status.as_u16();
        assert_eq!(of(Fault::fatal("processor-unknown", "x")), 404);
        assert_eq!(of(Fault::transient("starting", "x")), 503);
        assert_eq!(of(Fault::transient("deploy-overtaken", "x")), 409);
        assert_eq!(of(Fault::fenced("producer-fenced", "x")), 409);
        assert_eq!(of(Fault::fatal("plugin-core-module", "x")), 422);
    }
}
