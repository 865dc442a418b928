//! How clients that speak frames name their chats.
//!
//! A client chooses the ids of its chats. The gateway puts the user in front of them, so that a token reaches the chats
//! of its own user only.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use tenterhook_channel::chat::{ChannelId, ChatRef};

/// The maximum length of a client's id of a chat.
const MAX_ID: usize = 64;

/// A client's id of a chat: 1 to 64 letters, digits, `.`, `_` and `-`, but neither `.` nor `..`: in the path of a request,
/// clients and proxies take these for folders, so the request would be about something else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientChatId(String);

/// The error of an invalid [`ClientChatId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{found}` cannot be the id of a chat; expected 1 to {MAX_ID} letters, digits, `.`, `_` and `-`, and not `.` or `..`"
)]
pub struct InvalidClientChatId {
    /// The beginning of the id that is not one.
    pub found: String,
}

impl ClientChatId {
    /// Checks an id.
    ///
    /// # Errors
    ///
    /// Fails if the id is empty, too long, or has other characters.
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidClientChatId> {
        let id = id.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_folder = id == "." || id == "..";
        if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_allowed) && !is_folder {
            Ok(Self(id))
        } else {
            let found = id.chars().take(MAX_ID).collect();
            Err(InvalidClientChatId { found })
        }
    }

    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the chat of a user that has this id.
    pub fn chat_of(&self, channel: &ChannelId, user: &str) -> ChatRef {
        owned_chat(channel, user, &self.0)
    }

    /// Returns the client's id of a chat. `None` if the chat belongs to another channel or user.
    pub fn of(chat: &ChatRef, channel: &ChannelId, user: &str) -> Option<Self> {
        let (owner, id) = chat.chat.split_once('/')?;
        let is_own = chat.channel == *channel && owner == user && chat.thread.is_none();
        is_own.then(|| Self::new(id).ok()).flatten()
    }
}

/// Returns the place of a user, which no client can name: the ids of all chats of the user begin with its id, and it owns
/// the files that the user uploads before they are part of a message.
pub fn place_of(channel: &ChannelId, user: &str) -> ChatRef {
    owned_chat(channel, user, "")
}

fn owned_chat(channel: &ChannelId, user: &str, id: &str) -> ChatRef {
    ChatRef {
        channel: channel.clone(),
        chat: format!("{user}/{id}"),
        thread: None,
    }
}

impl TryFrom<String> for ClientChatId {
    type Error = InvalidClientChatId;

    fn try_from(id: String) -> Result<Self, Self::Error> {
        Self::new(id)
    }
}

impl From<ClientChatId> for String {
    fn from(id: ClientChatId) -> Self {
        id.0
    }
}

impl fmt::Display for ClientChatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_reaches_the_chats_of_its_own_user_only() {
        let web = ChannelId::new("web").unwrap();
        let http = ChannelId::new("http").unwrap();
        let id = ClientChatId::new("Work_1.a-b").unwrap();
        let chat = id.chat_of(&web, "alice");
        assert_eq!(chat.to_string(), "web:alice/Work_1.a-b");
        assert_eq!(ClientChatId::of(&chat, &web, "alice"), Some(id));
        assert_eq!(ClientChatId::of(&chat, &web, "bob"), None);
        assert_eq!(ClientChatId::of(&chat, &web, "alic"), None);
        assert_eq!(ClientChatId::of(&chat, &http, "alice"), None);
        let uploads = place_of(&web, "alice");
        assert_eq!(ClientChatId::of(&uploads, &web, "alice"), None);
    }

    #[test]
    fn an_id_of_a_chat_cannot_reach_another_user() {
        for id in ["", "a/b", "../x", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(ClientChatId::new(id).is_err(), "{id:?}");
        }
        assert!(ClientChatId::new("x".repeat(64)).is_ok());
    }

    #[test]
    fn a_chat_called_like_a_folder_is_refused() {
        for id in [".", ".."] {
            let error = ClientChatId::new(id).unwrap_err().to_string();
            assert!(error.contains("not `.` or `..`"), "{error}");
        }
        for id in ["...", ".a", "a.."] {
            assert!(ClientChatId::new(id).is_ok(), "{id}");
        }
        let web = ChannelId::new("web").unwrap();
        let stored = ChatRef {
            channel: web.clone(),
            chat: "ada/..".to_owned(),
            thread: None,
        };
        assert_eq!(ClientChatId::of(&stored, &web, "ada"), None);
    }
}
