//! Which path is answered by what.

use super::access::{self, Access};
use super::answer::{Refusal, finish};
use super::{App, changes, health, state, status};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::{get, post};
use std::sync::Arc;

pub(super) fn router(app: App, access: Access) -> Router {
    Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(status::description))
        .route("/v1/status", get(status::status))
        .route("/v1/state/{processor}/{store}", get(state::read))
        .route("/v1/processors/{name}", get(status::processor))
        .route("/v1/processors/{name}/history", get(status::history))
        .route("/v1/processors/{name}/deploy", post(changes::deploy))
        .route("/v1/processors/{name}/rollback", post(changes::rollback))
        .route("/v1/processors/{name}/pause", post(changes::pause))
        .route("/v1/processors/{name}/resume", post(changes::resume))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app)
        .layer(from_fn_with_state(Arc::new(access), access::check))
        .layer(map_response(async |response| finish(response)))
}

async fn no_such_path() -> Refusal {
    let refusal = Refusal::new(StatusCode::NOT_FOUND, "path-unknown", "there is nothing at this path");
    refusal.hint("GET /openapi.json describes what there is")
}

async fn no_such_method(request: Request) -> Refusal {
    let message = format!("this path does not take {}", request.method().as_str().chars().take(20).collect::<String>());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", message)
}
