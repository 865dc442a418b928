//! Logging in and out of the page.

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::access::{self, Client};
use super::body::read_json;
use super::http_error::HttpError;
use super::origin::Caller;
use super::state::{Gatekeeper, SharedGatekeeper};

/// How long a browser stays logged in.
const COOKIE_LIFE: SignedDuration = SignedDuration::from_hours(24);

/// The name of the tokens that browsers get.
const TOKEN_NAME: &str = "browser";

#[derive(Deserialize)]
struct LoginBody {
    code: String,
    /// Whether the browser may change to another user.
    #[serde(default)]
    replace: bool,
}

fn wrong_code(gatekeeper: &Gatekeeper) -> HttpError {
    let message = format!(
        "the code is wrong, used or expired; `{}` makes a new one",
        gatekeeper.link_command
    );
    HttpError::new(StatusCode::UNAUTHORIZED, "wrong_code", message)
}

/// `POST /v1/login`: exchanges a one-time code for a cookie and the page's part of the token.
pub(crate) async fn login(
    State(gatekeeper): State<SharedGatekeeper>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    access::require_page_header(&headers)?;
    let LoginBody { code, replace } = read_json(body, 4 << 10).await?;
    if !replace && let Some((current, next)) = change_of_user(&gatekeeper, caller, &headers, &code)
    {
        let message =
            format!("this browser is signed in as `{current}`, and the link signs in `{next}`");
        return Err(HttpError::new(StatusCode::CONFLICT, "signed_in", message));
    }
    let Some(grant) = gatekeeper.logins.redeem(&code) else {
        let refusal = access::refuse_guess(&gatekeeper, caller, true);
        return Err(refusal.unwrap_or_else(|| wrong_code(&gatekeeper)));
    };
    let expires = Timestamp::now() + COOKIE_LIFE;
    let tokens = &gatekeeper.tokens;
    let new = tokens
        .create_for_cookie(
            TOKEN_NAME,
            (&grant.user, &grant.scopes),
            gatekeeper.port,
            expires,
        )
        .await
        .map_err(|error| {
            HttpError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "no_token",
                error.to_string(),
            )
        })?;
    let cookie = new.cookie.expose();
    let cookie = access::set_cookie(&gatekeeper, caller, cookie, COOKIE_LIFE.as_secs());
    let cookie = AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    let body = json!({
        "user": new.token.user,
        "expires": expires.as_second(),
        "key": new.key.expose(),
    });
    Ok((cookie, Json(body)).into_response())
}

/// Returns the user of the browser and the user of a code, if they are different. Someone could have sent the link so that
/// what is written next goes to them.
fn change_of_user(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    headers: &HeaderMap,
    code: &str,
) -> Option<(String, String)> {
    let next = gatekeeper.logins.user_of(code)?;
    let cookies = access::page_cookies(gatekeeper, caller, headers);
    let mut users = cookies.iter().filter_map(|cookie| {
        let token = gatekeeper.tokens.check_cookie(cookie).ok()?;
        (token.user != next).then_some(token.user)
    });
    Some((users.next()?, next))
}

/// `POST /v1/logout`: revokes the token of the request.
pub(crate) async fn logout(
    State(gatekeeper): State<SharedGatekeeper>,
    Extension(caller): Extension<Caller>,
    Extension(client): Extension<Client>,
) -> Result<Response, HttpError> {
    if !client.has_cookie {
        return Err(HttpError::bad_request(
            "no_cookie",
            "only a browser can log out; `tenterhook gateway token revoke` revokes a token",
        ));
    }
    let revoked = gatekeeper.tokens.revoke(&client.token.id).await;
    revoked.map_err(|error| {
        HttpError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "not_stored",
            error.to_string(),
        )
    })?;
    let cookie = access::set_cookie(&gatekeeper, caller, "", 0);
    let cookie = AppendHeaders(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok((StatusCode::NO_CONTENT, cookie).into_response())
}
