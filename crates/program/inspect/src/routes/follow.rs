//! Records as they happen.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use crate::inspector::Inspector;
use crate::record_log::RecordLog;
use crate::route_error::RouteError;

/// How often a comment is sent while nothing happens, so that a broken connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The maximum number of records that wait for the client outside of the log.
const MAX_BATCH: usize = 256;

#[derive(Deserialize)]
pub(super) struct Start {
    after: Option<u64>,
}

/// `GET /v1/inspect/events`: the records after `Last-Event-ID` or `after`, as they arrive.
pub(super) async fn follow(
    State(inspector): State<Arc<Inspector>>,
    Query(start): Query<Start>,
    headers: HeaderMap,
) -> Result<Response, RouteError> {
    if !inspector.source().is_live() {
        let message = "nothing is added to journals in files; `/v1/inspect/records` has them";
        return Err(RouteError::not_found(message));
    }
    let position = last_event(&headers)?.or(start.after);
    let log = Arc::clone(inspector.log());
    let follower = Follower {
        changes: log.changes(),
        log,
        position,
        waiting: VecDeque::new(),
    };
    let events = unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((Ok::<_, Infallible>(event), follower))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

/// Reads the log for one client. A client that reads slowly costs no memory: it gets a `gap` when the log has dropped
/// what it has not read.
struct Follower {
    log: Arc<RecordLog>,
    changes: watch::Receiver<u64>,
    position: Option<u64>,
    waiting: VecDeque<Event>,
}

impl Follower {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            // Before the log is read, so that a record that arrives in between ends the wait.
            self.changes.borrow_and_update();
            self.read();
            if self.waiting.is_empty() {
                self.changes.changed().await.ok()?;
            }
        }
    }

    fn read(&mut self) {
        let slice = self.log.after(self.position, MAX_BATCH);
        let before = slice.position - slice.lines.len() as u64;
        if let Some(gap) = slice.gap {
            let data = json!({ "first": slice.first, "missed": gap.missed }).to_string();
            let gap = Event::default().event("gap").id(before.to_string());
            self.waiting.push_back(gap.data(data));
        }
        for (position, line) in (before + 1..).zip(&slice.lines) {
            let record = Event::default().event("record").id(position.to_string());
            self.waiting
                .push_back(record.data(String::from_utf8_lossy(line)));
        }
        self.position = Some(slice.position);
    }
}

/// Returns the position that the client has seen last.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, RouteError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|value| value.parse().ok());
    let message = "`Last-Event-ID` must be the position of a record";
    number
        .map(Some)
        .ok_or_else(|| RouteError::new(StatusCode::BAD_REQUEST, "invalid_event_id", message))
}
