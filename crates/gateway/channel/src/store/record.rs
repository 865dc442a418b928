//! What the store keeps, as others see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::SenderRole;
use thiserror::Error;

use crate::chat::{ChatRef, SessionKey};
use crate::frame::ChatFrame;
use crate::message::IncomingMessage;

/// The number of a message in the inbox. Later messages have larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboxId(pub u64);

/// The state of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// It waits for its turn.
    #[default]
    Received,
    /// Its turn runs, or ran when the program was killed.
    Running,
    /// It waits for its turn again: the chat has seen it, but the turn that it was added to ended without it.
    Unheard,
    /// It was answered.
    Answered,
    /// It was refused, with a word for the reason.
    Refused(String),
    /// Someone cancelled it.
    Cancelled,
    /// Its turn failed.
    Failed,
}

/// What changes in the same transaction in which frames are stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InboxUpdate {
    /// The messages of the inbox that get another state.
    pub ids: Vec<InboxId>,
    /// Their new state.
    pub state: InboxState,
    /// What the session's file of a key may lack if the computer loses its power. It replaces the document of the kind
    /// [`DocumentKind::SessionTail`].
    pub tail: Option<(SessionKey, Value)>,
}

impl From<(Vec<InboxId>, InboxState)> for InboxUpdate {
    fn from((ids, state): (Vec<InboxId>, InboxState)) -> Self {
        let tail = None;
        Self { ids, state, tail }
    }
}

/// A message of the inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxRecord {
    /// Its number.
    pub id: InboxId,
    /// The message.
    pub message: IncomingMessage,
    /// What the sender may do.
    pub role: SenderRole,
    /// The session that it belongs to.
    pub key: SessionKey,
    /// Its state.
    pub state: InboxState,
    /// What the session keeps about it, if a script of the agent sent it while its chat was idle. Then the message has
    /// the sender of the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<JsonObject>,
}

/// The result of [`Store::accept`](super::Store::accept).
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is matched at once")]
pub enum Recorded {
    /// The message is durable.
    Fresh(InboxRecord),
    /// A message with the same `dedupe` was recorded before.
    Duplicate,
    /// 10,000 messages wait, so it was not recorded.
    Full,
}

/// How many messages or frames wait, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueDepth {
    /// How many there are.
    pub waiting: u64,
    /// When the oldest one was stored: milliseconds since 1970. `None` if nothing waits, or if an earlier version
    /// stored it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<i64>,
}

impl QueueDepth {
    /// Counts one more, which was stored at this time.
    pub(super) fn count(&mut self, at: Option<i64>) {
        self.add(Self {
            waiting: 1,
            oldest: at,
        });
    }

    /// Adds what waits elsewhere.
    pub fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.oldest = match (self.oldest, other.oldest) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

/// What waits in a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatQueues {
    /// The chat.
    pub chat: ChatRef,
    /// Messages that are not finished.
    pub inbox: QueueDepth,
    /// Frames that have not left.
    pub outbox: QueueDepth,
}

/// A chat that the store knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatSummary {
    /// The chat.
    pub chat: ChatRef,
    /// The number of its last durable frame.
    pub last_seq: u64,
    /// When its last durable frame was stored: milliseconds since 1970.
    pub at: i64,
    /// The beginning of the first message, for lists; at most 80 characters.
    pub title: String,
}

/// Durable frames of a chat.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FramePage {
    /// The frames, in order.
    pub frames: Vec<ChatFrame>,
    /// The number of the oldest frame that is still stored, or 0 without frames.
    pub oldest: u64,
    /// Whether there are more that were asked for: a page is not larger than 1 MiB, unless it is one frame.
    pub has_more: bool,
}

/// Why the store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Another process has opened it.
    #[error("another gateway uses this state folder")]
    Locked,
    /// The caller asked for something that the store does not do. Nothing was stored.
    #[error("{cause}")]
    Invalid {
        /// What is wrong.
        cause: String,
    },
    /// It cannot be read or written.
    #[error("{cause}")]
    Io {
        /// What happened.
        cause: String,
    },
}

/// Documents that are found by their kind and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// A request to be admitted, and admitted senders.
    Pairing,
    /// An access token.
    Token,
    /// The number that a channel stores for an account.
    Offset,
    /// What happens to messages of a session key while the agent works.
    Busy,
    /// That the gateway was set up.
    Setup,
    /// What the session's file of a key may lack if the computer loses its power.
    SessionTail,
}

impl DocumentKind {
    /// Returns the word that the store and errors use.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pairing => "pairing",
            Self::Token => "token",
            Self::Offset => "offset",
            Self::Busy => "busy",
            Self::Setup => "setup",
            Self::SessionTail => "session_tail",
        }
    }
}
