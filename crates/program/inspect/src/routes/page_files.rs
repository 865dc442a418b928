//! The files of the page.

use axum::extract::{OriginalUri, Path};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

use crate::page::{self, INDEX, PageFile};
use crate::route_error::RouteError;

/// What the page may load. Nothing comes from elsewhere, and no script is within the page.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'";

/// `GET /inspect`. The files of the page are named relative to `/inspect/`.
pub(super) async fn redirect(OriginalUri(uri): OriginalUri) -> Redirect {
    let query = uri.query().map(|query| format!("?{query}"));
    Redirect::permanent(&format!("/inspect/{}", query.unwrap_or_default()))
}

/// `GET /inspect/`.
pub(super) async fn index(headers: HeaderMap) -> Result<Response, RouteError> {
    named(Path(INDEX.to_owned()), headers).await
}

/// `GET /inspect/{name}`.
pub(super) async fn named(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, RouteError> {
    let file = page::file(&name);
    let file = file.ok_or_else(|| RouteError::not_found("the page has no such file"))?;
    Ok(respond(file, &headers))
}

fn respond(file: PageFile, headers: &HeaderMap) -> Response {
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let is_known = known.into_iter().any(|known| known == file.etag);
    // The browser asks each time; the answer is short if nothing has changed.
    let answer = [
        (header::CONTENT_TYPE, file.media_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::ETAG, file.etag),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    if is_known {
        return (StatusCode::NOT_MODIFIED, answer).into_response();
    }
    (answer, file.text).into_response()
}
