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
use crate::client_frame::ClientRefusal;
use crate::connection::{CheckToken, ClientIdentity, LoggedIn, Login};
use crate::socket;
use tenterhook_channel::token::{AccessScope, TOKEN_PREFIX, Token};
use tokio_util::sync::CancellationToken;

/// When to try again while the server stops.
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
    let identified = access::identify(&state.gatekeeper, caller, &Method::GET, &headers);
    let (login, gives_way) = match identified {
        Ok(Some(Client { token, .. })) => {
            access::check_scope(&token, AccessScope::Chat)?;
            let known = logged_in(&state, &token, &place)?;
            (Login::Known(known), CancellationToken::new())
        }
        Ok(None) => {
            let cookies = access::page_cookies(&state.gatekeeper, caller, &headers);
            let cookies = cookies.into_iter().map(str::to_owned).collect();
            login_by_token(&state, caller, cookies, place.clone()).await?
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
        let stop = state.stop.clone();
        tokio::select! {
            _end = socket::serve_socket(opened, login, channel, stop) => {}
            () = gives_way.cancelled() => {}
        }
        drop(place);
    }))
}

/// Takes a place among the sockets whose clients are unknown. It is free again when the first frame was checked. With
/// `cookies`, the frame can have the page's part of its token. The result is cancelled if the socket has to give way.
async fn login_by_token(
    state: &SharedState,
    caller: Caller,
    cookies: Vec<String>,
    place: Place,
) -> Result<(Login, CancellationToken), HttpError> {
    let waiting = state.unknown_sockets.take().await;
    let waiting = waiting.ok_or_else(|| {
        HttpError::unavailable("stopped", "the server takes no connections", RETRY_AFTER)
    })?;
    let gives_way = waiting.1.closed_token().clone();
    let state = state.clone();
    let check: CheckToken = Box::new(move |secret| {
        Box::pin(async move {
            let _waiting = waiting;
            let cookies: Vec<&str> = cookies.iter().map(String::as_str).collect();
            let token = if cookies.is_empty() || secret.starts_with(TOKEN_PREFIX) {
                access::check_token(&state.gatekeeper, caller, &secret)
            } else {
                access::check_page(&state.gatekeeper, caller, &cookies, &secret)
            };
            let token = token.ok().filter(|token| token.allows(AccessScope::Chat));
            let wrong = || {
                let text =
                    "the token is not valid; create one with `tenterhook gateway token create`";
                ClientRefusal::new("unauthorized", text)
            };
            let token = token.ok_or_else(wrong)?;
            let known = logged_in(&state, &token, &place);
            known.map_err(|error| ClientRefusal::new("too_many_connections", error.message))
        })
    });
    Ok((Login::ByToken(check), gives_way))
}

fn logged_in(state: &SharedState, token: &Token, place: &Place) -> Result<LoggedIn, HttpError> {
    let counted = access::take_place(&state.gatekeeper, token)?;
    place.forget_source();
    Ok(LoggedIn {
        client: ClientIdentity {
            user: token.user.clone(),
            role: token.role(),
        },
        token_ended: access::token_ended(&state.gatekeeper, token),
        place: Some(Box::new(counted)),
    })
}
