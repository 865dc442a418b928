//! What clients send: messages with files, and files.

use axum::Extension;
use axum::Json;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::access::Client;
use super::body::{self, READ_TIMEOUT, UPLOAD_TIMEOUT, read_body, read_json};
use super::http_error::HttpError;
use super::state::SharedState;
use crate::client_chat::place_of;
use crate::client_frame::ClientPart;
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::media_folder::{MAX_MEDIA, MediaError, kind_of_bytes};
use tenterhook_channel::publisher::SavedMedia;

/// The maximum size of a file.
const MAX_FILE: usize = MAX_MEDIA;

/// The maximum number of files of a message.
const MAX_FILES: usize = 10;

/// The maximum length of a text.
const MAX_TEXT: usize = 256 << 10;

/// The maximum size of a message as JSON: the text, escaped, and small files within it.
const MAX_JSON: usize = 2 << 20;

/// The maximum size of a message with files.
pub(crate) const MAX_MULTIPART: usize = MAX_FILES * MAX_FILE + MAX_JSON;

/// How many bytes at the beginning of a file say whether it is a picture or a recording.
const SIGNATURE: usize = 8 << 10;

/// What a message says.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MessageContent {
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) parts: Vec<ClientPart>,
    #[serde(default)]
    pub(crate) reply_to: Option<String>,
}

/// Reads a message: JSON, or a form whose fields are `text` and `file`. Files of a form are saved at once.
///
/// # Errors
///
/// Fails if the body is something else, too large or too slow.
pub(crate) async fn read_message(
    state: &SharedState,
    (user, chat): (&str, &ChatRef),
    request: Request,
) -> Result<MessageContent, HttpError> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let media_type = content_type.and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next());
    match media_type.unwrap_or_default().trim() {
        "application/json" => read_json(request.into_body(), MAX_JSON).await,
        "multipart/form-data" => {
            let read = read_form(state, (user, chat), request);
            let read = timeout(UPLOAD_TIMEOUT, read).await;
            read.unwrap_or_else(|_| Err(body::too_slow()))
        }
        _ => Err(HttpError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unknown_type",
            "a message is `application/json` or `multipart/form-data`",
        )),
    }
}

async fn read_form(
    state: &SharedState,
    (user, chat): (&str, &ChatRef),
    request: Request,
) -> Result<MessageContent, HttpError> {
    let mut content = MessageContent::default();
    let read = read_fields(state, (user, chat), request, &mut content).await;
    if let Err(error) = read {
        // What was saved before belongs to a message that will never exist.
        for part in &content.parts {
            if let ClientPart::Saved { media } = part {
                state.parts.media.discard(media, chat).await;
            }
        }
        return Err(error);
    }
    Ok(content)
}

async fn read_fields(
    state: &SharedState,
    (user, chat): (&str, &ChatRef),
    request: Request,
    content: &mut MessageContent,
) -> Result<(), HttpError> {
    let _turn = state.uploads.take(user).await;
    let form = Multipart::from_request(request, &()).await;
    let mut form =
        form.map_err(|error| HttpError::bad_request("invalid_form", error.body_text()))?;
    while let Some(mut field) = form
        .next_field()
        .await
        .map_err(|error| invalid_form(&error))?
    {
        match field.name() {
            Some("text") => {
                let text = read_field(&mut field, MAX_TEXT).await?;
                let text = String::from_utf8(text);
                content.text = Some(text.map_err(|_| {
                    HttpError::bad_request("invalid_text", "the field `text` is not UTF-8")
                })?);
            }
            Some("file") if content.parts.len() < MAX_FILES => {
                let name = field.file_name().map(str::to_owned);
                let bytes = read_field(&mut field, MAX_FILE).await?;
                let media = save(state, bytes, name, chat).await?.media.id;
                content.parts.push(ClientPart::Saved { media });
            }
            Some("file") => {
                let message = format!("a message has at most {MAX_FILES} files");
                return Err(HttpError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too_many",
                    message,
                ));
            }
            _ => {
                let message = "unknown field of the form; available: `text`, `file`";
                return Err(HttpError::bad_request("unknown_field", message));
            }
        }
    }
    Ok(())
}

async fn read_field(field: &mut Field<'_>, limit: usize) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|error| invalid_form(&error))? {
        if bytes.len().saturating_add(chunk.len()) > limit {
            return Err(body::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn invalid_form(error: &MultipartError) -> HttpError {
    HttpError::new(error.status(), "invalid_form", error.body_text())
}

/// `POST /v1/media`: keeps a file for later messages of the user. The body is the file.
pub(crate) async fn upload(
    State(state): State<SharedState>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    body: axum::body::Body,
) -> Result<Json<Value>, HttpError> {
    let turn = timeout(READ_TIMEOUT, state.uploads.take(&client.token.user)).await;
    let _turn = turn.map_err(|_| {
        HttpError::unavailable("busy", "too many files arrive at once", READ_TIMEOUT)
    })?;
    // A file belongs to one channel: browsers use the page, other clients use HTTP if they can.
    let (web, http) = (state.parts.web.as_ref(), state.parts.http.as_ref());
    let channel = if client.has_cookie { web } else { http.or(web) };
    let channel = channel.ok_or(HttpError::not_found("no channel takes files"))?;
    let name = headers.get("x-file-name");
    let name = name.and_then(|name| name.to_str().ok()).map(decode_name);
    let bytes = read_body(body, MAX_FILE, UPLOAD_TIMEOUT).await?;
    let owner = place_of(channel.id(), &client.token.user);
    let saved = save(&state, bytes.into(), name, &owner).await?;
    Ok(Json(json!(saved.media)))
}

async fn save(
    state: &SharedState,
    bytes: Vec<u8>,
    name: Option<String>,
    owner: &ChatRef,
) -> Result<SavedMedia, HttpError> {
    let start = bytes.get(..SIGNATURE).unwrap_or(&bytes);
    let kind = kind_of_bytes(start);
    let saved = state.parts.media.save(bytes, kind, name, owner).await;
    saved.map_err(|error| {
        let status = if matches!(error, MediaError::TooLarge { .. }) {
            StatusCode::PAYLOAD_TOO_LARGE
        } else {
            StatusCode::INSUFFICIENT_STORAGE
        };
        HttpError::new(
            status,
            "not_saved",
            format!("the file cannot be kept: {error}"),
        )
    })
}

/// Decodes `%XX`. Names that are not valid come out damaged, and nothing depends on them.
fn decode_name(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let escaped = match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high << 4 | low).ok(),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        let used = if escaped.is_some() { 2 } else { 0 };
        rest = tail.get(used..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_decoded() {
        let rows = [
            ("a.txt", "a.txt"),
            ("%C3%A4%20b", "ä b"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%FF", "\u{fffd}"),
        ];
        for (name, expected) in rows {
            assert_eq!(decode_name(name), expected);
        }
    }
}
