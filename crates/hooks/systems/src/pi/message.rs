//! Converts messages between the catalogue's form and pi's form.

use std::collections::HashMap;

use serde::Deserialize as _;
use serde_json::{Value, json};
use tenterhook_engine::{Message, ReadError, Role};
use tenterhook_protocol::{ContentBlock, Image, ToolCall, Usage, message_extra};

use super::tool;

/// Marks a message of the host whose role does not exist in pi. The worker keeps the ones before the conversation, such
/// as the system prompt, from handlers of `context`.
const SYSTEM: &str = "tenterhook:system";

/// The key for the text before a summary. pi has no such key, because its introductions are always the same.
const INTRODUCTION: &str = "introduction";

/// Writes the messages of a conversation. Their times are unknown, so they all get `timestamp`, the time
/// of the event.
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

/// Writes one message. If it is the result of a tool call, `tool` is the name of the tool, unless the message has it.
pub(super) fn written(message: &Message, tool: Option<&str>, timestamp: i64) -> Value {
    let extra = |key: &str| message.extra.get(key);
    match message.role {
        Role::User => user_message(message, timestamp),
        Role::Assistant => assistant_message(message, timestamp),
        Role::Tool => {
            let stored = extra(message_extra::TOOL_NAME).and_then(Value::as_str);
            let mut written = json!({
                "role": "toolResult", "toolCallId": message.tool_call_id,
                "toolName": stored.or(tool).map(tool::name).unwrap_or_default(),
                "content": content(message), "isError": message.is_error, "timestamp": timestamp,
            });
            set(&mut written, "details", extra(message_extra::DETAILS));
            written
        }
        // pi has no such role, so the message counts as a message of the host.
        Role::System | _ => host_message(message, timestamp),
    }
}

/// Writes a message with the role of the user. The user may not have typed it.
fn user_message(message: &Message, timestamp: i64) -> Value {
    let extra = |key: &str| message.extra.get(key);
    let text = |key: &str| extra(key).and_then(Value::as_str);
    match text(message_extra::KIND) {
        Some(message_extra::EXTENSION) => {
            let mut written = json!({
                "role": "custom", "customType": text(message_extra::CUSTOM_TYPE).unwrap_or_default(),
                "content": custom_content(message),
                "display": extra(message_extra::DISPLAY) == Some(&Value::Bool(true)),
                "timestamp": timestamp,
            });
            set(&mut written, "details", extra(message_extra::DETAILS));
            written
        }
        Some(kind) => summary(message, kind, timestamp)
            .or_else(|| bash_execution(message, kind, timestamp))
            .unwrap_or_else(|| plain_user_message(message, timestamp)),
        None => plain_user_message(message, timestamp),
    }
}

fn plain_user_message(message: &Message, timestamp: i64) -> Value {
    json!({ "role": "user", "content": content(message), "timestamp": timestamp })
}

/// Writes the content of an extension's message: a string if it is only text, otherwise blocks.
fn custom_content(message: &Message) -> Value {
    if message.images.is_empty() && message.parts.is_empty() {
        return message.content.as_str().into();
    }
    content(message).into()
}

/// Writes a summary. The text before it in the message goes with it, so that a handler can return the message.
fn summary(message: &Message, kind: &str, timestamp: i64) -> Option<Value> {
    let (role, key, about) = match kind {
        message_extra::COMPACTION_SUMMARY => (
            "compactionSummary",
            "tokensBefore",
            message_extra::TOKENS_BEFORE,
        ),
        message_extra::BRANCH_SUMMARY => ("branchSummary", "fromId", message_extra::FROM_ENTRY),
        _ => return None,
    };
    let summary = message.extra.get(message_extra::SUMMARY)?.as_str()?;
    let mut written = json!({ "role": role, "summary": summary, "timestamp": timestamp });
    set(&mut written, key, message.extra.get(about));
    if let Some(introduction) = message.content.strip_suffix(summary) {
        set(&mut written, INTRODUCTION, Some(&introduction.into()));
    }
    Some(written)
}

