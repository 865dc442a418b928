//! Messages in docker-agent's form: tool calls as functions with their arguments as text.

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook::ReadError;
use tenterhook_protocol::JsonObject;

/// Returns messages of the catalogue in docker-agent's form.
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
    if let Some(calls) = message.get("tool_calls").and_then(Value::as_array) {
        object.insert(
            "tool_calls".to_owned(),
            calls.iter().map(call_to_docker).collect(),
        );
    }
    if let Some(images) = message.get("images").and_then(Value::as_array) {
        let text = json!({ "type": "text", "text": message.get("content") });
        let parts = images.iter().map(image_to_docker);
        object.insert(
            "multi_content".to_owned(),
            [text].into_iter().chain(parts).collect(),
        );
    }
    Value::Object(object)
}

fn call_to_docker(call: &Value) -> Value {
    let arguments = call
        .get("arguments")
        .map(ToString::to_string)
        .unwrap_or_default();
    json!({
        "id": call.get("id"),
        "type": "function",
        "function": { "name": call.get("name"), "arguments": arguments },
    })
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
    multi_content: Option<Vec<PartWire>>,
}

#[derive(Deserialize)]
struct CallWire {
    id: String,
    function: FunctionWire,
}

#[derive(Deserialize)]
struct FunctionWire {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize)]
struct PartWire {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    image_url: Option<ImageUrlWire>,
}

#[derive(Deserialize)]
struct ImageUrlWire {
    url: String,
}

/// Returns messages of docker-agent, which stand below `key`, in the catalogue's form.
pub(super) fn from_docker(key: &str, messages: &Value) -> Result<Value, ReadError> {
    let wire: Vec<MessageWire> = Deserialize::deserialize(messages)
        .map_err(|error| ReadError::invalid(format!("`{key}`: {error}")))?;
    wire.into_iter().map(message_from_docker).collect()
}

fn message_from_docker(message: MessageWire) -> Result<Value, ReadError> {
    let parts = message.multi_content.unwrap_or_default();
    let text = || {
        parts
            .iter()
            .filter_map(|part| part.text.as_deref())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let content = message
        .content
        .filter(|content| !content.is_empty())
        .unwrap_or_else(text);
    let images: Vec<Value> = parts
        .iter()
        .filter_map(|part| part.image_url.as_ref())
        .map(image_from_docker)
        .collect::<Result<_, _>>()?;
    let tool_calls = message.tool_calls.unwrap_or_default();
    let calls = tool_calls.iter().map(call_from_docker);
    let mut object = json!({
        "role": message.role,
        "content": content,
        "images": images,
        "tool_calls": calls.collect::<Result<Vec<_>, _>>()?,
        "is_error": message.is_error.unwrap_or_default(),
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
    Ok(json!({ "id": call.id, "name": call.function.name, "arguments": arguments }))
}

fn image_from_docker(image: &ImageUrlWire) -> Result<Value, ReadError> {
    let parts = image
        .url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    let (media_type, data) = parts
        .ok_or_else(|| ReadError::invalid("`image_url` of a message is no base64 data URL"))?;
    Ok(json!({ "media_type": media_type, "data": data }))
}
