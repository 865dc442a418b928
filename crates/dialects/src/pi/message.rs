//! Messages: the catalogue's form and pi's.

use std::collections::HashMap;

use serde_json::{Value, json};
use tenterhook::{Message, ReadError, Role};
use tenterhook_protocol::{ContentBlock, Image, ToolCall};

use super::tool;

/// What marks the message of a host that pi has no role for.
const SYSTEM: &str = "tenterhook:system";

/// Writes the messages of a conversation. Their times are not known; they get that of the event.
pub(super) fn written_all(messages: &[Message], timestamp: i64) -> Vec<Value> {
    let mut names = HashMap::new();
    let write = |message: &Message| {
        for call in &message.tool_calls {
            names.insert(call.id.clone(), call.name.clone());
        }
        let name = message.tool_call_id.as_ref().and_then(|id| names.get(id));
        written(message, name.map(String::as_str), timestamp)
    };
    messages.iter().map(write).collect()
}

/// Writes one message; `tool` is the tool whose result it is.
pub(super) fn written(message: &Message, tool: Option<&str>, timestamp: i64) -> Value {
    match message.role {
        Role::User => {
            json!({ "role": "user", "content": content(message), "timestamp": timestamp })
        }
        Role::Assistant => json!({
            "role": "assistant", "content": assistant_content(message),
            "stopReason": if message.tool_calls.is_empty() { "stop" } else { "toolUse" },
            "timestamp": timestamp,
        }),
        Role::Tool => json!({
            "role": "toolResult", "toolCallId": message.tool_call_id,
            "toolName": tool.map(tool::name).unwrap_or_default(),
            "content": content(message), "isError": message.is_error, "timestamp": timestamp,
        }),
        // A role that pi has no word for is the host's.
        Role::System | _ => host_message(message, timestamp),
    }
}

fn host_message(message: &Message, timestamp: i64) -> Value {
    json!({
        "role": "custom", "customType": SYSTEM, "content": message.content, "display": false,
        "timestamp": timestamp,
    })
}

fn content(message: &Message) -> Vec<Value> {
    let text = json!({ "type": "text", "text": message.content });
    let text = (!message.content.is_empty() || message.images.is_empty()).then_some(text);
    text.into_iter()
        .chain(message.images.iter().map(written_image))
        .collect()
}

fn assistant_content(message: &Message) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(reasoning) = &message.reasoning {
        blocks.push(json!({ "type": "thinking", "thinking": reasoning }));
    }
    if !message.content.is_empty() {
        blocks.push(json!({ "type": "text", "text": message.content }));
    }
    blocks.extend(message.tool_calls.iter().map(|call| {
        let (name, arguments) = tool::written(&call.name, &call.arguments);
        json!({ "type": "toolCall", "id": call.id, "name": name, "arguments": arguments })
    }));
    blocks
}

/// Writes an image.
pub(super) fn written_image(image: &Image) -> Value {
    json!({ "type": "image", "data": image.data, "mimeType": image.media_type })
}

/// Writes a piece of a tool result.
pub(super) fn written_block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({ "type": "text", "text": text }),
        ContentBlock::Image { image } => written_image(image),
        // A kind that pi does not know is shown as it is.
        other => json!(other),
    }
}

/// Reads messages that a handler returned.
pub(super) fn read_all(messages: &Value) -> Result<Vec<Message>, ReadError> {
    let messages = messages
        .as_array()
        .ok_or_else(|| ReadError::invalid("`messages` is no list"))?;
    messages.iter().map(read).collect()
}

