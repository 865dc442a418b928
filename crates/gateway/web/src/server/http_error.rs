//! What a client gets if its request is refused: a status and `{"error": {"code", "message"}}`.

use std::borrow::Cow;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The maximum length of an error of the framework.
const MAX_TEXT: usize = 4 << 10;

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpError {
    pub(crate) status: StatusCode,
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: Cow<'static, str>,
    retry_after: Option<Duration>,
}

impl HttpError {
    pub(crate) fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            retry_after: None,
        }
    }

    /// A request that no client should send.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(what: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// A client that sends too much.
    pub(crate) fn too_many(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
        retry_after: Duration,
    ) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
        }
    }

    /// Something that does not work now, and may work later.
    pub(crate) fn unavailable(
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        retry_after: Duration,
    ) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = json!({"error": {"code": self.code, "message": self.message}});
        let mut response = (self.status, Json(body)).into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_millis().div_ceil(1000).max(1);
            let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Gives errors of the framework, such as a chat's id with a space, the same form as ours.
pub(crate) async fn explain(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"text/plain"));
    if !is_error || !is_text {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, MAX_TEXT).await;
    let text = text.map_or_else(
        |_| String::new(),
        |text| String::from_utf8_lossy(&text).into_owned(),
    );
    let error = HttpError::new(parts.status, "invalid_request", text).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(error.headers().clone());
    Response::from_parts(parts, error.into_body())
}
