//! Files of the chats, and the page.

use std::fmt::Write as _;
use std::io::SeekFrom;
use std::ops::RangeInclusive;
use std::path::Path as FilePath;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
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
    request: HeaderMap,
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
    let mut file = open(&saved.path).await.ok_or_else(missing)?;
    let media = saved.media;
    let is_shown = media.kind == MediaKind::Audio || SHOWN_IMAGES.contains(&&*media.media_type);
    let disposition = if is_shown { "inline" } else { "attachment" };
    let media_type = HeaderValue::from_str(&media.media_type);
    let headers = [
        (
            header::CONTENT_TYPE,
            media_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
        ),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
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
    // Players ask for parts of a recording: without them, people cannot move in it.
    let range = request.get(header::RANGE).and_then(|it| it.to_str().ok());
    let (status, range, of_range) = match range.map(|range| byte_range(range, media.size)) {
        None | Some(Ok(None)) => (StatusCode::OK, 0..=media.size.saturating_sub(1), None),
        Some(Ok(Some(range))) => {
            let shown = format!("bytes {}-{}/{}", range.start(), range.end(), media.size);
            (StatusCode::PARTIAL_CONTENT, range, Some(shown))
        }
        Some(Err(())) => {
            let shown = [(header::CONTENT_RANGE, format!("bytes */{}", media.size))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, shown).into_response());
        }
    };
    let length = (range.end() + 1 - range.start()).min(media.size);
    if *range.start() > 0 {
        let moved = file.seek(SeekFrom::Start(*range.start())).await;
        moved.map_err(|_| missing())?;
    }
    let body = Body::from_stream(ReaderStream::new(file.take(length)));
    let of_body = [
        (header::CONTENT_LENGTH, Some(length.to_string())),
        (header::CONTENT_RANGE, of_range),
    ];
    let of_body = of_body.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::from_str(&value?).ok()?;
        Some((name, value))
    });
    let mut response = (status, headers, body).into_response();
    response.headers_mut().extend(of_body);
    Ok(response)
}

/// Reads the value of `Range` for a file of `size` bytes. `None` stands for the whole file: several ranges and unknown
/// units are ignored, as the standard allows. An error is a range that the file does not have.
fn byte_range(value: &str, size: u64) -> Result<Option<RangeInclusive<u64>>, ()> {
    let Some((first, last)) = value
        .strip_prefix("bytes=")
        .filter(|ranges| !ranges.contains(','))
        .and_then(|range| range.trim().split_once('-'))
    else {
        return Ok(None);
    };
    let number = |text: &str| -> Result<Option<u64>, _> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        match (text.is_empty(), is_number) {
            (true, _) => Ok(None),
            (false, true) => Ok(Some(text.parse().unwrap_or(u64::MAX))),
            (false, false) => Err(()),
        }
    };
    let (Ok(first), Ok(last)) = (number(first), number(last)) else {
        return Ok(None);
    };
    let end = size.checked_sub(1).ok_or(())?;
    let range = match (first, last) {
        (Some(first), Some(last)) if last < first => return Ok(None),
        (Some(first), last) => first..=last.unwrap_or(end).min(end),
        (None, Some(count @ 1..)) => size.saturating_sub(count)..=end,
        (None, Some(0)) => return Err(()),
        (None, None) => return Ok(None),
    };
    if range.is_empty() {
        Err(())
    } else {
        Ok(Some(range))
    }
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

    #[test]
    fn a_range_of_a_file_is_read_as_the_standard_says() {
        let rows = [
            ("bytes=0-", Ok(Some(0..=9))),
            ("bytes=2-4", Ok(Some(2..=4))),
            ("bytes=2-400", Ok(Some(2..=9))),
            ("bytes=-3", Ok(Some(7..=9))),
            ("bytes=-300", Ok(Some(0..=9))),
            ("bytes=9-99999999999999999999999", Ok(Some(9..=9))),
            ("bytes=10-", Err(())),
            ("bytes=4-2", Ok(None)),
            ("bytes=-0", Err(())),
            ("bytes=0-1,3-4", Ok(None)),
            ("bytes=a-b", Ok(None)),
            ("bytes=-", Ok(None)),
            ("lines=0-1", Ok(None)),
        ];
        for (value, expected) in rows {
            assert_eq!(byte_range(value, 10), expected, "{value}");
        }
        assert_eq!(byte_range("bytes=0-", 0), Err(()));
    }

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
