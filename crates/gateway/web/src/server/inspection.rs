//! The routes of the inspector, for clients that may use them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use futures_util::StreamExt as _;
use tenterhook_inspect::{InspectRoutes, Inspector, InspectorUser};
use tokio_util::sync::CancellationToken;

use super::access::{self, Client};
use super::counted::Counts;
use super::guarded::require_scope;
use super::http_error::HttpError;
use super::state::SharedGatekeeper;

use tenterhook_channel::token::AccessScope;

/// Returns the page, its data, which needs the scope `inspect`, and decisions, which need `admin`.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(
    inspector: &Arc<Inspector>,
    gatekeeper: &SharedGatekeeper,
    stop: &CancellationToken,
) -> Router<S> {
    let InspectRoutes {
        page,
        data,
        decisions,
    } = Arc::clone(inspector).routes();
    let ends = (Arc::clone(gatekeeper), stop.clone());
    let data = data.route_layer(from_fn_with_state(ends, end_streams));
    let data = data.route_layer(from_fn_with_state(Counts::new(MAX_OF_TOKEN), limit_streams));
    let data = require_scope(data, gatekeeper, AccessScope::Inspect);
    let decisions = decisions.route_layer(from_fn(name_user));
    let decisions = require_scope(decisions, gatekeeper, AccessScope::Admin);
    page.merge(data).merge(decisions).with_state(())
}

/// Adds to a request that decides who sent it.
async fn name_user(mut request: Request, next: Next) -> Result<Response, HttpError> {
    let client = request.extensions().get::<Client>();
    let token = &client.ok_or_else(access::unauthorized)?.token;
    let user = InspectorUser {
        user: token.user.clone(),
        token: token.name.clone(),
    };
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

/// The maximum number of answers that one token reads at the same time. Browsers open at most 6 connections to a server.
const MAX_OF_TOKEN: usize = 8;

/// How long a client waits that reads too many answers at once.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Refuses a request of a token that reads too many answers at once, so that no token takes all connections.
async fn limit_streams(
    State(limit): State<Counts<String>>,
    request: Request,
    next: Next,
) -> Result<Response, HttpError> {
    let client = request.extensions().get::<Client>();
    let client = client.ok_or_else(access::unauthorized)?;
    let place = limit.take(client.token.id.clone()).ok_or_else(|| {
        let message = "this token reads too many answers of the inspector at once";
        HttpError::too_many("too_many_streams", message, RETRY_AFTER)
    })?;
    let response = next.run(request).await;
    Ok(response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            // The place belongs to the body.
            let _ = &place;
        }))
    }))
}

/// Ends a stream of events when the client's token ends or the server stops.
async fn end_streams(
    State((gatekeeper, stop)): State<(SharedGatekeeper, CancellationToken)>,
    request: Request,
    next: Next,
) -> Response {
    let token = request.extensions().get::<Client>();
    let token_ended = token.map(|client| access::token_ended(&gatekeeper, &client.token));
    let response = next.run(request).await;
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_stream = media_type.is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream"));
    let Some(token_ended) = token_ended.filter(|_| is_stream) else {
        return response;
    };
    response.map(|body| {
        let events = body.into_data_stream();
        Body::from_stream(events.take_until(async move {
            tokio::select! {
                () = token_ended => {}
                () = stop.cancelled() => {}
            }
        }))
    })
}
