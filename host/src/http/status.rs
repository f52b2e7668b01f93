//! What the host is doing, in all or of one processor; and the description of this surface.

use super::App;
use super::answer::{Answered, Refusal, ok};
use super::query::Query;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// `docs/openapi.json`, as it is.
pub(super) const DESCRIPTION: &str = include_str!("../../../docs/openapi.json");

pub(super) async fn status(State(app): State<App>, RawQuery(query): RawQuery) -> Answered {
    Query::read(query.as_deref(), &[])?;
    ok(&app.look(|host| host.status()).await?)
}

pub(super) async fn processor(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::read(query.as_deref(), &[])?;
    let name = part(name)?;
    let status = app.look(|host| host.status()).await?;
    match status.processors.into_iter().find(|processor| processor.name == name) {
        Some(processor) => ok(&processor),
        None => Err(no_processor(&name)),
    }
}

pub(super) async fn history(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Answered {
    Query::read(query.as_deref(), &[])?;
    let name = part(name)?;
    ok(&app.look(move |host| host.history(&name)).await?)
}

pub(super) async fn description(RawQuery(query): RawQuery) -> Answered {
    Query::read(query.as_deref(), &[])?;
    Ok(([(CONTENT_TYPE, "application/json")], DESCRIPTION).into_response())
}

/// What stands in the path, decoded.
pub(super) fn part<T>(found: Result<Path<T>, PathRejection>) -> Result<T, Refusal> {
    let bad = |_| Refusal::bad("bad-path", "a part of the path is not UTF-8");
    found.map(|Path(part)| part).map_err(bad)
}

fn no_processor(name: &str) -> Refusal {
    let message = format!("there is no processor {name}");
    Refusal::new(StatusCode::NOT_FOUND, "processor-unknown", message).hint("GET /v1/status lists those that there are")
}
