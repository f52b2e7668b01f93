//! Questions that may take a while leave the thread that serves connections, and so many at a time only: more are told to come again.

use super::answer::Refusal;
use super::{App, Asked};
use crate::model::Fault;
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions at a time.
const LOOKS: usize = 8;
/// Changes at a time; their own, so that a deploy that takes long leaves room for looking at it.
const CHANGES: usize = 2;

#[derive(Clone)]
pub(super) struct Lanes {
    looks: Arc<Semaphore>,
    changes: Arc<Semaphore>,
}

/// A place in a lane, kept until the host has answered, even where nobody waits for that any more.
pub(super) struct Turn(OwnedSemaphorePermit);

impl Default for Lanes {
    fn default() -> Self {
        Lanes { looks: Arc::new(Semaphore::new(LOOKS)), changes: Arc::new(Semaphore::new(CHANGES)) }
    }
}

impl Lanes {
    pub(super) fn look(&self) -> Result<Turn, Refusal> {
        take(&self.looks, "questions")
    }

    pub(super) fn change(&self) -> Result<Turn, Refusal> {
        take(&self.changes, "changes")
    }
}

impl App {
    /// Asks a question.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Asked) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = self.lanes.look()?;
        self.ask(turn, ask).await
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        turn: Turn,
        ask: impl FnOnce(&dyn Asked) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Refusal> {
        let host = self.host.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let Turn(_place) = turn;
            ask(&*host)
        });
        let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "answering failed; see the log");
        Ok(asked.await.map_err(failed)??)
    }
}

fn take(lane: &Arc<Semaphore>, what: &str) -> Result<Turn, Refusal> {
    lane.clone().try_acquire_owned().map(Turn).map_err(|_| {
        let message = format!("too many {what} at a time");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hint("ask again in a moment")
    })
}
