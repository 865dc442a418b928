//! The routes of the page and of what it reads.

mod decide;
mod follow;
mod page_files;
mod records;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::inspector::Inspector;
use crate::route_error::RouteError;

/// The routes of an inspector, in groups by what a client needs to use them. The server checks that.
#[derive(Debug)]
pub struct InspectRoutes {
    /// The files of the page, which contain no data. Anyone may load them.
    pub page: Router,
    /// What the page shows, below `/v1/inspect`.
    pub data: Router,
    /// Decisions about a gateway, below `/v1/inspect`.
    pub decisions: Router,
}

impl Inspector {
    /// Returns the routes.
    pub fn routes(self: Arc<Self>) -> InspectRoutes {
        let data = Router::new()
            .route("/v1/inspect/source", get(source))
            .route("/v1/inspect/records", get(records::records))
            .route("/v1/inspect/events", get(follow::follow))
            .route("/v1/inspect/hooks", get(hooks))
            .route("/v1/inspect/dispatches/{event_id}", get(dispatch))
            .route("/v1/inspect/gateway", get(decide::state))
            .route("/v1/inspect/export.html", get(records::as_html))
            .route("/v1/inspect/export.jsonl", get(records::as_jsonl))
            .with_state(Arc::clone(&self));
        let decisions = Router::new()
            .route("/v1/inspect/approvals/{nonce}", post(decide::approval))
            .route(
                "/v1/inspect/pairings/{channel}/{code}",
                post(decide::pairing),
            )
            .with_state(self);
        let page = Router::new()
            .route("/inspect", get(page_files::redirect))
            .route("/inspect/", get(page_files::index))
            .route("/inspect/{name}", get(page_files::named));
        InspectRoutes {
            page,
            data,
            decisions,
        }
    }
}

/// `GET /v1/inspect/source`: where the records come from.
async fn source(State(inspector): State<Arc<Inspector>>) -> Json<Value> {
    Json(inspector.describe())
}

/// `GET /v1/inspect/hooks`: the hooks in force.
async fn hooks(State(inspector): State<Arc<Inspector>>) -> Result<Json<Value>, RouteError> {
    let missing = || RouteError::not_found("the hooks of a journal in a file are not known");
    let list = Arc::clone(inspector.hooks());
    // Many hooks take long to describe.
    let described = tokio::task::spawn_blocking(move || list.current()).await;
    described.ok().flatten().map(Json).ok_or_else(missing)
}

/// `GET /v1/inspect/dispatches/{event_id}`: the payloads and raw answers of a dispatch.
async fn dispatch(
    State(inspector): State<Arc<Inspector>>,
    Path(event_id): Path<String>,
) -> Result<Json<Box<RawValue>>, RouteError> {
    let not_kept = || RouteError::not_found("no payloads are kept for this dispatch");
    let details = inspector.details().ok_or_else(not_kept)?;
    details.find(&event_id).await.map(Json).ok_or_else(not_kept)
}
