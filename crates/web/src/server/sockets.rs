//! Web sockets: who may open one. What clients say over it is read in `connection.rs`.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::access::{self, Client};
use super::http_error::HttpError;
use super::origin::Caller;
use super::state::{Place, SharedState};
use crate::connection::{ClientIdentity, LoggedIn, Login};
use crate::socket;
use tenterhook_channel::token::{AccessScope, TOKEN_PREFIX, Token};

/// When to try again if too many sockets wait for their clients' tokens.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// `GET /v1/ws`. The token is in the header or in the first frame.
pub(crate) async fn connect(
    State(state): State<SharedState>,
    Extension(caller): Extension<Caller>,
    Extension(place): Extension<Place>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, HttpError> {
    let missing = "no channel of kind `web` is enabled; add one to gateway.yaml";
    let channel = state.parts.web.clone();
    let channel = channel.ok_or(HttpError::not_found(missing))?;
    let login = match access::identify(&state.gatekeeper, caller, &Method::GET, &headers) {
        Ok(Some(Client { token, .. })) => {
            access::check_scope(&token, AccessScope::Chat)?;
            Login::Known(logged_in(&state, &token))
        }
        Ok(None) => {
            let cookie = access::page_cookie(&state.gatekeeper, caller, &headers);
            login_by_token(&state, caller, cookie.map(str::to_owned))?
        }
        Err(error) => {
            return Ok(access::forget_wrong_cookie(
                &state.gatekeeper,
                Some(caller),
                error,
                &headers,
            ));
        }
    };
    Ok(socket::configure(upgrade).on_upgrade(async move |opened| {
        socket::serve_socket(opened, login, channel, state.stop.clone()).await;
        drop(place);
    }))
}

/// Takes a place among the sockets whose clients are unknown. It is free again when the first frame was checked. With a
/// `cookie`, the frame can have the page's part of its token.
fn login_by_token(
    state: &SharedState,
    caller: Caller,
    cookie: Option<String>,
) -> Result<Login, HttpError> {
    let waiting = state.unknown_sockets.clone().try_acquire_owned();
    let waiting = waiting.map_err(|_| {
        let message = "too many connections wait for their token";
        HttpError::too_many("too_many_sockets", message, RETRY_AFTER)
    })?;
    let state = state.clone();
    Ok(Login::ByToken(Box::new(move |secret| {
        Box::pin(async move {
            let _waiting = waiting;
            let token = match cookie.filter(|_| !secret.starts_with(TOKEN_PREFIX)) {
                Some(cookie) => access::check_page(&state.gatekeeper, caller, &cookie, &secret),
                None => access::check_token(&state.gatekeeper, caller, &secret),
            };
            let token = token.ok()?;
            token
                .allows(AccessScope::Chat)
                .then(|| logged_in(&state, &token))
        })
    })))
}

fn logged_in(state: &SharedState, token: &Token) -> LoggedIn {
    LoggedIn {
        client: ClientIdentity {
            user: token.user.clone(),
            role: token.role(),
        },
        token_ended: access::token_ended(&state.gatekeeper, token),
    }
}
