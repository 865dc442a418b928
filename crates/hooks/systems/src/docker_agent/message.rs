//! Converts messages to and from docker-agent's form, in which tool calls are functions with their
//! arguments as text.

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::ReadError;
use tenterhook_protocol::JsonObject;

/// Converts messages of the catalogue to docker-agent's form.
pub(super) fn to_docker(messages: &[Value]) -> Value {
    messages.iter().map(message_to_docker).collect()
}

fn message_to_docker(message: &Value) -> Value {
    let mut object = JsonObject::new();
    let mut copy = |from: &str, to: &str| {
        if let Some(value) = message.get(from) {
            object.insert(to.to_owned(), value.clone());
        }
    };
    copy("role", "role");
    copy("content", "content");
    copy("reasoning", "reasoning_content");
    copy("tool_call_id", "tool_call_id");
    copy("is_error", "is_error");
    copy("extra", "extra");
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_array) {
        object.insert(
            "tool_calls".to_owned(),
            calls.iter().map(call_to_docker).collect(),
        );
    }
    let list = |key: &str| message.get(key).and_then(Value::as_array);
    let (images, parts) = (list("images"), list("parts"));
    if images.is_some() || parts.is_some() {
        let text = json!({ "type": "text", "text": message.get("content") });
        let images = images.into_iter().flatten().map(image_to_docker);
        let parts = parts.into_iter().flatten().map(part_to_docker);
        object.insert(
            "multi_content".to_owned(),
            [text].into_iter().chain(images).chain(parts).collect(),
        );
    }
    Value::Object(object)
}

/// Converts a part of a message. Parts that are not images stay unchanged.
fn part_to_docker(part: &Value) -> Value {
    // Convert the part only if it has no other keys. A hook must see everything that the model sees.
    let is_image = part.get("type").and_then(Value::as_str) == Some("image")
        && part.as_object().is_some_and(|part| part.len() == 2);
    let image = part.get("image").filter(|_| is_image);
    image.map_or_else(|| part.clone(), image_to_docker)
}

fn call_to_docker(call: &Value) -> Value {
    let arguments = call
        .get("arguments")
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut written = json!({
        "id": call.get("id"),
        "type": "function",
        "function": { "name": call.get("name"), "arguments": arguments },
    });
    if let (Value::Object(written), Some(extra)) = (&mut written, call.get("extra")) {
        written.insert("extra".to_owned(), extra.clone());
    }
    written
}

fn image_to_docker(image: &Value) -> Value {
    let text = |key: &str| image.get(key).and_then(Value::as_str).unwrap_or_default();
    let url = format!("data:{};base64,{}", text("media_type"), text("data"));
    json!({ "type": "image_url", "image_url": { "url": url } })
}

#[derive(Deserialize)]
struct MessageWire {
    role: String,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallWire>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    multi_content: Option<Vec<Value>>,
    #[serde(default)]
    extra: JsonObject,
}

#[derive(Deserialize)]
struct CallWire {
    id: String,
    function: FunctionWire,
    #[serde(default)]
    extra: JsonObject,
}

#[derive(Deserialize)]
struct FunctionWire {
    name: String,
    #[serde(default)]
    arguments: String,
}

/// Converts messages of docker-agent to the catalogue's form. `key` names them in errors.
pub(super) fn from_docker(key: &str, messages: &Value) -> Result<Value, ReadError> {
    let wire: Vec<MessageWire> = Deserialize::deserialize(messages)
        .map_err(|error| ReadError::invalid(format!("`{key}`: {error}")))?;
    wire.into_iter().map(message_from_docker).collect()
}

fn message_from_docker(message: MessageWire) -> Result<Value, ReadError> {
    let content = message.content.filter(|content| !content.is_empty());
    let multi_content = message.multi_content.unwrap_or_default();
    let Parts {
        texts,
        images,
        others,
    } = Parts::read(&multi_content, content.as_deref())?;
    let content = content.unwrap_or_else(|| texts.join("\n"));
    let tool_calls = message.tool_calls.unwrap_or_default();
    let calls = tool_calls.iter().map(call_from_docker);
    let mut object = json!({
        "role": message.role,
        "content": content,
        "images": images,
        "tool_calls": calls.collect::<Result<Vec<_>, _>>()?,
        "is_error": message.is_error.unwrap_or_default(),
        "parts": others,
        "extra": message.extra,
    });
    if let Value::Object(object) = &mut object {
        object.extend(
            message
                .reasoning_content
                .map(|text| ("reasoning".to_owned(), text.into())),
        );
        object.extend(
            message
                .tool_call_id
                .map(|id| ("tool_call_id".to_owned(), id.into())),
        );
    }
    Ok(object)
}

