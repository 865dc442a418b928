//! The interface of a channel.
//!
//! A channel receives messages and offers them to its [`Inlet`], and sends what the gateway gives it. It knows nothing
//! about agents, sessions and hooks, and only its own folder knows anything about its service.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tenterhook_protocol::event::SenderRole;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::chat::{ChannelId, ChatRef};
use crate::frame::{ChatFrame, Frame, Media};
use crate::message::{Control, IncomingMessage, MediaRef};

/// A connection to a place where people write.
///
/// All futures can be dropped at any time.
pub trait Channel: Send + Sync {
    /// Returns what the channel can do.
    fn capabilities(&self) -> ChannelCapabilities;

    /// Receives messages until `stop` is cancelled, and offers each to `inlet`. The channel acknowledges a message to
    /// its service only after [`Inlet::offer`] has returned [`Accepted::Recorded`] or [`Accepted::Duplicate`].
    ///
    /// # Errors
    ///
    /// Fails if the connection is lost, or if the service refuses it. The gateway calls it again, later and later.
    fn run(&self, inlet: Inlet, stop: CancellationToken)
    -> BoxFuture<'_, Result<(), ChannelError>>;

    /// Downloads a file. It is called only for messages whose sender was admitted.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be fetched, or if `into` is full.
    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>>;

    /// Sends a durable frame, or a question. Frames of one chat are sent in order, one at a time.
    ///
    /// # Errors
    ///
    /// Says whether sending it again can help.
    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>>;

    /// Shows a frame that is not durable. It must not block, and may be lost.
    fn live(&self, chat: &ChatRef, frame: &Frame);

    /// Returns how often a connected channel calls [`Inlet::alive`] at least. `None` if it does so only once.
    fn alive_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns whether [`send`](Self::send) does anything with a durable frame. Frames for which it does nothing are only
    /// stored. The default is yes.
    fn sends(&self, _frame: &Frame) -> bool {
        true
    }

    /// Returns whether anyone could answer a question in this chat now. The default is yes; a channel of connections
    /// returns whether one is open.
    fn can_ask(&self, _chat: &ChatRef) -> bool {
        true
    }
}

impl fmt::Debug for dyn Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channel")
    }
}

/// What a channel can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelCapabilities {
    /// Whether its clients read frames themselves, so that nothing has to be split, formatted or retried.
    pub speaks_frames: bool,
    /// The maximum size of a file in bytes, in both directions.
    pub max_file: u64,
    /// The media types of audio that it can send, the best first.
    pub audio_formats: &'static [&'static str],
}

/// Something to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// Where to.
    pub chat: ChatRef,
    /// What.
    pub frame: ChatFrame,
    /// The file of our copy, if the frame has one.
    pub file: Option<std::path::PathBuf>,
    /// How often sending was tried before. A restart counts.
    pub attempt: u32,
}

impl Outgoing {
    /// Returns the key that stays the same when the frame is sent again: `chat/seq`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.chat, self.frame.seq.unwrap_or_default())
    }

    /// Returns the file that the frame shows, if it shows one.
    pub fn media(&self) -> Option<&Media> {
        self.frame.frame.media()
    }
}

/// What a service said about a frame that it accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// The service's ids of the messages that the frame became. Empty if it became none.
    pub message_ids: Vec<String>,
}

/// Why a frame was not sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// Try again later.
    #[error("{cause}")]
    Retry {
        /// How long the service asks to wait.
        after: Option<Duration>,
        /// What happened. It contains no address and no token.
        cause: String,
    },
    /// Trying again cannot help.
    #[error("{cause}")]
    Permanent {
        /// What happened. It contains no address and no token.
        cause: String,
    },
}

/// Why a channel stopped receiving.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{cause}")]
pub struct ChannelError {
    /// A word for the kind of failure, such as `conflict` or `unauthorized`.
    pub code: &'static str,
    /// What happened. It contains no address and no token.
    pub cause: String,
}

impl ChannelError {
    /// Creates an error. After it, the channel is tried again.
    pub fn new(code: &'static str, cause: impl Into<String>) -> Self {
        Self {
            code,
            cause: cause.into(),
        }
    }
}

/// The result of offering a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is durable and will be processed.
    Recorded,
    /// It was recorded before.
    Duplicate,
    /// It will not be processed, and the channel can forget it. `notice` is what the sender is shown, if anything.
    Refused {
        /// A word for the reason: `not_admitted`, `too_large`, `rate`, `queue_full` …
        code: &'static str,
        /// The text for the sender. `None` means silence.
        notice: Option<String>,
    },
    /// It could not be recorded, for example because the disk is full. The channel must not acknowledge it, and offers
    /// it again later.
    Failed {
        /// What happened.
        cause: String,
    },
}

