//! Sends and edits messages: text in pieces with markup, files, and questions.

use std::path::Path;

use serde_json::{Value, json};

use super::api::{Api, ApiError};
use super::bot_api::{InlineKeyboardMarkup, SentMessage};
use super::markup;
use crate::pieces::{PieceLimit, TextUnit, split};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::Media;
use tenterhook_channel::message::MediaKind;

/// The maximum length of a message in units of UTF-16.
const MAX_TEXT: usize = 4_096;
/// The maximum length of the text with a file.
pub(super) const MAX_CAPTION: usize = 1_024;

/// A chat in Telegram's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) chat: i64,
    pub(super) thread: Option<i32>,
    pub(super) is_group: bool,
}

impl Target {
    /// Returns the chat, unless it is not one of Telegram.
    pub(super) fn of(chat: &ChatRef) -> Option<Self> {
        let id: i64 = chat.chat.parse().ok()?;
        let thread = chat.thread.as_deref().map(str::parse).transpose().ok()?;
        Some(Self {
            chat: id,
            thread,
            is_group: id < 0,
        })
    }
}

/// A piece of a text, with and without markup.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextPiece {
    html: String,
    plain: String,
}

/// Returns a Markdown text as pieces that Telegram accepts.
pub(super) fn pieces(markdown: &str) -> Vec<TextPiece> {
    pieces_within(markdown, MAX_TEXT)
}

fn pieces_within(markdown: &str, max: usize) -> Vec<TextPiece> {
    let limit = PieceLimit {
        max,
        unit: TextUnit::Utf16,
    };
    let mut pieces = Vec::new();
    for piece in split(markdown, limit) {
        let plain = piece.to_string();
        let html = markup::to_html(&plain);
        let length = limit.unit.measure(&html);
        if html.is_empty() {
            // A line, or an empty block of code: Telegram refuses empty messages.
        } else if length <= MAX_TEXT {
            pieces.push(TextPiece { html, plain });
        } else if max > 64 {
            // The markup and the escapes have made it too long.
            let smaller = (max * MAX_TEXT / length * 9 / 10).clamp(32, max / 2 + max / 4);
            pieces.extend(pieces_within(&plain, smaller));
        } else {
            let html = markup::escape(&plain);
            pieces.push(TextPiece { html, plain });
        }
    }
    pieces
}

/// Sends a piece. Returns the id of the message.
pub(super) async fn send(
    api: &Api,
    target: &Target,
    piece: &TextPiece,
    reply_to: Option<i32>,
) -> Result<i32, ApiError> {
    let mut params = message(target, &piece.html);
    set(&mut params, "parse_mode", "HTML");
    if let Some(id) = reply_to {
        set(&mut params, "reply_parameters", reply(id));
    }
    match api.call::<SentMessage>("sendMessage", &params).await {
        Err(error) if error.is_bad_request() => send_plain(api, target, &piece.plain).await,
        sent => sent.map(|message| message.message_id),
    }
}

/// Sends a text without markup.
pub(super) async fn send_plain(api: &Api, target: &Target, text: &str) -> Result<i32, ApiError> {
    let sent: SentMessage = api.call("sendMessage", &message(target, text)).await?;
    Ok(sent.message_id)
}

/// Turns a message into a piece. If the message does not exist any more, the piece is sent as a new one.
pub(super) async fn edit(
    api: &Api,
    target: &Target,
    id: i32,
    piece: &TextPiece,
) -> Result<i32, ApiError> {
    let mut params = edited(target, id, &piece.html);
    set(&mut params, "parse_mode", "HTML");
    match api.call::<Value>("editMessageText", &params).await {
        Err(error) if error.is_not_modified() => Ok(id),
        Err(error) if error.is_bad_request() => {
            match edit_plain(api, target, id, &piece.plain).await {
                Err(error) if error.is_bad_request() => send(api, target, piece, None).await,
                edited => edited,
            }
        }
        edited => edited.map(|_| id),
    }
}

/// Turns a message into a text without markup and buttons.
pub(super) async fn edit_plain(
    api: &Api,
    target: &Target,
    id: i32,
    text: &str,
) -> Result<i32, ApiError> {
    let params = edited(target, id, text);
    match api.call::<Value>("editMessageText", &params).await {
        Err(error) if !error.is_not_modified() => Err(error),
        _ => Ok(id),
    }
}

/// Sends a text with buttons.
pub(super) async fn ask(
    api: &Api,
    target: &Target,
    text: &str,
    keyboard: InlineKeyboardMarkup,
) -> Result<i32, ApiError> {
    let mut params = message(target, text);
    set(&mut params, "reply_markup", json!(keyboard));
    let sent: SentMessage = api.call("sendMessage", &params).await?;
    Ok(sent.message_id)
}

pub(super) async fn delete(api: &Api, target: &Target, id: i32) -> Result<(), ApiError> {
    let params = json!({ "chat_id": target.chat, "message_id": id });
    api.call::<Value>("deleteMessage", &params).await.map(drop)
}

