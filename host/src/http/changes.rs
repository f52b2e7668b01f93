//! What changes something: deploys, rollbacks, pauses.

use super::App;
use super::answer::{Answered, Refusal, ok};
use super::query::{Query, bad};
use super::status::part;
use super::wire::PauseReply;
use crate::runtime::control::{Deploy, Rollback};
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::timeout;

/// Largest component.
pub(super) const COMPONENT_BYTES: usize = 64 << 20;
/// Longest `by` and `to`.
const NAME_LENGTH: usize = 200;
/// How long a sender may send nothing, and may take in all.
const SILENCE: Duration = Duration::from_secs(20);
const WHOLE: Duration = Duration::from_secs(120);

type Name = Result<Path<String>, PathRejection>;

pub(super) async fn deploy(
    State(app): State<App>,
    name: Name,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    let query = Query::read(query.as_deref(), &["by", "no_rollback"])?;
    let (processor, by, no_rollback) = (part(name)?, by(&query)?, query.switch("no_rollback")?);
    is_component(&headers)?;
    // before the body is read: no more of them are in memory than are worked on
    let turn = app.lanes.change()?;
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "the component came too slowly");
    let component = timeout(WHOLE, receive(&headers, body)).await.map_err(late)??;
    let ask = Deploy { processor, component, by, no_rollback };
    ok(&app.ask(turn, move |host| host.deploy(ask)).await?)
}

pub(super) async fn rollback(State(app): State<App>, name: Name, RawQuery(query): RawQuery) -> Answered {
    let query = Query::read(query.as_deref(), &["by", "to"])?;
    let ask = Rollback { processor: part(name)?, to: word(&query, "to")?, by: by(&query)? };
    let turn = app.lanes.change()?;
    ok(&app.ask(turn, move |host| host.rollback(&ask)).await?)
}

pub(super) async fn pause(app: State<App>, name: Name, query: RawQuery) -> Answered {
    set_paused(app, name, query, true).await
}

pub(super) async fn resume(app: State<App>, name: Name, query: RawQuery) -> Answered {
    set_paused(app, name, query, false).await
}

async fn set_paused(State(app): State<App>, name: Name, RawQuery(query): RawQuery, paused: bool) -> Answered {
    let query = Query::read(query.as_deref(), &["by"])?;
    let (processor, by) = (part(name)?, by(&query)?);
    let (turn, asked) = (app.lanes.change()?, processor.clone());
    let changed = app.ask(turn, move |host| host.pause(&asked, paused, &by)).await?;
    ok(&PauseReply { processor, paused, changed })
}

/// Who asks, as it will stand in the history.
fn by(query: &Query) -> Result<String, Refusal> {
    Ok(word(query, "by")?.unwrap_or_else(|| "http".to_owned()))
}

fn word(query: &Query, name: &str) -> Result<Option<String>, Refusal> {
    let Some(word) = query.text(name)? else { return Ok(None) };
    let fits = (1..=NAME_LENGTH).contains(&word.chars().count()) && !word.contains(char::is_control);
    if fits {
        Ok(Some(word))
    } else {
        Err(bad(format!("{name} is to be 1 to {NAME_LENGTH} characters that can be seen")))
    }
}

fn is_component(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/wasm") {
        return Ok(());
    }
    let message = "the body is to be a component, and is not said to be one";
    let refusal = Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-a-component", message);
    Err(refusal.hint("send the file with `Content-Type: application/wasm`"))
}

/// The whole body; given up as soon as it is too large or stalls.
async fn receive(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refusal> {
    let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|said| said > COMPONENT_BYTES) {
        return Err(too_large());
    }
    let mut component = Vec::new();
    let mut parts = body.into_data_stream();
    while let Some(part) = next(&mut parts).await? {
        if component.len() + part.len() > COMPONENT_BYTES {
            return Err(too_large());
        }
        component.extend_from_slice(&part);
    }
    Ok(component)
}

async fn next(parts: &mut axum::body::BodyDataStream) -> Result<Option<Bytes>, Refusal> {
    let stalled = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "nothing more of the component came");
    let part = timeout(SILENCE, parts.next()).await.map_err(stalled)?;
    part.transpose().map_err(|_| Refusal::bad("bad-body", "the body ended before its end"))
}

fn too_large() -> Refusal {
    let message = format!("the component is larger than {} MiB", COMPONENT_BYTES >> 20);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "component-too-large", message)
}