/// Takes what a channel receives. Clones are for the same channel.
#[derive(Clone)]
pub struct Inlet {
    channel: ChannelId,
    intake: Arc<dyn Intake>,
    generation: CancellationToken,
    role: Option<SenderRole>,
}

/// The side of the gateway that takes messages.
pub trait Intake: Send + Sync {
    /// Judges and records a message. `verified` is the role of a sender who has logged in to the channel itself.
    fn offer<'a>(
        &'a self,
        channel: &'a ChannelId,
        verified: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted>;

    /// Carries out a request. Returns what the sender is shown, if anything.
    fn control<'a>(
        &'a self,
        channel: &'a ChannelId,
        verified: Option<SenderRole>,
        control: Control,
    ) -> BoxFuture<'a, Option<String>>;

    /// Notes that the channel is connected: a poll completed, or a connection lives.
    fn is_alive(&self, channel: &ChannelId);

    /// Returns a number that the channel stored, such as an offset, for an account of its service. `None` if it has stored
    /// none.
    ///
    /// The error says why it cannot be read. The channel must not continue as if there were none.
    fn offset<'a>(
        &'a self,
        channel: &'a ChannelId,
        account: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, String>>;

    /// Stores a number for an account of the channel's service. Returns whether it is durable.
    fn set_offset<'a>(
        &'a self,
        channel: &'a ChannelId,
        account: &'a str,
        offset: i64,
    ) -> BoxFuture<'a, bool>;
}

impl Inlet {
    /// Creates the inlet of a channel. Once `generation` is cancelled, it accepts nothing: an attempt that was given
    /// up cannot deliver messages.
    pub fn new(channel: ChannelId, intake: Arc<dyn Intake>, generation: CancellationToken) -> Self {
        Self {
            channel,
            intake,
            generation,
            role: None,
        }
    }

    /// Returns an inlet for the messages of a sender who has logged in, and who may do what `role` says.
    #[must_use]
    pub fn for_role(&self, role: SenderRole) -> Self {
        Self {
            role: Some(role),
            ..self.clone()
        }
    }

    /// Returns the channel's id.
    pub fn channel(&self) -> &ChannelId {
        &self.channel
    }

    /// Offers a message. When this returns [`Accepted::Recorded`], the message survives a crash.
    ///
    /// The future can be dropped, for example because a client went away. The message is then taken all the same, so that
    /// none is recorded and waits for the next start of the program.
    pub async fn offer(&self, message: IncomingMessage) -> Accepted {
        if self.generation.is_cancelled() {
            return Accepted::Failed {
                cause: "the channel was restarted".to_owned(),
            };
        }
        let inlet = self.clone();
        let offered = tokio::spawn(async move {
            let Self {
                intake,
                channel,
                role,
                ..
            } = inlet;
            intake.offer(&channel, role, message).await
        });
        offered.await.unwrap_or_else(|error| Accepted::Failed {
            cause: error.to_string(),
        })
    }

    /// Carries out a request that is not a message. Returns what the sender is shown, if anything.
    ///
    /// The future can be dropped, for example because a client went away. The request is then carried out all the same:
    /// someone who wanted to stop a turn has stopped it.
    pub async fn control(&self, control: Control) -> Option<String> {
        if self.generation.is_cancelled() {
            return None;
        }
        let Self {
            intake,
            channel,
            role,
            ..
        } = self.clone();
        let carried_out =
            tokio::spawn(async move { intake.control(&channel, role, control).await });
        carried_out.await.unwrap_or_default()
    }

    /// Notes that the channel is connected. A channel that polls calls it after each completed poll.
    pub fn alive(&self) {
        if !self.generation.is_cancelled() {
            self.intake.is_alive(&self.channel);
        }
    }

    /// Returns the number that was stored for an account. `None` if none was stored.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read. The channel is tried again later.
    pub async fn offset(&self, account: &str) -> Result<Option<i64>, ChannelError> {
        let offset = self.intake.offset(&self.channel, account).await;
        offset.map_err(|cause| ChannelError::new("offset", cause))
    }

    /// Stores a number for an account. Returns whether it is durable.
    pub async fn set_offset(&self, account: &str, offset: i64) -> bool {
        !self.generation.is_cancelled()
            && self.intake.set_offset(&self.channel, account, offset).await
    }
}

impl fmt::Debug for Inlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inlet")
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

/// Takes the bytes of a file, up to a limit.
#[derive(Debug)]
pub struct MediaSink {
    bytes: Vec<u8>,
    limit: usize,
}

/// The error of a file that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the file is larger than {limit} bytes")]
pub struct MediaTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

impl MediaSink {
    /// Creates a sink that takes at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    ///
    /// Fails if the file becomes larger than the limit.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), MediaTooLarge> {
        if self.bytes.len().saturating_add(bytes.len()) > self.limit {
            self.bytes = Vec::new();
            return Err(MediaTooLarge { limit: self.limit });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
