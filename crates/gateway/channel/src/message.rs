//! What comes in: messages of people, and their requests that are not messages.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::chat::{ChatRef, Sender};

/// The maximum length of a message's text in bytes, over all its parts.
pub const MAX_TEXT: usize = 256 << 10;

/// A message that a channel received, before anything has judged it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncomingMessage {
    /// Identifies the message in its channel, also after a restart: two messages with the same value are the same one.
    /// It includes the channel's account, if the channel has one.
    pub dedupe: String,
    /// The channel's id of the message. Answers refer to it.
    pub message_id: String,
    /// The chat.
    pub chat: ChatRef,
    /// Who wrote it.
    pub sender: Sender,
    /// Whether the sender is alone with the agent.
    pub is_direct: bool,
    /// Whether the message is addressed to the agent: a mention by the channel's own means, or a reply to the agent. It
    /// is always true in a direct chat.
    pub is_addressed: bool,
    /// The parts, in the sender's order.
    pub parts: Vec<IncomingPart>,
    /// The message that this one replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// When the channel received it.
    pub at: Timestamp,
}

/// A part of an [`IncomingMessage`] message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum IncomingPart {
    /// Text, at most [`MAX_TEXT`] bytes in all.
    Text {
        /// The text.
        text: String,
    },
    /// A file that the channel can fetch. Nothing is fetched before the sender is admitted.
    Media(MediaRef),
    /// Another message that this one refers to.
    Reference(MessageReference),
    /// Something that the channel cannot fetch. The sender gets a message that says so.
    Unreadable {
        /// What it is, in the plural: `stickers`.
        what: String,
    },
}

/// Another message to which a message refers, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReference {
    /// How the message refers to it.
    pub kind: ReferenceKind,
    /// Who wrote the other message, as the channel shows it. Anyone can choose any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What the message replies to, shortened. Empty for the other kinds: their text is the text of the message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// How a message refers to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceKind {
    /// It replies to it.
    Reply,
    /// It passes it on: someone else wrote it.
    Forward,
    /// It is a new version of the sender's own earlier message.
    Edit,
}

impl ReferenceKind {
    /// Returns the word that parts of messages use: `reply`, `forward` or `edit`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Forward => "forward",
            Self::Edit => "edit",
        }
    }
}

/// A file in a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaRef {
    /// What the channel says that the file is.
    pub kind: MediaKind,
    /// How the channel finds the file. Only the channel reads this.
    pub reference: String,
    /// The sender's name of the file. It is never used as a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long a recording is, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// Speech or other sound.
    Audio,
    /// A picture.
    Image,
    /// Anything else.
    File,
}

impl MediaKind {
    /// Returns the word that messages and frames use: `audio`, `image` or `file`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Image => "image",
            Self::File => "file",
        }
    }
}

/// A request of a person that is not a message. It does not wait behind messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Stops the turn of a chat, and removes the sender's own waiting messages.
    Cancel {
        /// The chat.
        chat: ChatRef,
        /// Who wants it.
        sender: Sender,
    },
    /// Answers the question whether a tool call may run.
    Approval {
        /// Identifies the question.
        nonce: String,
        /// The answer.
        choice: ApprovalChoice,
        /// The reason of a denial, if there is one.
        reason: Option<String>,
        /// Where the answer was given.
        chat: ChatRef,
        /// Who answers.
        sender: Sender,
    },
    /// Answers another question.
    Answer {
        /// Identifies the question.
        nonce: String,
        /// The answer. `None` dismisses the question.
        text: Option<String>,
        /// Where the answer was given.
        chat: ChatRef,
        /// Who answers.
        sender: Sender,
    },
}

impl Control {
    /// Returns the chat in which the request was made.
    pub fn chat(&self) -> &ChatRef {
        match self {
            Self::Cancel { chat, .. } | Self::Approval { chat, .. } | Self::Answer { chat, .. } => {
                chat
            }
        }
    }

    /// Returns who made the request.
    pub fn sender(&self) -> &Sender {
        match self {
            Self::Cancel { sender, .. }
            | Self::Approval { sender, .. }
            | Self::Answer { sender, .. } => sender,
        }
    }
}

/// An answer to the question whether a tool call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChoice {
    /// The call may run.
    Allow,
    /// The call may run, and so may similar calls for the rest of the session. Only owners in direct chats have it.
    AllowSession,
    /// The call may not run.
    Deny,
}
