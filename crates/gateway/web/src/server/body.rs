//! Reads bodies of requests, up to a limit and for a limited time. What the client says about the length is not believed.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::http_error::HttpError;

/// The time to read a body that is not a file.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The time to read files.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_mins(3);

/// Reads a body.
///
/// # Errors
///
/// Fails with 413 if it has more than `limit` bytes, with 408 if it takes longer than `time`, and with 400 if the
/// connection breaks.
pub(crate) async fn read_body(
    body: Body,
    limit: usize,
    time: Duration,
) -> Result<Bytes, HttpError> {
    let read = async {
        let mut chunks = body.into_data_stream();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| {
                HttpError::bad_request("incomplete", "the body of the request is incomplete")
            })?;
            if bytes.len().saturating_add(chunk.len()) > limit {
                return Err(too_large(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    };
    timeout(time, read)
        .await
        .unwrap_or_else(|_| Err(too_slow()))
}

/// Reads a body that is JSON.
///
/// # Errors
///
/// Fails like [`read_body`], and with 400 if the body is not what the route expects.
pub(crate) async fn read_json<T: DeserializeOwned>(
    body: Body,
    limit: usize,
) -> Result<T, HttpError> {
    let bytes = read_body(body, limit, READ_TIMEOUT).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| HttpError::bad_request("invalid_json", format!("invalid body: {error}")))
}

/// The refusal of a body with more than `limit` bytes.
pub(crate) fn too_large(limit: usize) -> HttpError {
    let message = format!("the request is larger than {limit} bytes");
    HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// The refusal of a body that does not arrive in time.
pub(crate) fn too_slow() -> HttpError {
    HttpError::new(
        StatusCode::REQUEST_TIMEOUT,
        "too_slow",
        "the request did not arrive in time",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(count: usize) -> Body {
        let chunks = (0..count).map(|_| std::io::Result::Ok(Bytes::from_static(&[0; 10])));
        Body::from_stream(futures_util::stream::iter(chunks.collect::<Vec<_>>()))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        assert_eq!(
            read_body(chunks(3), 30, READ_TIMEOUT).await.unwrap().len(),
            30
        );
        let refused = read_body(chunks(3), 29, READ_TIMEOUT).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let body = Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>());
        let refused = read_body(body, 30, READ_TIMEOUT).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
    }
}
