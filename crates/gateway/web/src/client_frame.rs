//! What clients send over a connection, and the answers to it.
//!
//! The frames of chats are in [`frame`](tenterhook_channel::frame). Everything here is about the connection itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_protocol::event::SenderRole;

use crate::client_chat::ClientChatId;
use tenterhook_channel::frame::ChatFrame;
use tenterhook_channel::message::ApprovalChoice;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;
/// The maximum length of a client's frame in bytes.
pub const MAX_CLIENT_FRAME: usize = 1 << 20;
/// The maximum number of characters of what a client sent that an error repeats.
const MAX_QUOTE: usize = 128;

/// The types of [`ClientFrame`].
const TYPES: [&str; 8] = [
    "hello", "message", "cancel", "approve", "answer", "history", "ack", "ping",
];

/// A frame of a client. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientFrame {
    /// Begins the connection.
    Hello {
        /// The version of the protocol that the client speaks.
        #[serde(default = "current_protocol")]
        protocol: u32,
        /// An access token, if the connection was opened without one.
        #[serde(default)]
        token: Option<String>,
        /// The chats to follow, with the number of the last durable frame that the client has seen. 0 for all.
        #[serde(default)]
        chats: BTreeMap<ClientChatId, u64>,
    },
    /// A message for the agent.
    Message(ClientMessage),
    /// Stops what runs in a chat.
    Cancel {
        /// The chat.
        chat: ClientChatId,
    },
    /// Answers the question whether a tool call may run.
    Approve {
        /// Identifies the question.
        nonce: String,
        /// The answer.
        choice: ApprovalChoice,
        /// The reason of a denial.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Answers the question of a script.
    Answer {
        /// Identifies the question.
        nonce: String,
        /// The answer. `None` dismisses the question.
        #[serde(default)]
        text: Option<String>,
    },
    /// Requests earlier frames.
    History {
        /// The chat.
        chat: ClientChatId,
        /// Only frames with a smaller number than this. `None` for the last ones.
        #[serde(default)]
        before: Option<u64>,
        /// How many, at most 200.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// Says what the client has shown. It needs no answer: a client that comes back says it again in its `hello`.
    Ack {
        /// The chat.
        chat: ClientChatId,
        /// The number of the last durable frame.
        seq: u64,
    },
    /// Requests a `pong`.
    Ping,
}

fn current_protocol() -> u32 {
    PROTOCOL
}

/// A client's message for the agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ClientMessage {
    /// The chat.
    pub chat: ClientChatId,
    /// The client's id of the message: 1 to 128 visible ASCII characters. A message that is sent again has the same one.
    pub message_id: String,
    /// The text.
    #[serde(default)]
    pub text: Option<String>,
    /// The files.
    #[serde(default)]
    pub parts: Vec<ClientPart>,
    /// The message that this one replies to.
    #[serde(default)]
    pub reply_to: Option<String>,
}

/// A file of a client's message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ClientPart {
    /// A file that was uploaded.
    Uploaded {
        /// Its id.
        media: String,
    },
    /// A file in the message itself.
    Inline {
        /// What the client says that the file is, such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
        /// The name.
        #[serde(default)]
        name: Option<String>,
    },
    /// A file that came with the message, and was saved already. Clients cannot send it.
    #[serde(skip)]
    Saved {
        /// Its id.
        media: String,
    },
}

/// Why something that a client sent was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRefusal {
    /// A word for the reason.
    pub code: &'static str,
    /// The text for people.
    pub text: String,
    /// The message that was not taken, if it was one.
    pub message_id: Option<String>,
}

impl ClientRefusal {
    /// Creates a refusal.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            message_id: None,
        }
    }

    /// Names the message that was not taken.
    #[must_use]
    pub fn of_message(self, message_id: &str) -> Self {
        Self {
            message_id: Some(message_id.chars().take(MAX_QUOTE).collect()),
            ..self
        }
    }
}

impl ClientFrame {
    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// Fails if the text is too long, is not a JSON object, or is not a frame.
    pub fn parse(text: &str) -> Result<Self, ClientRefusal> {
        if text.len() > MAX_CLIENT_FRAME {
            let text = format!("a frame has at most {MAX_CLIENT_FRAME} bytes; upload large files");
            return Err(ClientRefusal::new("too_large", text));
        }
        let value: Value = serde_json::from_str(text).map_err(|error| {
            ClientRefusal::new("bad_json", format!("the frame is not JSON: {error}"))
        })?;
        let Some(word) = value.get("type").and_then(Value::as_str) else {
            let text = "a frame is an object with the field `type`";
            return Err(ClientRefusal::new("bad_frame", text));
        };
        let Some(kind) = TYPES.iter().find(|known| **known == word) else {
            let word: String = word.chars().take(MAX_QUOTE).collect();
            let text = format!(
                "unknown frame type `{word}`; expected one of {}",
                TYPES.join(", ")
            );
            return Err(ClientRefusal::new("unknown_type", text));
        };
        let message_id = value.get("message_id").and_then(Value::as_str);
        let message_id = message_id.map(str::to_owned);
        serde_json::from_value(value).map_err(|error| {
            let error: String = error.to_string().chars().take(2 * MAX_QUOTE).collect();
            let refusal = ClientRefusal::new("bad_frame", format!("`{kind}`: {error}"));
            match message_id {
                Some(id) => refusal.of_message(&id),
                None => refusal,
            }
        })
    }
}

