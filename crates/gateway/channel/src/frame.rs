//! What goes out: frames, the units of output that every channel gets.
//!
//! A turn is `start`, then any number of `chunk`, `error` with `retry`, `end` and `message`, then `done`. The frames
//! `call`, `end`, `message`, `error` (unless it announces a retry) and `done` are *durable*: they are stored before they are
//! sent, and have a number `seq` that counts the durable frames of their chat from 1, without gaps. All other frames
//! are lost if no one listens; `end` repeats the text of its chunks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_protocol::{JsonObject, Usage};

use crate::approval_card::ApprovalCard;
use crate::message::{ApprovalChoice, MediaKind};

/// A unit of output of one chat. Its JSON form is what clients of the web page, of HTTP and of stdio read, with `chat`
/// and, if it is durable, `seq` next to these fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Frame {
    /// A message of a person, as the hooks left it. It is durable, so that a client that connects later can show the
    /// whole conversation.
    Said {
        /// The channel's id of the message.
        message_id: String,
        /// The sender.
        sender: String,
        /// The text.
        text: String,
        /// The files of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        media: Vec<Media>,
        /// Whether a hook has turned recordings of the message into text. The recordings are in `media` nevertheless.
        #[serde(default, skip_serializing_if = "is_false")]
        is_transcript: bool,
    },
    /// A message was taken although the agent works.
    Queued {
        /// The message.
        message_id: String,
        /// How it was taken.
        how: QueuedHow,
        /// How many messages wait now.
        waiting: usize,
    },
    /// A turn begins.
    Start {
        /// The turn.
        turn: String,
        /// The messages that it answers.
        in_reply_to: Vec<String>,
    },
    /// A piece of the turn.
    Chunk {
        /// The turn.
        turn: String,
        /// The piece.
        #[serde(flatten)]
        chunk: Chunk,
        /// Whether the piece replaces all earlier text of the current message.
        #[serde(default, skip_serializing_if = "is_false")]
        replace: bool,
    },
    /// A tool call that has ended. It repeats the chunks of the call for clients that read the conversation later, and
    /// comes with the next durable frame.
    Call {
        /// The turn.
        turn: String,
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, with long texts shortened.
        args: Box<JsonObject>,
        /// Whether it failed.
        is_error: bool,
        /// The result, at most 300 characters.
        result: String,
        /// What stopped it: the event whose hook denied the call, or `permission`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denied_by: Option<String>,
    },
    /// A message of the agent is complete.
    End {
        /// The turn.
        turn: String,
        /// The whole text, as the hooks of `message_deliver` left it.
        text: String,
        /// Whether it is the last message of the turn.
        is_final: bool,
        /// Why the message ended.
        reason: EndReason,
    },
    /// A message besides the answer: a part of a hook or a tool, the output of a command, a message from the command line.
    Message {
        /// The turn, if it belongs to one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
        /// The text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// A file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media: Option<Media>,
        /// The message that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    },
    /// Something failed, or a hook rejected a message.
    Error {
        /// The turn, if it belongs to one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<String>,
        /// The message that was rejected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// A word for the kind of failure, such as `rejected`.
        code: String,
        /// The text for people.
        text: String,
        /// The retry that follows, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Retry>,
    },
    /// A turn has ended. Nothing of it follows.
    Done {
        /// The turn.
        turn: String,
        /// How it ended.
        status: TurnStatus,
        /// The tokens that it used, if they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A question whether a tool call may run.
    Approve {
        /// Identifies the question.
        nonce: String,
        /// The call, as in the chunks of its turn.
        call_id: String,
        /// The tool.
        tool: String,
        /// Its arguments, after all changes by hooks.
        args: Box<JsonObject>,
        /// What people read. The texts in it are escaped, unlike the arguments.
        card: Box<ApprovalCard>,
        /// The possible answers.
        choices: Vec<ApprovalChoice>,
        /// When the question expires: seconds since 1970.
        expires: i64,
    },
    /// A question of a script.
    Question {
        /// Identifies the question.
        nonce: String,
        /// The question, in the form of the agent's `ScriptQuestion`.
        question: Value,
        /// When the question expires: seconds since 1970.
        expires: i64,
    },
    /// A question is over.
    Resolved {
        /// The question.
        nonce: String,
        /// The outcome: `allowed`, `denied`, `answered`, `expired` or `withdrawn`.
        outcome: String,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A note that is not part of the conversation.
    Notice {
        /// The text.
        text: String,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Frame {
    /// Returns whether the frame is stored before it is sent.
    pub fn is_durable(&self) -> bool {
        match self {
            Self::Said { .. }
            | Self::Call { .. }
            | Self::End { .. }
            | Self::Message { .. }
            | Self::Done { .. } => true,
            Self::Error { retry, .. } => retry.is_none(),
            Self::Queued { .. }
            | Self::Start { .. }
            | Self::Chunk { .. }
            | Self::Approve { .. }
            | Self::Question { .. }
            | Self::Resolved { .. }
            | Self::Notice { .. } => false,
        }
    }

    /// Returns the file that the frame shows, if it shows one.
    pub fn media(&self) -> Option<&Media> {
        if let Self::Message { media, .. } = self {
            media.as_ref()
        } else {
            None
        }
    }

    /// Returns the turn that the frame belongs to, if it belongs to one.
    pub fn turn(&self) -> Option<&String> {
        match self {
            Self::Start { turn, .. }
            | Self::Chunk { turn, .. }
            | Self::Call { turn, .. }
            | Self::End { turn, .. }
            | Self::Done { turn, .. } => Some(turn),
            Self::Message { turn, .. } | Self::Error { turn, .. } => turn.as_ref(),
            Self::Said { .. }
            | Self::Queued { .. }
            | Self::Approve { .. }
            | Self::Question { .. }
            | Self::Resolved { .. }
            | Self::Notice { .. } => None,
        }
    }
}

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chunk {
    /// Text of the answer.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The text.
        text: String,
    },
    /// A tool call begins, or hooks changed its arguments.
    ToolStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        args: JsonObject,
    },
    /// A partial result of a tool call.
    ToolUpdate {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The partial result.
        text: String,
    },
    /// A tool call has ended, or hooks have denied it.
    ToolEnd {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// Whether it failed.
        is_error: bool,
        /// The result, at most 300 characters.
        result: String,
        /// What stopped it: the event whose hook denied the call, or `permission`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        denied_by: Option<String>,
    },
    /// What a hook let people know during the turn.
    Hook {
        /// The event.
        event: String,
        /// The text.
        text: String,
        /// Whether the hook failed.
        is_failure: bool,
    },
}

/// How a message was taken while the agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueuedHow {
    /// The agent hears it at its next step.
    Steer,
    /// It begins the next turn.
    FollowUp,
    /// It becomes part of the next turn, with the messages around it.
    Collect,
}

/// Why a message of the agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It is complete.
    Stop,
    /// Tool calls follow.
    Tools,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Error,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It was answered.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A failed attempt that is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// The number of attempts.
    pub max: u32,
    /// Whether a later attempt has succeeded.
    pub is_recovered: bool,
}

/// A file in a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// The id of our copy. `GET /v1/media/{id}` returns it.
    pub id: String,
    /// The media type of its bytes, such as `image/png`.
    pub media_type: String,
    /// The name to show.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
}

/// A frame with its place in a chat: what is stored and sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatFrame {
    /// The number among the durable frames of the chat, from 1. `None` for a frame that is not durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The frame.
    #[serde(flatten)]
    pub frame: Frame,
}
