//! The server: the page, HTTP, web sockets and webhooks.
//!
//! Each request passes the same checks in the same order: host, origin, token or signature, rate, size. Routes are in
//! groups by the scope that they need; a route outside of these groups needs no token.

mod access;
mod answer;
mod body;
mod chats;
mod client_places;
mod connections;
mod counted;
mod download;
mod events;
mod guarded;
mod http_error;
mod idle;
mod inspection;
mod login;
mod origin;
mod private;
mod session;
mod sockets;
mod state;
mod tls;
mod upload;
mod wait;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::guarded::{checked, require_scope};
use self::http_error::HttpError;
use self::state::{ServerState, SharedGatekeeper, SharedState};
use tenterhook_channel::token::AccessScope;

pub use self::login::{LoginGrant, Logins, NoRandomness};
pub use self::private::{InspectorServer, InspectorServerError};
pub use self::state::{GatewayReports, ServerParts};
pub use self::tls::{TlsError, TlsIdentity};

/// When a program may ask again whether the gateway is ready.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Serves until `stop` is cancelled. Then streams and sockets end, and requests that are being answered get 5 seconds.
pub async fn serve(listener: TcpListener, parts: ServerParts, stop: CancellationToken) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let state = Arc::new(ServerState::new(parts, port, stop.clone()));
    let proxies = &state.parts.settings.trusted_proxies;
    let tls = state.parts.tls.as_ref().map(TlsIdentity::acceptor);
    connections::serve(listener, tls, router(&state), proxies, stop).await;
}

fn router(state: &SharedState) -> Router {
    let gatekeeper = &state.gatekeeper;
    let guarded = [
        (AccessScope::Chat, chat_routes(gatekeeper)),
        (AccessScope::Approve, approval_routes()),
        (
            AccessScope::Inspect,
            Router::new()
                .route("/v1/status", get(status))
                .route("/metrics", get(metrics)),
        ),
    ];
    let login = post(session::login).with_state(Arc::clone(gatekeeper));
    let open = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readiness))
        .route("/v1/login", login)
        .route("/v1/ws", get(sockets::connect))
        .route("/v1/webhooks/{name}", post(webhooks::receive))
        .fallback(download::page_file);
    let all = guarded.into_iter().fold(open, |all, (scope, routes)| {
        all.merge(require_scope(routes, gatekeeper, scope))
    });
    let all = match &state.parts.inspector {
        Some(inspector) => all.merge(inspection::routes(inspector, gatekeeper, &state.stop)),
        None => all,
    };
    checked(all, gatekeeper).with_state(Arc::clone(state))
}

fn chat_routes(gatekeeper: &SharedGatekeeper) -> Router<SharedState> {
    let logout = post(session::logout).with_state(Arc::clone(gatekeeper));
    let messages = post(chats::post_message).layer(DefaultBodyLimit::max(upload::MAX_MULTIPART));
    Router::new()
        .route("/v1/chats", get(chats::list_chats))
        .route("/v1/chats/{chat}/messages", messages)
        .route("/v1/chats/{chat}/events", get(events::follow_chat))
        .route("/v1/chats/{chat}/history", get(chats::history))
        .route("/v1/chats/{chat}/cancel", post(chats::cancel))
        .route("/v1/media", post(upload::upload))
        .route("/v1/media/{id}", get(download::download))
        .route("/v1/logout", logout)
}

fn approval_routes() -> Router<SharedState> {
    let answer = post(chats::answer_question);
    Router::new().route("/v1/chats/{chat}/approvals/{nonce}", answer)
}

/// `GET /v1/status`.
async fn status(State(state): State<SharedState>) -> Json<Value> {
    Json(state.parts.reports.status())
}

/// `GET /metrics`.
async fn metrics(State(state): State<SharedState>) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, state.parts.reports.metrics().await)
}

/// `GET /readyz`. It needs no token, so it names the reason in one word only.
async fn readiness(State(state): State<SharedState>) -> Result<&'static str, HttpError> {
    match state.parts.reports.unready().await {
        None => Ok("ok"),
        Some(reason) => {
            let message = "the gateway takes no messages now";
            Err(HttpError::unavailable(reason, message, RETRY_AFTER))
        }
    }
}