/// What the gateway sends over a connection besides frames of chats.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerFrame {
    /// Answers `hello`.
    Ready {
        /// The version of the protocol.
        protocol: u32,
        /// The user.
        user: String,
        /// What the client may do.
        role: SenderRole,
        /// The chats of the user, the most recent first.
        chats: Vec<ClientChat>,
        /// The version of the program.
        server_version: &'static str,
    },
    /// A message is durable and will be processed.
    Accepted {
        /// The chat.
        chat: ClientChatId,
        /// The message.
        message_id: String,
        /// Whether it was accepted before.
        duplicate: bool,
    },
    /// Durable frames that the client has not seen are not stored any more.
    Gap {
        /// The chat.
        chat: ClientChatId,
        /// The number of the first one.
        from: u64,
        /// The number of the last one.
        to: u64,
    },
    /// Answers `history`.
    History {
        /// The chat.
        chat: ClientChatId,
        /// The frames, in order.
        frames: Vec<ChatFrame>,
        /// The number of the oldest frame that is stored, or 0 without frames.
        oldest: u64,
    },
    /// Something was not taken.
    Error {
        /// The chat, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        chat: Option<ClientChatId>,
        /// The message, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// A word for the reason.
        code: &'static str,
        /// The text for people.
        text: String,
    },
    /// A note about a request.
    Notice {
        /// The chat.
        chat: ClientChatId,
        /// The text.
        text: String,
    },
    /// Answers `ping`.
    Pong,
    /// The gateway closes the connection.
    Bye {
        /// Why: `left` (the client closed its side), `shutdown`, `slow`, `idle`, `unauthorized` or `unreadable`.
        reason: &'static str,
    },
}

/// A chat of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientChat {
    /// The client's id.
    pub id: ClientChatId,
    /// The beginning of the first message.
    pub title: String,
    /// The number of the last durable frame.
    pub last_seq: u64,
    /// When that was stored: milliseconds since 1970.
    pub at: i64,
}

impl ServerFrame {
    /// Returns a refusal as a frame.
    pub fn error(refusal: ClientRefusal, chat: Option<ClientChatId>) -> Self {
        Self::Error {
            chat,
            message_id: refusal.message_id,
            code: refusal.code,
            text: refusal.text,
        }
    }

    /// Returns the JSON form.
    pub fn encode(&self) -> String {
        encode(self)
    }
}

/// Returns the JSON form of a frame of a chat.
pub fn encode_chat_frame(chat: &ClientChatId, frame: &ChatFrame) -> String {
    #[derive(Serialize)]
    struct Named<'a> {
        chat: &'a ClientChatId,
        #[serde(flatten)]
        frame: &'a ChatFrame,
    }
    encode(&Named { chat, frame })
}

