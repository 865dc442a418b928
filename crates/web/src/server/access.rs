//! Who sends a request: the check of tokens and cookies.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;

use super::http_error::HttpError;
use super::origin::{Caller, is_safe};
use super::state::{Peer, SharedState};
use tenterhook_channel::rate::TooManyAttempts;
use tenterhook_channel::token::{AccessScope, Token, TokenError};

/// The header with which the page shows that its own code sends a request.
pub(crate) const PAGE_HEADER: HeaderName = HeaderName::from_static("x-tenterhook");

const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'");

/// The sender of a request, as its token says.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) token: Token,
    pub(crate) has_cookie: bool,
}

/// Checks where a request comes from, and adds the [`Caller`] to it. The answer gets the headers that all answers have.
pub(crate) async fn check_caller(
    State(state): State<SharedState>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let caller = peer
        .ok_or_else(|| HttpError::bad_request("no_address", "the address of the client is unknown"))
        .and_then(|Peer(peer)| {
            let (method, uri) = (request.method(), request.uri());
            state.allowed.check(method, uri, request.headers(), peer)
        });
    let mut response = match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let defaults = [
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ];
    for (name, value) in defaults {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// Lets a request through if its token allows `scope`, and adds the [`Client`] to it.
pub(crate) async fn require(
    State((state, scope)): State<(SharedState, AccessScope)>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().copied();
    let client = caller.ok_or_else(unauthorized).and_then(|caller| {
        let client = identify(&state, caller, request.method(), request.headers())?;
        client.ok_or_else(unauthorized)
    });
    let client = client.and_then(|client| {
        check_scope(&client.token, scope)?;
        Ok(client)
    });
    match client {
        Ok(client) => {
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => forget_wrong_cookie(caller, refusal, request.headers()),
    }
}

/// Returns who sends a request, or `None` if it has neither a token nor a cookie that counts.
///
/// # Errors
///
/// Fails with 401 for a wrong token, 429 for an address or token that tried too often, and 403 for a request that
/// changes something with nothing but a cookie.
pub(crate) fn identify(
    state: &SharedState,
    caller: Caller,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<Client>, HttpError> {
    let bearer = bearer(headers)?;
    let has_cookie = bearer.is_none();
    let cookie = || cookie(headers, caller.is_secure).filter(|_| caller.is_page);
    let Some(secret) = bearer.or_else(cookie) else {
        return Ok(None);
    };
    let token = check_token(state, caller, secret)?;
    if has_cookie && !is_safe(method) {
        require_page_header(headers)?;
    }
    if !is_safe(method) {
        let limited = |limit| too_often("rate", limit);
        state.rate.check(&token.id).map_err(limited)?;
    }
    Ok(Some(Client { token, has_cookie }))
}

/// Checks a token. Wrong ones count against the address.
///
/// # Errors
///
/// Fails with 401 for a wrong token, and 429 for an address that is locked.
pub(crate) fn check_token(
    state: &SharedState,
    caller: Caller,
    secret: &str,
) -> Result<Token, HttpError> {
    let lockout = &state.parts.lockout;
    let locked = |limit| too_often("locked", limit);
    lockout.check(caller.address).map_err(locked)?;
    state.parts.tokens.check(secret).map_err(|error| {
        // A token that was right once is not a guess: its client may try again and again.
        if !matches!(error, TokenError::Expired | TokenError::Revoked) {
            lockout.failed(caller.address);
        }
        unauthorized()
    })
}

/// Ends when a token does not count any more. What was opened with it then ends.
pub(crate) fn token_ended(state: &SharedState, token: &Token) -> BoxFuture<'static, ()> {
    let (tokens, id) = (state.parts.tokens.clone(), token.id.clone());
    Box::pin(async move { tokens.ended(&id).await })
}

/// Refuses a token that does not allow `scope`.
///
/// # Errors
///
/// Fails with 403.
pub(crate) fn check_scope(token: &Token, scope: AccessScope) -> Result<(), HttpError> {
    if token.allows(scope) {
        return Ok(());
    }
    let message = format!("the token has no scope `{scope}`");
    Err(HttpError::new(StatusCode::FORBIDDEN, "no_scope", message))
}

/// Refuses a request that a form of another page could have sent.
///
/// # Errors
///
/// Fails with 403.
pub(crate) fn require_page_header(headers: &HeaderMap) -> Result<(), HttpError> {
    if headers.get(PAGE_HEADER).is_some_and(|value| value == "1") {
        return Ok(());
    }
    Err(HttpError::new(
        StatusCode::FORBIDDEN,
        "no_page_header",
        "a request with a cookie needs the header `x-tenterhook: 1`",
    ))
}

/// The refusal of an address or token that tried too often.
pub(crate) fn too_often(code: &'static str, limit: TooManyAttempts) -> HttpError {
    HttpError::too_many(code, limit.to_string(), limit.retry_after)
}

/// The refusal of a request without a token that counts.
pub(crate) fn unauthorized() -> HttpError {
    HttpError::new(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "a valid token is needed, as `Authorization: Bearer TOKEN`; `tenterhook gateway token create` makes one",
    )
}

/// Returns a `Set-Cookie` that stores a secret for `seconds`, or removes the one that is stored.
pub(crate) fn set_cookie(is_secure: bool, secret: &str, seconds: i64) -> Option<HeaderValue> {
    let name = cookie_name(is_secure);
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// Answers with a refusal. The browser forgets a cookie that does not count any more, so that it does not repeat it
/// until its address is locked.
pub(crate) fn forget_wrong_cookie(
    caller: Option<Caller>,
    refusal: HttpError,
    headers: &HeaderMap,
) -> Response {
    let is_unauthorized = refusal.status == StatusCode::UNAUTHORIZED;
    let mut response = refusal.into_response();
    if let Some(caller) = caller.filter(|caller| caller.is_page && is_unauthorized)
        && cookie(headers, caller.is_secure).is_some()
        && let Some(value) = set_cookie(caller.is_secure, "", 0)
    {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

fn bearer(headers: &HeaderMap) -> Result<Option<&str>, HttpError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or_else(unauthorized)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer
        .then_some(Some(token.trim()))
        .ok_or_else(unauthorized)
}

/// Returns the value of the cookie. Servers on other ports of this machine can set cookies of the same name, for example
/// with a longer path, so that the browser sends theirs first. If values differ, none counts.
fn cookie(headers: &HeaderMap, is_secure: bool) -> Option<&str> {
    let name = cookie_name(is_secure);
    let values = headers.get_all(header::COOKIE).into_iter();
    let mut found = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(found, value)| (found == name && !value.is_empty()).then_some(value));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Browsers accept the prefix only from the server itself over TLS.
fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure {
        "__Host-tenterhook"
    } else {
        "tenterhook"
    }
}