/// Reads one message. What only pi's agent has, a command that the user ran or a summary, is a message of the user.
pub(super) fn read(message: &Value) -> Result<Message, ReadError> {
    let get = |key: &str| message.get(key);
    let text = |key: &str| get(key).and_then(Value::as_str).unwrap_or_default();
    let blocks = |role| read_content(role, get("content").unwrap_or(&Value::Null));
    match text("role") {
        "assistant" => blocks(Role::Assistant),
        "custom" if text("customType") == SYSTEM => blocks(Role::System),
        "user" | "custom" => blocks(Role::User),
        "toolResult" => Ok(Message {
            tool_call_id: Some(text("toolCallId").into()),
            is_error: get("isError") == Some(&Value::Bool(true)),
            ..blocks(Role::Tool)?
        }),
        "bashExecution" => Ok(Message::user(format!(
            "Ran `{}`\n{}",
            text("command"),
            text("output")
        ))),
        "branchSummary" | "compactionSummary" => Ok(Message::user(text("summary"))),
        other => Err(ReadError::invalid(format!(
            "a message has the `role` `{}`, expected `user`, `assistant`, `toolResult` or `custom`",
            other.escape_debug()
        ))),
    }
}

/// Reads the content of a message: a text, or blocks.
pub(super) fn read_content(role: Role, content: &Value) -> Result<Message, ReadError> {
    let mut message = Message::text(role, "");
    let blocks = match content {
        Value::String(text) => {
            text.clone_into(&mut message.content);
            return Ok(message);
        }
        Value::Array(blocks) => blocks,
        Value::Null => return Ok(message),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(ReadError::invalid(format!(
                "the `content` of a message is {content}, expected text or a list"
            )));
        }
    };
    let mut texts = Vec::new();
    for block in blocks {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => texts.push(block_text(block)?),
            "thinking" => message.reasoning = Some(text("thinking").to_owned()),
            "image" => message.images.push(read_image(block)?),
            "toolCall" => {
                let (name, arguments) = match block.get("arguments") {
                    Some(Value::Object(arguments)) => {
                        let (name, arguments) = tool::read(text("name"), arguments.clone());
                        (name, arguments.into())
                    }
                    other => (
                        tool::own_name(text("name")).to_owned(),
                        other.cloned().unwrap_or_default(),
                    ),
                };
                message.tool_calls.push(ToolCall {
                    id: text("id").into(),
                    name,
                    arguments,
                });
            }
            other => return Err(unknown_block(other)),
        }
    }
    message.content = texts.join("\n");
    Ok(message)
}

/// Returns the text of a block of text. A block without one is a mistake of the handler, not an empty text.
fn block_text(block: &Value) -> Result<&str, ReadError> {
    let text = block.get("text").and_then(Value::as_str);
    text.ok_or_else(|| ReadError::invalid("a block of the `type` `text` has no `text`"))
}

fn unknown_block(kind: &str) -> ReadError {
    ReadError::invalid(format!(
        "a block of `content` has the `type` `{}`, expected `text` or `image`",
        kind.escape_debug()
    ))
}

/// Reads an image.
pub(super) fn read_image(image: &Value) -> Result<Image, ReadError> {
    let text = |key: &str| {
        let text = image.get(key).and_then(Value::as_str);
        text.ok_or_else(|| ReadError::invalid(format!("an image has no `{key}`")))
    };
    Ok(Image {
        media_type: text("mimeType")?.to_owned(),
        data: text("data")?.to_owned(),
    })
}

/// Reads the blocks of a tool result.
pub(super) fn read_blocks(blocks: &Value) -> Result<Vec<ContentBlock>, ReadError> {
    let blocks = blocks
        .as_array()
        .ok_or_else(|| ReadError::invalid("`content` is no list"))?;
    let read = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("text") => block_text(block).map(ContentBlock::text),
        Some("image") => Ok(ContentBlock::Image {
            image: read_image(block)?,
        }),
        other => Err(unknown_block(other.unwrap_or_default())),
    };
    blocks.iter().map(read).collect()
}

/// Returns details of a tool result as the catalogue has them: an object.
pub(super) fn details(details: &Value) -> Value {
    if details.is_null() || details.is_object() {
        return details.clone();
    }
    json!({ "value": details })
}
