//! The messages of the channel protocol.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use tenterhook_channel::chat::{ChannelId, ChatRef, MAX_FOREIGN_ID, Sender};
use tenterhook_channel::message::{ApprovalChoice, Control, IncomingMessage, IncomingPart};

/// The version of the protocol.
pub(super) const PROTOCOL: u32 = 1;

/// A line of the program: a request if it has `method`, else an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    #[serde(default)]
    pub(super) id: Value,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    #[serde(default)]
    pub(super) result: Value,
    pub(super) error: Option<Failure>,
}

/// The error of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub(super) message: String,
    pub(super) data: Option<FailureData>,
}

/// What an error says about sending again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct FailureData {
    pub(super) retry_after_ms: Option<u64>,
    #[serde(default)]
    pub(super) permanent: bool,
}

/// The result of `initialize`.
#[derive(Debug, Deserialize)]
pub(super) struct InitializeResult {
    #[serde(default)]
    pub(super) capabilities: ProgramCapabilities,
}

/// What the program can do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProgramCapabilities {
    pub(super) is_idempotent: bool,
    pub(super) plays_audio: bool,
    pub(super) max_file: Option<u64>,
}

/// The result of `send`.
#[derive(Debug, Deserialize)]
pub(super) struct SendResult {
    #[serde(default)]
    pub(super) message_ids: Vec<String>,
}

/// A request of the program.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Message(Box<IncomingMessage>),
    Control(Control),
}

#[derive(Deserialize)]
struct MessageParams {
    message_id: String,
    dedupe: Option<String>,
    chat: String,
    thread: Option<String>,
    sender: Sender,
    #[serde(default)]
    is_direct: bool,
    #[serde(default)]
    is_addressed: bool,
    parts: Vec<IncomingPart>,
    reply_to: Option<String>,
}

#[derive(Deserialize)]
struct ControlParams {
    chat: String,
    thread: Option<String>,
    sender: Sender,
    #[serde(flatten)]
    action: Action,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Action {
    Cancel,
    Approval {
        nonce: String,
        choice: ApprovalChoice,
        reason: Option<String>,
    },
    Answer {
        nonce: String,
        text: Option<String>,
    },
}

/// Why a request is not valid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    Method,
    Params(String),
}

/// Reads a request of the program.
pub(super) fn read(channel: &ChannelId, method: &str, params: Value) -> Result<Request, Invalid> {
    let bad = |error: serde_json::Error| Invalid::Params(error.to_string());
    match method {
        "message" => {
            let message = read_message(channel, serde_json::from_value(params).map_err(bad)?)?;
            Ok(Request::Message(Box::new(message)))
        }
        "control" => {
            let control = read_control(channel, serde_json::from_value(params).map_err(bad)?)?;
            Ok(Request::Control(control))
        }
        _ => Err(Invalid::Method),
    }
}

fn read_message(channel: &ChannelId, params: MessageParams) -> Result<IncomingMessage, Invalid> {
    check_ids(&[
        ("message_id", Some(&params.message_id)),
        ("dedupe", params.dedupe.as_ref()),
        ("reply_to", params.reply_to.as_ref()),
        ("sender.id", Some(&params.sender.id)),
    ])?;
    Ok(IncomingMessage {
        dedupe: params.dedupe.unwrap_or_else(|| params.message_id.clone()),
        message_id: params.message_id,
        chat: chat_ref(channel, params.chat, params.thread)?,
        sender: params.sender,
        is_direct: params.is_direct,
        is_addressed: params.is_addressed || params.is_direct,
        parts: params.parts,
        reply_to: params.reply_to,
        at: Timestamp::now(),
    })
}

fn read_control(channel: &ChannelId, params: ControlParams) -> Result<Control, Invalid> {
    let chat = chat_ref(channel, params.chat, params.thread)?;
    check_ids(&[("sender.id", Some(&params.sender.id))])?;
    let sender = params.sender;
    Ok(match params.action {
        Action::Cancel => Control::Cancel { chat, sender },
        Action::Approval {
            nonce,
            choice,
            reason,
        } => Control::Approval {
            nonce,
            choice,
            reason,
            chat,
            sender,
        },
        Action::Answer { nonce, text } => Control::Answer {
            nonce,
            text,
            chat,
            sender,
        },
    })
}

fn chat_ref(channel: &ChannelId, chat: String, thread: Option<String>) -> Result<ChatRef, Invalid> {
    check_ids(&[("chat", Some(&chat)), ("thread", thread.as_ref())])?;
    Ok(ChatRef {
        channel: channel.clone(),
        chat,
        thread,
    })
}

fn check_ids(ids: &[(&str, Option<&String>)]) -> Result<(), Invalid> {
    for (name, id) in ids {
        if id.is_some_and(|id| id.is_empty() || id.len() > MAX_FOREIGN_ID) {
            return Err(Invalid::Params(format!(
                "`{name}` is empty or too long, expected 1 to {MAX_FOREIGN_ID} bytes"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        let channel = ChannelId::new("mine").unwrap();
        let valid = json!({"message_id": "1", "chat": "c", "sender": {"id": "s"}, "is_direct": true,
            "parts": [{"type": "text", "text": "hi"}]});
        let Ok(Request::Message(message)) = read(&channel, "message", valid.clone()) else {
            panic!("not a message");
        };
        assert_eq!((message.dedupe.as_str(), message.is_addressed), ("1", true));
        for (key, value) in [
            ("message_id", json!("")),
            ("chat", json!("x".repeat(257))),
            ("sender", json!({"id": ""})),
            ("parts", json!("hi")),
            ("thread", json!(5)),
        ] {
            let mut params = valid.clone();
            params[key] = value;
            let found = read(&channel, "message", params);
            assert!(matches!(found, Err(Invalid::Params(_))), "{key}: {found:?}");
        }
        assert_eq!(read(&channel, "massage", valid), Err(Invalid::Method));
        let control = json!({"chat": "c", "sender": {"id": "s"}, "type": "approval", "nonce": "n",
            "choice": "deny"});
        let found = read(&channel, "control", control);
        assert!(matches!(
            found,
            Ok(Request::Control(Control::Approval { .. }))
        ));
    }
}