/// All of these types have string keys, so this cannot fail.
fn encode<T: Serialize>(frame: &T) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tenterhook_channel::frame::{Chunk, Frame};

    #[test]
    fn malformed_frames_are_refused_with_a_reason() {
        let long_type = json!({"type": "x".repeat(500)}).to_string();
        let too_large = json!({"type": "ping", "x": "x".repeat(MAX_CLIENT_FRAME)}).to_string();
        let deep = "[".repeat(500);
        let table: &[(&str, &str, &str)] = &[
            ("", "bad_json", "not JSON"),
            ("{", "bad_json", "not JSON"),
            (&deep, "bad_json", "recursion"),
            ("[]", "bad_frame", "an object"),
            ("null", "bad_frame", "an object"),
            ("{}", "bad_frame", "`type`"),
            (r#"{"type":7}"#, "bad_frame", "`type`"),
            (r#"{"type":"start"}"#, "unknown_type", "`start`"),
            (r#"{"type":"Ping"}"#, "unknown_type", "`Ping`"),
            (&long_type, "unknown_type", "hello, message"),
            (&too_large, "too_large", "at most 1048576 bytes"),
            (
                r#"{"type":"message","chat":"a"}"#,
                "bad_frame",
                "message_id",
            ),
            (
                r#"{"type":"message","message_id":"1"}"#,
                "bad_frame",
                "chat",
            ),
            (
                r#"{"type":"message","chat":"a/b","message_id":"1"}"#,
                "bad_frame",
                "`a/b`",
            ),
            (
                r#"{"type":"message","chat":"a","message_id":"1","parts":[{}]}"#,
                "bad_frame",
                "message",
            ),
            (r#"{"type":"hello","chats":{"a":-1}}"#, "bad_frame", "hello"),
            (r#"{"type":"hello","chats":{"":1}}"#, "bad_frame", "hello"),
            (
                r#"{"type":"approve","nonce":"n","choice":"yes"}"#,
                "bad_frame",
                "yes",
            ),
        ];
        for (text, code, about) in table {
            let refusal = ClientFrame::parse(text).unwrap_err();
            assert_eq!(refusal.code, *code, "{refusal:?}");
            assert!(refusal.text.contains(about), "{refusal:?}");
            assert!(refusal.text.len() < 400, "{refusal:?}");
        }
        let refusal = ClientFrame::parse(r#"{"type":"message","message_id":"1"}"#).unwrap_err();
        assert_eq!(refusal.message_id.as_deref(), Some("1"));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        assert_eq!(
            ClientFrame::parse(r#"{"type":"ping","later":{"x":1}}"#),
            Ok(ClientFrame::Ping)
        );
        let hello = ClientFrame::parse(r#"{"type":"hello","protocol":1,"chats":{"a":3}}"#);
        assert!(matches!(hello, Ok(ClientFrame::Hello { chats, .. }) if chats.len() == 1));
    }

    #[test]
    fn every_type_of_the_table_can_be_read() {
        let all = json!({
            "chat": "a", "message_id": "1", "nonce": "n", "choice": "allow_session", "seq": 1,
        });
        for word in TYPES {
            let mut frame = all.clone();
            frame["type"] = word.into();
            assert!(ClientFrame::parse(&frame.to_string()).is_ok(), "{word}");
        }
    }

    #[test]
    fn frames_of_a_chat_leave_with_the_id_of_the_client() {
        let frame = ChatFrame {
            seq: None,
            frame: Frame::Chunk {
                turn: "t".to_owned(),
                chunk: Chunk::Text {
                    text: "hi".to_owned(),
                },
                replace: false,
            },
        };
        let chat = ClientChatId::new("a").unwrap();
        let json: Value = serde_json::from_str(&encode_chat_frame(&chat, &frame)).unwrap();
        assert_eq!(
            json,
            json!({"chat": "a", "type": "chunk", "turn": "t", "kind": "text", "text": "hi"})
        );
    }

    /// Returns the lines of the blocks of gateway-protocol.md with this word after their language.
    fn documented(word: &str) -> Vec<String> {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/reference/gateway-protocol.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        let begin = format!("```json {word}\n");
        let block = page.split(&begin).nth(1).unwrap();
        let block = block.split("```").next().unwrap();
        block.lines().map(str::to_owned).collect()
    }

    fn types(lines: &[String], key: &str) -> std::collections::BTreeSet<String> {
        let values = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        let words = values.filter_map(|value: Value| Some(value[key].as_str()?.to_owned()));
        words.collect()
    }

    fn words(words: &[&str]) -> std::collections::BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_page_of_the_protocol_shows_every_frame_of_clients() {
        let lines = documented("client");
        for line in &lines {
            ClientFrame::parse(line).unwrap();
        }
        assert_eq!(types(&lines, "type"), words(&TYPES));
    }

    #[test]
    fn the_page_of_the_protocol_shows_every_frame_of_chats() {
        let lines = documented("chat");
        let chat = ClientChatId::new("c").unwrap();
        for line in &lines {
            let frame: ChatFrame = serde_json::from_str(line).unwrap();
            let read: Value = serde_json::from_str(line).unwrap();
            let written: Value = serde_json::from_str(&encode_chat_frame(&chat, &frame)).unwrap();
            assert_eq!(written, read);
            assert_eq!(frame.seq.is_some(), frame.frame.is_durable(), "{line}");
        }
        let all = [
            "said", "queued", "start", "chunk", "call", "end", "message", "error", "done",
            "approve", "question", "resolved", "notice",
        ];
        assert_eq!(types(&lines, "type"), words(&all));
        let kinds = [
            "text",
            "thinking",
            "tool_start",
            "tool_update",
            "tool_end",
            "hook",
        ];
        assert_eq!(types(&lines, "kind"), words(&kinds));
    }

    #[test]
    fn the_page_of_the_protocol_shows_every_frame_about_the_connection() {
        let chat = ClientChatId::new("build-42").unwrap();
        let text = str::to_owned;
        let listed = ClientChat {
            id: chat.clone(),
            title: text("Is the build green?"),
            last_seq: 7,
            at: 1_700_000_000_000,
        };
        let refusal = ClientRefusal::new("not_admitted", "This chat is closed.").of_message("m1");
        let frames = [
            ServerFrame::Ready {
                protocol: PROTOCOL,
                user: text("ada"),
                role: SenderRole::Owner,
                chats: vec![listed],
                server_version: "…",
            },
            ServerFrame::Accepted {
                chat: chat.clone(),
                message_id: text("m1"),
                duplicate: false,
            },
            ServerFrame::Gap {
                chat: chat.clone(),
                from: 1,
                to: 4,
            },
            ServerFrame::History {
                chat: chat.clone(),
                frames: Vec::new(),
                oldest: 1,
            },
            ServerFrame::error(refusal, Some(chat.clone())),
            ServerFrame::Notice {
                chat,
                text: text("Nothing is running here."),
            },
            ServerFrame::Pong,
            ServerFrame::Bye { reason: "shutdown" },
        ];
        let frames: Vec<String> = frames.iter().map(ServerFrame::encode).collect();
        assert_eq!(documented("server"), frames);
    }
}
