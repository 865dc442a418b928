//! Messages, tool calls and tool results, in the form that events and providers share.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::content::{ContentBlock, Image};
use crate::field::{IntoField, extra_setter, into_field, setters};
use crate::field_info::field_values;
use crate::id::ToolUseId;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// The author of a message.
    pub enum Role {
        /// The user, or a program that acts as the user.
        #[default] User = "user",
        /// The model.
        Assistant = "assistant",
        /// The host, which gives instructions.
        System = "system",
        /// A tool, which returns the result of a call.
        Tool = "tool",
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The text. Empty if the message consists only of tool calls.
    #[serde(default)]
    pub content: String,
    /// The reasoning that the model wrote, if the provider exposes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Images that came with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Content after the text and the images, in order. If a message has text between images or
    /// documents, the host puts the first text into `content` and the rest here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ContentBlock>,
    /// Tool calls that the model requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// In a tool message: the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolUseId>,
    /// In a tool message: whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Other values of the host's message, such as a `name` or a cache marker.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
}

/// The messages of a conversation, in order. They are shared, so a copy costs the same for any
/// length.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct Messages(Arc<Vec<Message>>);

impl Messages {
    /// Returns the messages as a vector. Copies them if they are shared.
    pub fn into_vec(self) -> Vec<Message> {
        Arc::unwrap_or_clone(self.0)
    }

    /// Appends a message. Copies the other messages if they are shared.
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

into_field! { Messages: Vec<Message>; }

field_values! {
    List: Messages;
    Other: Message, ToolResult, Usage;
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
    /// Creates a message that contains only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            ..Self::default()
        }
    }

    /// Creates a user message.
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(Role::User, content)
    }

    /// Creates a system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(Role::System, content)
    }

    /// Creates an assistant message.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(Role::Assistant, content)
    }

    /// Creates the answer to a tool call.
    pub fn tool(call: ToolUseId, content: impl Into<String>, is_error: bool) -> Self {
        Self {
            tool_call_id: Some(call),
            is_error,
            ..Self::text(Role::Tool, content)
        }
    }
}

setters! {
    Message {
        reasoning (with_reasoning): Option<String>,
        images (with_images): Vec<Image>,
        parts (with_parts): Vec<ContentBlock>,
        tool_calls (with_tool_calls): Vec<ToolCall>,
        tool_call_id (with_tool_call_id): Option<ToolUseId>,
        is_error (with_is_error): bool,
    }
}
extra_setter! { Message }

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: ToolUseId,
    /// The tool's name.
    pub name: String,
    /// The arguments. This is an object, unless the model wrote something else.
    pub arguments: Value,
    /// Other values of the host's call, such as the provider's signature. Hooks do not see them.
    /// Values for hooks belong in the `extra` of an event or of its origin.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
}

impl ToolCall {
    /// Creates a call to the tool `name`.
    pub fn new(id: impl IntoField<ToolUseId>, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into_field(),
            name: name.into(),
            arguments,
            extra: JsonObject::new(),
        }
    }
}

extra_setter! { ToolCall }

/// The description of a tool that is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that the model calls the tool by.
    pub name: String,
    /// The description of the tool for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub schema: Value,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolResult {
    /// The content that the model sees.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// Structured data for hooks and for the screen. The model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<JsonObject>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Whether the agent run ends after this tool call.
    #[serde(default)]
    pub terminate: bool,
}

impl ToolResult {
    /// Creates a successful result that contains one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::default()
        }
    }

    /// Creates a failed result that contains one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// Returns all text blocks, joined by newlines.
    pub fn joined_text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect();
        texts.join("\n")
    }
}

setters! {
    ToolResult {
        content (with_content): Vec<ContentBlock>,
        details (with_details): Option<JsonObject>,
        is_error (with_is_error): bool,
        terminate (with_terminate): bool,
    }
}

/// The token counts of one model call, as reported by the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Usage {
    /// The number of tokens sent.
    #[serde(default)]
    pub input_tokens: u64,
    /// The number of tokens received.
    #[serde(default)]
    pub output_tokens: u64,
    /// The number of sent tokens that the provider read from its cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// The number of sent tokens that the provider wrote to its cache.
    #[serde(default)]
    pub cached_write_tokens: u64,
    /// The number of received tokens that were reasoning, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Creates the counts of a call that sent `input_tokens` and received `output_tokens`.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }
}

setters! {
    Usage {
        cached_input_tokens (with_cached_input_tokens): u64,
        cached_write_tokens (with_cached_write_tokens): u64,
        reasoning_tokens (with_reasoning_tokens): Option<u64>,
    }
}