/// Writes a command that the user ran.
fn bash_execution(message: &Message, kind: &str, timestamp: i64) -> Option<Value> {
    let extra = |key: &str| message.extra.get(key);
    if kind != message_extra::USER_BASH {
        return None;
    }
    let mut written = json!({
        "role": "bashExecution", "timestamp": timestamp,
        "command": extra(message_extra::COMMAND)?, "output": extra(message_extra::OUTPUT)?,
        "cancelled": extra(message_extra::CANCELLED), "truncated": extra(message_extra::TRUNCATED),
    });
    set(&mut written, "exitCode", extra(message_extra::EXIT_CODE));
    Some(written)
}

fn assistant_message(message: &Message, timestamp: i64) -> Value {
    let model = message.extra.get(message_extra::MODEL);
    let model = model.and_then(Value::as_str).unwrap_or_default();
    let (provider, id) = model.split_once('/').unwrap_or(("", model));
    json!({
        "role": "assistant", "content": assistant_content(message),
        "api": api_of(provider), "provider": provider, "model": id,
        "usage": usage(message),
        "stopReason": if message.tool_calls.is_empty() { "stop" } else { "toolUse" },
        "timestamp": timestamp,
    })
}

/// Returns pi's name for the protocol of a service.
fn api_of(provider: &str) -> &'static str {
    match provider {
        "anthropic" => "anthropic-messages",
        "gemini" => "google-generative-ai",
        _ => "openai-completions",
    }
}

/// Writes the token counts and the price of an answer. What the service did not report is 0.
fn usage(message: &Message) -> Value {
    let usage = message.extra.get(message_extra::USAGE);
    let usage = usage.and_then(|usage| Usage::deserialize(usage).ok());
    let usage = usage.unwrap_or_default();
    let (read, written) = (usage.cached_input_tokens, usage.cached_write_tokens);
    let new = usage
        .input_tokens
        .saturating_sub(read)
        .saturating_sub(written);
    let cost = message
        .extra
        .get(message_extra::COST)
        .and_then(Value::as_f64);
    json!({
        "input": new, "output": usage.output_tokens, "cacheRead": read, "cacheWrite": written,
        "totalTokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "cost": {
            "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost.unwrap_or_default(),
        },
    })
}

