//! Files of the chats, and the page.

use std::fmt::Write as _;
use std::path::Path as FilePath;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio_util::io::ReaderStream;

use super::access::Client;
use super::http_error::HttpError;
use super::origin::is_safe;
use super::state::SharedState;
use crate::page;
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::message::MediaKind;

/// What the page may load. Nothing comes from elsewhere, and no script is within the page.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'";

/// A file of a stranger that is opened on its own runs no script, and cannot use this server.
const FILE_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Images whose formats have no scripts.
const SHOWN_IMAGES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
];

/// `GET /v1/media/{id}`: a file of the user's chats.
pub(crate) async fn download(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let parts = &state.parts;
    let channels = parts.web.iter().chain(&parts.http);
    let channels: Vec<ChannelId> = channels.map(|channel| channel.id().clone()).collect();
    let user = client.token.user;
    let is_own = move |owner: &ChatRef| {
        let owner_user = owner.chat.split_once('/').map(|(user, _)| user);
        owner_user == Some(&user) && channels.contains(&owner.channel)
    };
    let missing = || HttpError::not_found("the file does not exist, or belongs to someone else");
    let saved = parts
        .media
        .find_owned(&id, is_own)
        .await
        .ok_or_else(missing)?;
    let file = open(&saved.path).await.ok_or_else(missing)?;
    let media = saved.media;
    let is_shown = media.kind == MediaKind::Audio || SHOWN_IMAGES.contains(&&*media.media_type);
    let disposition = if is_shown { "inline" } else { "attachment" };
    let media_type = HeaderValue::from_str(&media.media_type);
    let headers = [
        (
            header::CONTENT_TYPE,
            media_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
        ),
        (header::CONTENT_LENGTH, HeaderValue::from(media.size)),
        (
            header::CONTENT_DISPOSITION,
            content_disposition(disposition, &media.name),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(FILE_POLICY),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, max-age=86400, immutable"),
        ),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file))).into_response())
}

async fn open(path: &FilePath) -> Option<tokio::fs::File> {
    tokio::fs::File::open(path).await.ok()
}

/// Writes the name in the form that has no characters with a meaning in a header.
fn content_disposition(disposition: &str, name: &str) -> HeaderValue {
    let mut value = format!("{disposition}; filename*=UTF-8''");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            value.push(char::from(byte));
        } else {
            _ = write!(value, "%{byte:02X}");
        }
    }
    HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("attachment"))
}

/// `GET /` and the files of the page.
pub(crate) async fn page_file(
    State(state): State<SharedState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let missing = || HttpError::not_found("there is no such address");
    state
        .parts
        .web
        .as_ref()
        .filter(|_| is_safe(&method))
        .ok_or_else(missing)?;
    let asset = page::asset(uri.path()).ok_or_else(missing)?;
    let etag = HeaderValue::from_static(asset.etag);
    let is_known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .any(|known| *known == etag);
    // The browser asks each time; the answer is short if nothing has changed. The page itself is never kept.
    let is_index = asset.media_type.starts_with("text/html");
    let cache = if is_index { "no-store" } else { "no-cache" };
    let page_headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(asset.media_type),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(PAGE_POLICY),
        ),
        (
            HeaderName::from_static("permissions-policy"),
            HeaderValue::from_static("microphone=(self), camera=(), geolocation=()"),
        ),
        (header::ETAG, etag),
    ];
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, page_headers).into_response());
    }
    Ok((page_headers, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    // G81
    #[test]
    fn the_name_of_a_file_cannot_add_to_its_header() {
        let value = content_disposition("attachment", "../a\"\r\nset-cookie: x; ä.txt");
        assert_eq!(
            value,
            "attachment; filename*=UTF-8''..%2Fa%22%0D%0Aset-cookie%3A%20x%3B%20%C3%A4.txt"
        );
    }
}
