//! Who sends a request: the check of tokens and cookies.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;

use super::client_places::ClientPlace;
use super::http_error::HttpError;
use super::origin::{Caller, ask_before_opening, is_link_from_elsewhere, is_safe};
use super::state::{Gatekeeper, Peer, Place, SharedGatekeeper};
use tenterhook_channel::rate::TooManyAttempts;
use tenterhook_channel::token::{AccessScope, Token, TokenError, Tokens};

/// Where files of chats are.
const FILES: &str = "/v1/media/";

/// When a client may try again that has too many connections.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The maximum number of values of one cookie that are looked at.
const MAX_COOKIES: usize = 8;

/// The header with the page's part of its token. For a login it shows only that the page's own code sends the request.
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
    State(gatekeeper): State<SharedGatekeeper>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let caller = peer
        .ok_or_else(|| HttpError::bad_request("no_address", "the address of the client is unknown"))
        .and_then(|Peer(peer)| {
            let (method, uri) = (request.method(), request.uri());
            gatekeeper
                .allowed
                .check(method, uri, request.headers(), peer)
        });
    let mut response = match caller {
        Ok(_) if is_link_from_elsewhere(&request) => ask_before_opening(request.uri().path()),
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
        // Another page that opened this one could add a code to its address later, without a request to this server.
        (
            HeaderName::from_static("cross-origin-opener-policy"),
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
    State((gatekeeper, scope)): State<(SharedGatekeeper, AccessScope)>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().copied();
    let client = caller.ok_or_else(unauthorized).and_then(|caller| {
        let client = identify(&gatekeeper, caller, request.method(), request.headers())?;
        let of_file = || identify_by_cookie(&gatekeeper, caller, &request);
        client
            .map_or_else(of_file, |client| Ok(Some(client)))?
            .ok_or_else(unauthorized)
    });
    let client = client.and_then(|client| {
        check_scope(&client.token, scope)?;
        let place = request.extensions().get::<Place>();
        if let Some(place) = place {
            place.identify(take_place(&gatekeeper, &client.token)?);
        }
        Ok(client)
    });
    match client {
        Ok(client) => {
            request.extensions_mut().insert(client);
            next.run(request).await
        }
        Err(refusal) => forget_wrong_cookie(&gatekeeper, caller, refusal, request.headers()),
    }
}

/// Returns who sends a request, or `None` if it has neither a token nor a cookie with the key of the page.
///
/// # Errors
///
/// Fails with 401 for a wrong token, and 429 for an address or token that tried too often.
pub(crate) fn identify(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<Client>, HttpError> {
    let (token, has_cookie) = if let Some(secret) = bearer(headers)? {
        (check_token(gatekeeper, caller, secret)?, false)
    } else if let cookies = page_cookies(gatekeeper, caller, headers)
        && !cookies.is_empty()
        && let Some(key) = page_key(headers)
    {
        (check_page(gatekeeper, caller, &cookies, key)?, true)
    } else {
        return Ok(None);
    };
    if !is_safe(method) {
        let limited = |limit| too_often("rate", limit);
        gatekeeper.rate.check(&token.id).map_err(limited)?;
    }
    Ok(Some(Client { token, has_cookie }))
}

/// Returns who loads a file of a chat. Browsers load images with the cookie only, and their addresses cannot be guessed.
fn identify_by_cookie(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    request: &Request,
) -> Result<Option<Client>, HttpError> {
    let is_file = is_safe(request.method()) && request.uri().path().starts_with(FILES);
    let cookies = page_cookies(gatekeeper, caller, request.headers());
    if cookies.is_empty() || !is_file {
        return Ok(None);
    }
    let token = check_secret(gatekeeper, caller, Some(gatekeeper.port), |tokens| {
        first_right(&cookies, |cookie| tokens.check_cookie(cookie))
    })?;
    // Without the key of the page, it is not known which of two browsers' cookies is its own.
    let right = cookies.iter().filter_map(|cookie| {
        let found = gatekeeper.tokens.check_cookie(cookie);
        found.ok()
    });
    if right.into_iter().any(|other| other.id != token.id) {
        return Err(unauthorized());
    }
    let has_cookie = true;
    Ok(Some(Client { token, has_cookie }))
}

/// Checks a token that is not in a cookie. Wrong ones count against the address.
///
/// # Errors
///
/// Fails with 401 for a wrong token, and 429 for an address that is locked.
pub(crate) fn check_token(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    secret: &str,
) -> Result<Token, HttpError> {
    check_secret(gatekeeper, caller, None, |tokens| tokens.check(secret))
}

/// Checks the two parts of the token of a page. Only the cookie that belongs to the key counts: programs on other ports
/// can set further ones.
///
/// # Errors
///
/// Fails like [`check_token`].
pub(crate) fn check_page(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    cookies: &[&str],
    key: &str,
) -> Result<Token, HttpError> {
    check_secret(gatekeeper, caller, Some(gatekeeper.port), |tokens| {
        first_right(cookies, |cookie| tokens.check(&format!("{cookie}{key}")))
    })
}

/// Returns the token of the first cookie that is right.
///
/// # Errors
///
/// Fails if none is. A token that was right once is reported rather than one that never was.
fn first_right(
    cookies: &[&str],
    check: impl Fn(&str) -> Result<Token, TokenError>,
) -> Result<Token, TokenError> {
    let mut problem = TokenError::Unknown;
    for cookie in cookies {
        match check(cookie) {
            Ok(token) => return Ok(token),
            Err(error) if error != TokenError::Unknown => problem = error,
            Err(_) => {}
        }
    }
    Err(problem)
}

/// Takes a place among the connections of a token and its user.
///
/// # Errors
///
/// Fails with 429 if they have too many.
pub(super) fn take_place(gatekeeper: &Gatekeeper, token: &Token) -> Result<ClientPlace, HttpError> {
    gatekeeper.clients.take(token).ok_or_else(|| {
        let message = "this token, or its user, has too many connections at once";
        HttpError::too_many("too_many_connections", message, RETRY_AFTER)
    })
}

/// Checks a token, which belongs to the page on `cookie_port`, or to a program. A right one counts also while its address
/// is locked, because every program of this machine, and everyone behind a proxy, can get the address locked.
fn check_secret(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    cookie_port: Option<u16>,
    check: impl FnOnce(&Tokens) -> Result<Token, TokenError>,
) -> Result<Token, HttpError> {
    let token = check(&gatekeeper.tokens).map_err(|error| {
        // A token that was right once is not a guess: its client may try again and again.
        let is_guess = !matches!(error, TokenError::Expired | TokenError::Revoked);
        refuse_guess(gatekeeper, caller, is_guess).unwrap_or_else(unauthorized)
    })?;
    if token.cookie_port == cookie_port {
        Ok(token)
    } else {
        Err(unauthorized())
    }
}

/// Counts a wrong secret. Returns the refusal if the address has sent too many already.
pub(super) fn refuse_guess(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    is_guess: bool,
) -> Option<HttpError> {
    let lockout = &gatekeeper.lockout;
    if let Err(limit) = lockout.check(caller.address) {
        return Some(too_often("locked", limit));
    }
    if is_guess {
        lockout.failed(caller.address);
    }
    None
}

/// Ends when a token does not count any more. What was opened with it then ends.
pub(crate) fn token_ended(gatekeeper: &Gatekeeper, token: &Token) -> BoxFuture<'static, ()> {
    let (tokens, id) = (gatekeeper.tokens.clone(), token.id.clone());
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

/// Refuses a login that a form of another page could have sent.
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
        "a login needs the header `x-tenterhook: 1`",
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
pub(crate) fn set_cookie(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    secret: &str,
    seconds: i64,
) -> Option<HeaderValue> {
    let name = cookie_name(gatekeeper, caller);
    let secure = if caller.is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// Answers with a refusal. The browser forgets a cookie that does not count any more, so that it does not repeat it
/// until its address is locked. It keeps one that is right: what is wrong may be the key of another tab, or a second cookie
/// that a program on another port has set.
pub(crate) fn forget_wrong_cookie(
    gatekeeper: &Gatekeeper,
    caller: Option<Caller>,
    refusal: HttpError,
    headers: &HeaderMap,
) -> Response {
    let is_unauthorized = refusal.status == StatusCode::UNAUTHORIZED;
    let mut response = refusal.into_response();
    if let Some(caller) = caller.filter(|caller| caller.is_page && is_unauthorized)
        && let cookies = page_cookies(gatekeeper, caller, headers)
        && !cookies.is_empty()
        && first_right(&cookies, |cookie| gatekeeper.tokens.check_cookie(cookie)).is_err()
        && let Some(value) = set_cookie(gatekeeper, caller, "", 0)
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

/// Returns the values of the page's cookie, if a page of this server sends the request.
pub(crate) fn page_cookies<'a>(
    gatekeeper: &Gatekeeper,
    caller: Caller,
    headers: &'a HeaderMap,
) -> Vec<&'a str> {
    if caller.is_page {
        cookies(headers, &cookie_name(gatekeeper, caller))
    } else {
        Vec::new()
    }
}

fn page_key(headers: &HeaderMap) -> Option<&str> {
    let key = headers.get(PAGE_HEADER)?.to_str().ok()?;
    (key != "1").then_some(key)
}

/// Returns the different values of a cookie. Servers on other ports of this machine can set cookies of the same name, for
/// example with a longer path, so that the browser sends theirs first.
fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let values = headers.get_all(header::COOKIE).into_iter();
    let values = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter_map(|(found, value)| (found == name && !value.is_empty()).then_some(value));
    let mut different = Vec::new();
    for value in values {
        if different.len() < MAX_COOKIES && !different.contains(&value) {
            different.push(value);
        }
    }
    different
}

/// Returns the name of the cookie. It contains the port, so that gateways on other ports have cookies of their own.
/// Browsers accept the prefix only from the server itself over TLS.
fn cookie_name(gatekeeper: &Gatekeeper, caller: Caller) -> String {
    let prefix = if caller.is_secure { "__Host-" } else { "" };
    format!("{prefix}tenterhook-{}", gatekeeper.port)
}
