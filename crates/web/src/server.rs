//! The server: the page, HTTP, web sockets and webhooks.
//!
//! Each request passes the same checks in the same order: host, origin, token or signature, rate, size. Routes are in
//! groups by the scope that they need; a route outside of these groups needs no token.

mod access;
mod answer;
mod body;
mod chats;
mod connections;
mod download;
mod events;
mod http_error;
mod idle;
mod login;
mod origin;
mod session;
mod sockets;
mod state;
mod upload;
mod wait;
mod webhooks;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::http_error::HttpError;
use self::state::{ServerState, SharedState};
use tenterhook_channel::token::AccessScope;

pub use self::login::{LoginGrant, Logins, NoRandomness};
pub use self::state::ServerParts;

/// Serves until `stop` is cancelled. Then streams and sockets end, and requests that are being answered get 5 seconds.
pub async fn serve(listener: TcpListener, parts: ServerParts, stop: CancellationToken) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let state = Arc::new(ServerState::new(parts, port, stop.clone()));
    let proxies = &state.parts.settings.trusted_proxies;
    connections::serve(listener, router(&state), proxies, stop).await;
}

fn router(state: &SharedState) -> Router {
    let guarded = [
        (AccessScope::Chat, chat_routes()),
        (AccessScope::Approve, approval_routes()),
        (
            AccessScope::Inspect,
            Router::new().route("/v1/status", get(status)),
        ),
    ];
    let open = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/v1/login", post(session::login))
        .route("/v1/ws", get(sockets::connect))
        .route("/v1/webhooks/{name}", post(webhooks::receive))
        .fallback(download::page_file);
    let all = guarded.into_iter().fold(open, |all, (scope, routes)| {
        let check = from_fn_with_state((Arc::clone(state), scope), access::require);
        all.merge(routes.route_layer(check))
    });
    all.method_not_allowed_fallback(async || {
        HttpError::new(
            axum::http::StatusCode::METHOD_NOT_ALLOWED,
            "wrong_method",
            "this address does not take requests with this method",
        )
    })
    .layer(from_fn_with_state(Arc::clone(state), access::check_caller))
    .layer(from_fn(http_error::explain))
    .with_state(Arc::clone(state))
}

fn chat_routes() -> Router<SharedState> {
    let messages = post(chats::post_message).layer(DefaultBodyLimit::max(upload::MAX_MULTIPART));
    Router::new()
        .route("/v1/chats", get(chats::list_chats))
        .route("/v1/chats/{chat}/messages", messages)
        .route("/v1/chats/{chat}/events", get(events::follow_chat))
        .route("/v1/chats/{chat}/history", get(chats::history))
        .route("/v1/chats/{chat}/cancel", post(chats::cancel))
        .route("/v1/media", post(upload::upload))
        .route("/v1/media/{id}", get(download::download))
        .route("/v1/logout", post(session::logout))
}

fn approval_routes() -> Router<SharedState> {
    let answer = post(chats::answer_question);
    Router::new().route("/v1/chats/{chat}/approvals/{nonce}", answer)
}

/// `GET /v1/status`.
async fn status(State(state): State<SharedState>) -> Json<Value> {
    Json((state.parts.status)())
}