/// Shows for a few seconds that the bot is typing.
pub(super) async fn show_typing(api: &Api, target: &Target) -> Result<(), ApiError> {
    let mut params = in_chat(target);
    set(&mut params, "action", "typing");
    api.call::<Value>("sendChatAction", &params).await.map(drop)
}

/// How a file can be sent: the method, its field, and what it accepts.
type Way = (&'static str, &'static str, fn(&Media) -> bool);

/// The ways to send a file. The first that accepts it is tried first; the last one accepts everything.
const WAYS: [Way; 4] = [
    ("sendPhoto", "photo", |media| {
        let types = ["image/jpeg", "image/png", "image/webp"];
        types.contains(&media.media_type.as_str()) && media.size <= 10 << 20
    }),
    ("sendVoice", "voice", |media| {
        let types = [
            "audio/ogg",
            "audio/opus",
            "audio/mpeg",
            "audio/mp4",
            "audio/x-m4a",
            "audio/m4a",
        ];
        media.kind == MediaKind::Audio && types.contains(&media.media_type.as_str())
    }),
    ("sendAudio", "audio", |media| media.kind == MediaKind::Audio),
    ("sendDocument", "document", |_| true),
];

/// Sends a file with a caption. A file that Telegram refuses in its own form is sent as a document.
pub(super) async fn send_file(
    api: &Api,
    target: &Target,
    (media, path): (&Media, &Path),
    caption: &str,
    reply_to: Option<i32>,
) -> Result<i32, ApiError> {
    let mut params = in_chat(target);
    if !caption.is_empty() {
        set(&mut params, "caption", caption);
    }
    if let Some(id) = reply_to {
        set(&mut params, "reply_parameters", reply(id));
    }
    let mut refused = None;
    for (method, field, _) in WAYS.iter().filter(|(_, _, accepts)| accepts(media)) {
        let file = (*field, path, media.name.as_str());
        match api.upload::<SentMessage>(method, &params, file).await {
            Ok(sent) => return Ok(sent.message_id),
            Err(error) if error.is_bad_request() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| ApiError::Failed {
        method: "sendDocument",
        cause: "no way to send the file".to_owned(),
    }))
}

fn set(params: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(params) = params.as_object_mut() {
        params.insert(key.to_owned(), value.into());
    }
}

fn reply(id: i32) -> Value {
    json!({ "message_id": id, "allow_sending_without_reply": true })
}

/// Returns the parameters that select a chat and its topic.
fn in_chat(target: &Target) -> Value {
    let mut params = json!({ "chat_id": target.chat });
    if let Some(thread) = target.thread {
        set(&mut params, "message_thread_id", thread);
    }
    params
}

fn message(target: &Target, text: &str) -> Value {
    let mut params = in_chat(target);
    set(&mut params, "text", text);
    set(&mut params, "link_preview_options", no_link_preview());
    params
}

fn edited(target: &Target, id: i32, text: &str) -> Value {
    json!({
        "chat_id": target.chat,
        "message_id": id,
        "text": text,
        "link_preview_options": no_link_preview(),
    })
}

/// Telegram would fetch the first link of an answer, and so report what the agent wrote to that server.
fn no_link_preview() -> Value {
    json!({ "is_disabled": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    // G55
    #[test]
    fn pieces_fit_after_markup_and_escapes() {
        let code = "if a < b && c > d { \"👍\" }\n".repeat(400);
        let text = format!(
            "Intro **bold**.\n\n```rust\n{code}```\n\n{}",
            "a & b. ".repeat(900)
        );
        let pieces = pieces(&text);
        assert!(pieces.len() > 3);
        for TextPiece { html, plain } in &pieces {
            assert!(TextUnit::Utf16.measure(html) <= MAX_TEXT);
            assert!(TextUnit::Utf16.measure(plain) <= MAX_TEXT);
            assert_eq!(
                html.matches("<pre>").count(),
                html.matches("</pre>").count()
            );
            assert_eq!(plain.matches("```").count() % 2, 0);
        }
        let shown: String = pieces.iter().map(|piece| piece.html.as_str()).collect();
        assert_eq!(shown.matches("&quot;👍&quot;").count(), 400);
        assert_eq!(shown.matches("a &amp; b.").count(), 900);
    }

    #[test]
    fn a_text_without_content_has_no_pieces() {
        assert_eq!(pieces("").len() + pieces(" \n\n").len(), 0);
    }

    #[test]
    fn a_chat_is_a_number_and_a_topic() {
        let chat = |chat: &str, thread: Option<&str>| ChatRef {
            channel: tenterhook_channel::chat::ChannelId::new("tg").unwrap(),
            chat: chat.to_owned(),
            thread: thread.map(str::to_owned),
        };
        let found = Target::of(&chat("-100", Some("9"))).unwrap();
        assert_eq!(
            (found.chat, found.thread, found.is_group),
            (-100, Some(9), true)
        );
        assert!(Target::of(&chat("x", None)).is_none());
        assert!(Target::of(&chat("1", Some("x"))).is_none());
    }
}