/// Sets a key of an object, unless there is no value or it is null.
fn set(written: &mut Value, key: &str, value: Option<&Value>) {
    if let (Some(object), Some(value)) = (
        written.as_object_mut(),
        value.filter(|value| !value.is_null()),
    ) {
        object.insert(key.to_owned(), value.clone());
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
        .chain(message.parts.iter().map(written_block))
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
    blocks.extend(message.parts.iter().map(written_block));
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

/// Writes a block of a tool result.
pub(super) fn written_block(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({ "type": "text", "text": text }),
        ContentBlock::Image { image } => written_image(image),
        // pi does not know the kind of block, so show it unchanged.
        ContentBlock::Other(_) | _ => json!(block),
    }
}

/// Reads messages that a handler returned.
pub(super) fn read_all(messages: &Value) -> Result<Vec<Message>, ReadError> {
    let messages = messages
        .as_array()
        .ok_or_else(|| ReadError::invalid("`messages` is not a list"))?;
    messages.iter().map(read).collect()
}

/// Reads one message.
pub(super) fn read(message: &Value) -> Result<Message, ReadError> {
    let get = |key: &str| message.get(key).filter(|value| !value.is_null());
    let text = |key: &str| get(key).and_then(Value::as_str).unwrap_or_default();
    let blocks = |role| read_content(role, get("content").unwrap_or(&Value::Null));
    match text("role") {
        "assistant" => Ok(with_extra(blocks(Role::Assistant)?, read_answer(message))),
        "custom" if text("customType") == SYSTEM => blocks(Role::System),
        "user" => blocks(Role::User),
        "custom" => read_custom(message),
        "toolResult" => {
            // The name of the tool follows from the call, so it is not read.
            let extra = [(message_extra::DETAILS, get("details").cloned())];
            let read = blocks(Role::Tool)?
                .with_tool_call_id(text("toolCallId"))
                .with_is_error(get("isError") == Some(&Value::Bool(true)));
            Ok(with_extra(read, extra))
        }
        "bashExecution" => Ok(read_bash_execution(message)),
        role @ ("branchSummary" | "compactionSummary") => {
            let content = format!("{}{}", text(INTRODUCTION), text("summary"));
            let kind = if role == "branchSummary" {
                message_extra::BRANCH_SUMMARY
            } else {
                message_extra::COMPACTION_SUMMARY
            };
            let extra = [
                (message_extra::KIND, Some(kind.into())),
                (message_extra::SUMMARY, get("summary").cloned()),
                (message_extra::TOKENS_BEFORE, get("tokensBefore").cloned()),
                (message_extra::FROM_ENTRY, get("fromId").cloned()),
            ];
            Ok(with_extra(Message::user(content), extra))
        }
        other => Err(ReadError::invalid(format!(
            "a message has the `role` `{}`, expected `user`, `assistant`, `toolResult` or `custom`",
            other.escape_debug()
        ))),
    }
}

/// Reads a message of an extension. It may have no `role`, because a handler of `before_agent_start` leaves it out.
pub(super) fn read_custom(message: &Value) -> Result<Message, ReadError> {
    let get = |key: &str| message.get(key).filter(|value| !value.is_null());
    let content = read_content(Role::User, get("content").unwrap_or(&Value::Null))?;
    let extra = [
        (message_extra::KIND, Some(message_extra::EXTENSION.into())),
        (message_extra::CUSTOM_TYPE, get("customType").cloned()),
        (message_extra::DISPLAY, get("display").cloned()),
        (message_extra::DETAILS, get("details").cloned()),
    ];
    Ok(with_extra(content, extra))
}

/// Reads a command that the user ran. The text for the model is made from the fields, because a handler may have
/// changed them.
fn read_bash_execution(message: &Value) -> Message {
    let get = |key: &str| message.get(key).filter(|value| !value.is_null());
    let text = |key: &str| get(key).and_then(Value::as_str).unwrap_or_default();
    let status = get("exitCode").filter(|status| **status != 0);
    let end = if get("cancelled") == Some(&Value::Bool(true)) {
        "\nIt was cancelled.".to_owned()
    } else {
        status
            .map(|status| format!("\nIts exit status was {status}."))
            .unwrap_or_default()
    };
    let content = format!("Ran `{}`\n{}{end}", text("command"), text("output"));
    let extra = [
        (message_extra::KIND, Some(message_extra::USER_BASH.into())),
        (message_extra::COMMAND, get("command").cloned()),
        (message_extra::OUTPUT, get("output").cloned()),
        (message_extra::EXIT_CODE, get("exitCode").cloned()),
        (message_extra::CANCELLED, get("cancelled").cloned()),
        (message_extra::TRUNCATED, get("truncated").cloned()),
    ];
    with_extra(Message::user(content), extra)
}

/// Reads the model and the token counts of an answer, if it has any.
fn read_answer(message: &Value) -> [(&'static str, Option<Value>); 3] {
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    let count = |key: &str| message.get("usage")?.get(key)?.as_u64();
    let model = match (text("provider"), text("model")) {
        (_, "") => None,
        ("", id) => Some(id.to_owned()),
        (provider, id) => Some(format!("{provider}/{id}")),
    };
    let total = count("totalTokens").filter(|total| *total > 0);
    let usage = total.map(|total| {
        let output = count("output").unwrap_or_default();
        Usage::new(total.saturating_sub(output), output)
            .with_cached_input_tokens(count("cacheRead").unwrap_or_default())
            .with_cached_write_tokens(count("cacheWrite").unwrap_or_default())
    });
    let cost = message.pointer("/usage/cost/total").and_then(Value::as_f64);
    [
        (message_extra::MODEL, model.map(Value::from)),
        (message_extra::USAGE, usage.map(|usage| json!(usage))),
        (
            message_extra::COST,
            cost.filter(|cost| *cost > 0.0).map(Value::from),
        ),
    ]
}

fn with_extra(
    mut message: Message,
    extra: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> Message {
    for (key, value) in extra {
        message
            .extra
            .extend(value.map(|value| (key.to_owned(), value)));
    }
    message
}

/// Reads the content of a message, which is a string or a list of blocks.
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
                "the `content` of a message is {content}, expected a string or a list"
            )));
        }
    };
    let mut texts = Vec::new();
    for block in blocks {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => texts.push(block_text(block)?),
            "thinking" => message.reasoning = Some(text("thinking").to_owned()),
            "image" if is_own_image(block) => message.images.push(read_image(block)?),
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
                message
                    .tool_calls
                    .push(ToolCall::new(text("id"), name, arguments));
            }
            _ => message.parts.push(opaque_block(block)?),
        }
    }
    message.content = texts.join("\n");
    Ok(message)
}