fn call_from_docker(call: &CallWire) -> Result<Value, ReadError> {
    let arguments: Value = match call.function.arguments.as_str() {
        "" => Value::Object(JsonObject::new()),
        text => serde_json::from_str(text).map_err(|error| {
            ReadError::invalid(format!("arguments of tool call `{}`: {error}", call.id))
        })?,
    };
    Ok(json!({
        "id": call.id, "name": call.function.name, "arguments": arguments, "extra": call.extra,
    }))
}

/// The parts of a message that has several.
#[derive(Default)]
struct Parts<'a> {
    /// The texts, if the message has no `content` in addition to its parts.
    texts: Vec<&'a str>,
    /// The images that come before any other part.
    images: Vec<Value>,
    /// All following parts, in order.
    others: Vec<Value>,
}

impl<'a> Parts<'a> {
    /// Reads parts. `content` is the text of the message, and the first plain text part repeats it. This
    /// part is always ignored, so that a hook can change the text by changing only `content`.
    fn read(parts: &'a [Value], content: Option<&str>) -> Result<Self, ReadError> {
        let mut read = Self::default();
        let mut is_content_read = false;
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str);
            let text = part.get("text").and_then(Value::as_str);
            let is_plain = part.as_object().is_some_and(|part| part.len() <= 2);
            match (kind, text) {
                (Some("image_url"), _) => {
                    let image = image_from_docker(part.get("image_url"))?;
                    if read.others.is_empty() {
                        read.images.push(image);
                    } else {
                        read.others.push(json!({ "type": "image", "image": image }));
                    }
                }
                (None | Some("text"), Some(text)) if is_plain && content.is_none() => {
                    read.texts.push(text);
                }
                (None | Some("text"), Some(_)) if is_plain && !is_content_read => {
                    is_content_read = true;
                }
                (None, Some(text)) => read.others.push(json!({ "type": "text", "text": text })),
                (Some(_), _) => read.others.push(part.clone()),
                (None, None) => {
                    return Err(ReadError::invalid(
                        "a part of `multi_content` has no `type`, expected `text`, `image_url` or another string",
                    ));
                }
            }
        }
        Ok(read)
    }
}

fn image_from_docker(image: Option<&Value>) -> Result<Value, ReadError> {
    let parts = image
        .and_then(|image| image.get("url")?.as_str())
        .and_then(|url| url.strip_prefix("data:"))
        .and_then(|rest| rest.split_once(";base64,"));
    let (media_type, data) = parts
        .ok_or_else(|| ReadError::invalid("`image_url` of a message is not a base64 data URL"))?;
    Ok(json!({ "media_type": media_type, "data": data }))
}

#[cfg(test)]
mod tests {
    use tenterhook_protocol::{ContentBlock, Image, Message, ToolCall};

    use super::*;

    #[test]
    fn a_text_that_a_hook_took_out_of_the_content_does_not_come_back_as_a_part() {
        let message =
            Message::user("token hunter2").with_images(vec![Image::new("image/png", "AA")]);
        let mut written = to_docker(&[json!(message)]);
        written[0]["content"] = json!("token [redacted]");
        let read = from_docker("messages", &written).unwrap();
        assert_eq!(read[0]["content"], "token [redacted]");
        assert!(!read.to_string().contains("hunter2"), "{read}");
    }

    #[test]
    fn a_part_with_more_than_an_image_is_shown_whole() {
        let part = json!({ "type": "image", "image": { "data": "AA" }, "text": "hunter2" });
        assert_eq!(part_to_docker(&part), part);
    }

    #[test]
    fn a_message_with_parts_that_docker_agent_does_not_know_is_read_back_as_it_was() {
        let part = |value: Value| serde_json::from_value::<ContentBlock>(value).unwrap();
        let message = Message::user("first")
            .with_images(vec![Image::new("image/png", "iVBO")])
            .with_parts(vec![
                part(json!({ "type": "text", "text": "b", "cache_control": { "type": "ephemeral" } })),
                part(json!({ "type": "image", "image": { "media_type": "image/png", "data": "AA" } })),
                part(json!({ "type": "document", "source": { "data": "JVBERi0=" } })),
                ContentBlock::text("last"),
            ])
            .with_tool_calls(vec![
                ToolCall::new("c1", "shell", json!({ "cmd": "ls" })).with_extra("signature", "s"),
            ])
            .with_extra("name", "ada");
        let written = to_docker(&[serde_json::to_value(&message).unwrap()]);
        let read = from_docker("messages", &written).unwrap();
        let read: Vec<Message> = serde_json::from_value(read).unwrap();
        assert_eq!(read, [message]);
        let nothing = json!([{ "role": "user", "multi_content": [{ "data": "x" }] }]);
        let error = from_docker("messages", &nothing).unwrap_err();
        assert!(error.to_string().contains("has no `type`"), "{error}");
    }
}
