//! The body of an answer: one JSON value, or a stream of server-sent events.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamEvent {
    /// The field `event`, if the API uses it.
    pub(crate) name: Option<&'static str>,
    /// The field `data`, a single line.
    pub(crate) data: String,
}

impl StreamEvent {
    pub(crate) fn named(name: &'static str, data: &Value) -> Self {
        Self {
            name: Some(name),
            data: data.to_string(),
        }
    }

    pub(crate) fn unnamed(data: &Value) -> Self {
        Self {
            name: None,
            data: data.to_string(),
        }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Json(StatusCode, Value),
    Stream(Vec<StreamEvent>),
}

impl Reply {
    pub(crate) fn ok(value: Value) -> Self {
        Self::Json(StatusCode::OK, value)
    }

    pub(crate) fn into_response(self) -> Response {
        match self {
            Self::Json(status, value) => (status, axum::Json(value)).into_response(),
            Self::Stream(events) => {
                let mut body = String::new();
                for event in events {
                    if let Some(name) = event.name {
                        body.extend(["event: ", name, "\n"]);
                    }
                    body.extend(["data: ", &event.data, "\n\n"]);
                }
                let headers = [
                    (header::CONTENT_TYPE, "text/event-stream"),
                    (header::CACHE_CONTROL, "no-cache"),
                ];
                (headers, Body::from(body)).into_response()
            }
        }
    }
}