/// Returns the text of a text block. A missing text is an error of the handler, and does not count as empty.
fn block_text(block: &Value) -> Result<&str, ReadError> {
    let text = block.get("text").and_then(Value::as_str);
    text.ok_or_else(|| ReadError::invalid("a block of the `type` `text` has no `text`"))
}

/// Returns whether an image block is in pi's form. Image blocks of other services have neither key.
fn is_own_image(block: &Value) -> bool {
    block.get("mimeType").is_some() || block.get("data").is_some()
}

/// Reads a block of a kind that pi does not know. Handlers get such blocks and return them unchanged.
fn opaque_block(block: &Value) -> Result<ContentBlock, ReadError> {
    if block.get("type").and_then(Value::as_str).is_none() {
        return Err(ReadError::invalid(
            "a block of `content` has no `type`, expected `text`, `image` or another string",
        ));
    }
    ContentBlock::deserialize(block)
        .map_err(|error| ReadError::invalid(format!("a block of `content`: {error}")))
}

/// Reads an image.
pub(super) fn read_image(image: &Value) -> Result<Image, ReadError> {
    let text = |key: &str| {
        let text = image.get(key).and_then(Value::as_str);
        text.ok_or_else(|| ReadError::invalid(format!("an image has no `{key}`")))
    };
    Ok(Image::new(
        text("mimeType")?.to_owned(),
        text("data")?.to_owned(),
    ))
}

/// Reads the blocks of a tool result.
pub(super) fn read_blocks(blocks: &Value) -> Result<Vec<ContentBlock>, ReadError> {
    let blocks = blocks
        .as_array()
        .ok_or_else(|| ReadError::invalid("`content` is not a list"))?;
    let read = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("text") => block_text(block).map(ContentBlock::text),
        Some("image") if is_own_image(block) => Ok(ContentBlock::Image {
            image: read_image(block)?,
        }),
        _ => opaque_block(block),
    };
    blocks.iter().map(read).collect()
}

/// Returns the details of a tool result as an object, which the catalogue requires.
pub(super) fn details(details: &Value) -> Value {
    if details.is_null() || details.is_object() {
        return details.clone();
    }
    json!({ "value": details })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_an_unknown_kind_is_handed_back_as_it_was_beside_what_a_handler_redacted() {
        let document = json!({ "type": "document", "source": { "data": "JVBERi0=" } });
        let image = json!({ "type": "image", "source": { "url": "file.png" } });
        let blocks = json!([{ "type": "text", "text": "[redacted]" }, document, image]);
        let read = read_blocks(&blocks).unwrap();
        let written: Vec<Value> = read.iter().map(written_block).collect();
        assert_eq!(json!(written), blocks);
        let message = read_content(Role::User, &blocks).unwrap();
        assert_eq!(message.content, "[redacted]");
        assert_eq!(json!(message.parts), json!([document, image]));
    }
}
