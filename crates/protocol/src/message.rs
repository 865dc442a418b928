//! Messages, tool calls and tool results as every event and provider of the engine shows them.

use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::id::ToolUseId;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Who speaks in a message.
    pub enum Role {
        /// The human, or a program in the human's place.
        #[default] User = "user",
        /// The model.
        Assistant = "assistant",
        /// Instructions of the host.
        System = "system",
        /// The result of a tool call.
        Tool = "tool",
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text. Empty where the message is only tool calls.
    #[serde(default)]
    pub content: String,
    /// What the model wrote as its reasoning, if the provider shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Images beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Tool calls that the model asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// On a tool message: the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolUseId>,
    /// On a tool message: the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The messages of a conversation, in order and shared: a copy costs the same however long they are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Messages(Arc<Vec<Message>>);

impl Messages {
    /// Returns the messages for a change; they are copied if somebody else has them too.
    pub fn into_vec(self) -> Vec<Message> {
        Arc::unwrap_or_clone(self.0)
    }

    /// Appends a message; the others are copied if somebody else has them too.
    pub fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.0).push(message);
    }
}

impl Deref for Messages {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.0
    }
}

impl From<Vec<Message>> for Messages {
    fn from(messages: Vec<Message>) -> Self {
        Self(Arc::new(messages))
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Vec::from_iter(messages).into()
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Message {
    /// Makes a message of `role` with text only.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            ..Self::default()
        }
    }

    /// Makes a user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(Role::User, content)
    }

    /// Makes a system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(Role::System, content)
    }

    /// Makes an assistant message.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(Role::Assistant, content)
    }

    /// Makes the answer to a tool call.
    pub fn tool(call: ToolUseId, content: impl Into<String>, is_error: bool) -> Self {
        Self {
            tool_call_id: Some(call),
            is_error,
            ..Self::text(Role::Tool, content)
        }
    }
}

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes in base 64.
    pub data: String,
}

/// A tool call that a model asks for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: ToolUseId,
    /// The tool's name.
    pub name: String,
    /// The arguments. An object, unless the model wrote something else.
    pub arguments: Value,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// What the model sees.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// Structured facts for hooks and for the screen; the model does not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<JsonObject>,
    /// The tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// The agent run ends after this tool call.
    #[serde(default)]
    pub terminate: bool,
}

impl ToolResult {
    /// Makes a successful result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }

    /// Makes a failed result of one text.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Returns the text blocks joined by line ends.
    pub fn joined_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect();
        texts.join("\n")
    }
}

/// One piece of a tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image.
    Image {
        /// The image itself.
        image: Image,
    },
}

impl ContentBlock {
    /// Makes a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } => None,
        }
    }
}

/// Tokens of one model call, as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens sent.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens received.
    #[serde(default)]
    pub output_tokens: u64,
    /// Sent tokens that the provider had cached.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Sent tokens that the provider wrote to its cache.
    #[serde(default)]
    pub cached_write_tokens: u64,
    /// Received tokens that were reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}
