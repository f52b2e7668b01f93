//! Health and metrics: answered at once, whatever else is asked.

use super::App;
use super::answer::Answered;
use super::query::Query;
use crate::runtime::Snapshot;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(super) async fn live(State(app): State<App>, RawQuery(query): RawQuery) -> Answered {
    Query::read(query.as_deref(), &[])?;
    let health = app.host.health();
    Ok(told(health.live, &health))
}

pub(super) async fn ready(State(app): State<App>, RawQuery(query): RawQuery) -> Answered {
    Query::read(query.as_deref(), &[])?;
    let health = app.host.health();
    Ok(told(health.ready, &health))
}

pub(super) async fn metrics(State(app): State<App>, RawQuery(query): RawQuery) -> Answered {
    Query::read(query.as_deref(), &[])?;
    Ok(([(CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], (app.metrics)()).into_response())
}

fn told(well: bool, health: &Snapshot) -> Response {
    let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let Snapshot { live, ready, reasons } = health;
    (status, Json(json!({"live": live, "ready": ready, "reasons": reasons}))).into_response()
}
