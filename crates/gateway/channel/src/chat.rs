//! Where messages come from: channels, chats and senders.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The maximum length of a channel's id in bytes.
const MAX_CHANNEL_ID: usize = 32;

/// The maximum length of an id that a channel assigns, in bytes.
pub const MAX_FOREIGN_ID: usize = 256;

/// The id of a channel: the name that it has in the settings, such as `web`.
///
/// It has 1 to 32 characters: lower-case letters, digits, `_` and `-`. The first one is a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelId(String);

/// The error of an invalid [`ChannelId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{found}` cannot be the name of a channel; expected 1 to 32 lower-case letters, digits, `_` and `-`, beginning with a letter or a digit"
)]
pub struct InvalidChannelId {
    /// The invalid name.
    pub found: String,
}

impl ChannelId {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// Fails if the name is empty, too long, or has other characters.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidChannelId> {
        let name = name.into();
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_valid = name.len() <= MAX_CHANNEL_ID
            && name.bytes().next().is_some_and(is_word)
            && name
                .bytes()
                .all(|byte| is_word(byte) || byte == b'_' || byte == b'-');
        if is_valid {
            Ok(Self(name))
        } else {
            Err(InvalidChannelId { found: name })
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ChannelId {
    type Error = InvalidChannelId;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ChannelId> for String {
    fn from(id: ChannelId) -> Self {
        id.0
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A conversation in a channel: a direct chat, a group, or a thread of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChatRef {
    /// The channel.
    pub channel: ChannelId,
    /// The channel's id of the conversation, at most [`MAX_FOREIGN_ID`] bytes.
    pub chat: String,
    /// The thread or topic in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Writes `channel:chat`, or `channel:chat#thread`.
impl fmt::Display for ChatRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.channel, self.chat)?;
        match &self.thread {
            Some(thread) => write!(f, "#{thread}"),
            None => Ok(()),
        }
    }
}

/// The person or program that wrote a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sender {
    /// The channel's id of the sender. Only this identifies a sender.
    pub id: String,
    /// The name that the sender chose. Anyone can choose any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the channel says that the sender is a program.
    #[serde(default)]
    pub is_bot: bool,
}

/// Decides which session a message belongs to: all messages with the same key share a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionKey(pub String);

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_channel_is_a_short_word() {
        for name in ["web", "tg-2", "0", "a_b", &"x".repeat(32)] {
            assert!(ChannelId::new(name).is_ok(), "{name}");
        }
        for name in ["", "Web", "-a", "_a", "a:b", "a b", "ü", &"x".repeat(33)] {
            assert!(ChannelId::new(name).is_err(), "{name}");
        }
    }
}
