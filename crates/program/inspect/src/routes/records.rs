//! Records as lines, and downloads.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;

use crate::export::{export_html, export_jsonl, lines_after};
use crate::inspector::Inspector;

const NDJSON: &str = "application/x-ndjson";
const POSITION: HeaderName = HeaderName::from_static("tenterhook-position");
const FIRST: HeaderName = HeaderName::from_static("tenterhook-first");
const SKIPPED: HeaderName = HeaderName::from_static("tenterhook-skipped");

/// The maximum number of records of one answer.
const MAX_RECORDS: usize = 25_000;

#[derive(Deserialize)]
pub(super) struct Range {
    after: Option<u64>,
    limit: Option<usize>,
}

/// `GET /v1/inspect/records?after=N&limit=M`: the records after a position, the oldest first. If the log drops
/// some of them before they are sent, the connection ends early.
pub(super) async fn records(
    State(inspector): State<Arc<Inspector>>,
    Query(range): Query<Range>,
) -> Response {
    let log = inspector.log();
    let limit = range.limit.unwrap_or(MAX_RECORDS).min(MAX_RECORDS);
    let first = log.after(None, 0).first;
    let (position, lines) = lines_after(Arc::clone(log), range.after, limit);
    let skipped = log.counts().unreadable;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(NDJSON)),
        (POSITION, HeaderValue::from(position)),
        (FIRST, HeaderValue::from(first)),
        (SKIPPED, HeaderValue::from(skipped)),
    ];
    (headers, Body::from_stream(stream::iter(lines))).into_response()
}

/// `GET /v1/inspect/export.html`: the page with all records in one file.
pub(super) async fn as_html(State(inspector): State<Arc<Inspector>>) -> Response {
    let name = "attachment; filename=\"tenterhook-inspector.html\"";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_DISPOSITION, name),
    ];
    (headers, stream_of(export_html(Arc::clone(inspector.log())))).into_response()
}

/// `GET /v1/inspect/export.jsonl`: all records, as a journal.
pub(super) async fn as_jsonl(State(inspector): State<Arc<Inspector>>) -> Response {
    let name = "attachment; filename=\"tenterhook-journal.jsonl\"";
    let headers = [
        (header::CONTENT_TYPE, NDJSON),
        (header::CONTENT_DISPOSITION, name),
    ];
    (
        headers,
        stream_of(export_jsonl(Arc::clone(inspector.log()))),
    )
        .into_response()
}

fn stream_of(chunks: impl Iterator<Item = Bytes> + Send + 'static) -> Body {
    Body::from_stream(stream::iter(chunks.map(Ok::<_, std::convert::Infallible>)))
}
