//! The objects of Telegram's Bot API that a bot reads, with the fields that are used here.
//!
//! A crate with the whole interface would be as large as the rest of the gateway, because most of it would never be
//! called but could be received.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// An event in one of the bot's chats.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "UpdateFields")]
pub(super) struct Update {
    pub(super) update_id: i64,
    pub(super) content: UpdateContent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum UpdateContent {
    Message(Box<Message>),
    /// A new version of a message.
    Edited(Box<Message>),
    CallbackQuery(Box<CallbackQuery>),
    /// Something that Telegram was not asked for.
    Other,
}

#[derive(Deserialize)]
struct UpdateFields {
    update_id: i64,
    message: Option<Box<Message>>,
    edited_message: Option<Box<Message>>,
    callback_query: Option<Box<CallbackQuery>>,
}

impl From<UpdateFields> for Update {
    fn from(fields: UpdateFields) -> Self {
        let message = fields.message.map(UpdateContent::Message);
        let edited = fields.edited_message.map(UpdateContent::Edited);
        let query = fields.callback_query.map(UpdateContent::CallbackQuery);
        let content = message.or(edited).or(query).unwrap_or(UpdateContent::Other);
        Self {
            update_id: fields.update_id,
            content,
        }
    }
}

/// A message. One that is too old to be read has only an id and a chat.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are Telegram's")]
pub(super) struct Message {
    pub(super) message_id: i32,
    pub(super) chat: Chat,
    #[serde(default)]
    pub(super) date: i64,
    /// When it got its last version.
    pub(super) edit_date: Option<i64>,
    pub(super) message_thread_id: Option<i32>,
    pub(super) is_topic_message: Option<bool>,
    pub(super) from: Option<Box<User>>,
    pub(super) reply_to_message: Option<Box<Message>>,
    /// The part of the other message that a reply quotes.
    pub(super) quote: Option<TextQuote>,
    pub(super) forward_origin: Option<ForwardOrigin>,
    /// The album that the message is a part of.
    pub(super) media_group_id: Option<String>,
    pub(super) text: Option<String>,
    pub(super) entities: Option<Vec<MessageEntity>>,
    pub(super) caption: Option<String>,
    pub(super) caption_entities: Option<Vec<MessageEntity>>,
    pub(super) voice: Option<Recording>,
    pub(super) audio: Option<Recording>,
    pub(super) document: Option<Document>,
    pub(super) photo: Option<Vec<PhotoSize>>,
    pub(super) reply_markup: Option<Box<InlineKeyboardMarkup>>,
    pub(super) migrate_to_chat_id: Option<i64>,
    pub(super) migrate_from_chat_id: Option<i64>,
    pub(super) sticker: Option<IgnoredAny>,
    pub(super) video: Option<IgnoredAny>,
    pub(super) video_note: Option<IgnoredAny>,
    pub(super) live_photo: Option<IgnoredAny>,
    pub(super) paid_media: Option<IgnoredAny>,
    pub(super) story: Option<IgnoredAny>,
    pub(super) location: Option<IgnoredAny>,
    pub(super) contact: Option<IgnoredAny>,
    pub(super) poll: Option<IgnoredAny>,
    pub(super) checklist: Option<IgnoredAny>,
    pub(super) dice: Option<IgnoredAny>,
    pub(super) game: Option<IgnoredAny>,
    pub(super) rich_message: Option<IgnoredAny>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) type_field: ChatType,
    pub(super) title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct TextQuote {
    pub(super) text: String,
}

/// Who wrote a message that was forwarded: a user, a user who hides the account, a group or a channel.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ForwardOrigin {
    pub(super) sender_user: Option<User>,
    pub(super) sender_user_name: Option<String>,
    pub(super) sender_chat: Option<Chat>,
    pub(super) chat: Option<Chat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChatType {
    Private,
    #[serde(other)]
    Shared,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct User {
    pub(super) id: u64,
    pub(super) is_bot: bool,
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
    pub(super) username: Option<String>,
}

/// A part of a text with a meaning. Positions count units of UTF-16.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct MessageEntity {
    #[serde(rename = "type")]
    pub(super) type_field: MessageEntityType,
    pub(super) offset: u16,
    pub(super) length: u16,
    pub(super) user: Option<User>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageEntityType {
    Mention,
    TextMention,
    BotCommand,
    #[serde(other)]
    Format,
}

/// A voice message or a piece of music.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Recording {
    pub(super) file_id: String,
    /// The length in seconds.
    pub(super) duration: u32,
    pub(super) file_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Document {
    pub(super) file_id: String,
    pub(super) file_name: Option<String>,
}

/// A photo in one of the sizes that Telegram makes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct PhotoSize {
    pub(super) file_id: String,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// A button that was pressed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: User,
    pub(super) message: Option<Box<Message>>,
    pub(super) data: Option<String>,
}

/// The rows of buttons below a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InlineKeyboardMarkup {
    pub(super) inline_keyboard: Vec<Vec<InlineKeyboardButton>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InlineKeyboardButton {
    pub(super) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) callback_data: Option<String>,
}

/// A message that was sent.
#[derive(Debug, Deserialize)]
pub(super) struct SentMessage {
    pub(super) message_id: i32,
}

/// A file that can be downloaded, if it is not too large.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    pub(super) file_path: Option<String>,
}

/// The answer to a method.
#[derive(Debug, Deserialize)]
pub(super) struct MethodResponse<T> {
    pub(super) result: T,
}

/// The answer to a method that Telegram refused.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorResponse {
    pub(super) description: String,
    pub(super) parameters: Option<ResponseParameters>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ResponseParameters {
    /// How many seconds to wait.
    pub(super) retry_after: Option<u64>,
    /// The id that a group has now.
    pub(super) migrate_to_chat_id: Option<i64>,
}
