//! Converts parts of messages between the catalogue's form and Operator's form.

use serde_json::{Value, json};
use tenterhook_engine::ReadError;
use tenterhook_protocol::JsonObject;

/// Converts a part of the catalogue to Operator's form.
pub(super) fn written(part: &Value) -> Value {
    let of = |key: &str| part.get(key).cloned().unwrap_or_default();
    let data = of("data");
    let mut written = match part.get("kind").and_then(Value::as_str) {
        Some("text") => json!({ "type": "text", "content": of("text") }),
        Some("audio") => json!({ "type": "audio", "audio": data, "mime_type": of("media_type") }),
        Some("image") => {
            let images: Vec<&Value> = Some(&data)
                .filter(|data| !data.is_null())
                .into_iter()
                .collect();
            json!({ "type": "image", "images": images, "mime_type": of("media_type") })
        }
        kind => {
            json!({ "type": kind.unwrap_or("file"), "path": data, "mime_type": of("media_type") })
        }
    };
    if let (Some(written), Some(metadata)) = (written.as_object_mut(), part.get("metadata")) {
        written.insert("metadata".to_owned(), metadata.clone());
    }
    written
}

/// Reads a list of Operator's parts. An image part with several pictures becomes several parts.
pub(super) fn read(parts: &Value) -> Result<Vec<Value>, ReadError> {
    let parts = parts
        .as_array()
        .ok_or_else(|| ReadError::invalid("`parts` is not a list"))?;
    let mut read = Vec::new();
    for part in parts {
        let part = part
            .as_object()
            .ok_or_else(|| ReadError::invalid("an item of `parts` is not an object"))?;
        read.extend(one(part)?);
    }
    Ok(read)
}

fn one(part: &JsonObject) -> Result<Vec<Value>, ReadError> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let kind = text("type").ok_or_else(|| ReadError::invalid("a part has no `type`"))?;
    let medium = |data: Option<&str>| {
        let mut made = JsonObject::new();
        made.insert("kind".to_owned(), kind.into());
        for (key, value) in [("media_type", text("mime_type")), ("data", data)] {
            made.extend(value.map(|value| (key.to_owned(), value.into())));
        }
        if let Some(metadata) = part.get("metadata").filter(|value| value.is_object()) {
            made.insert("metadata".to_owned(), metadata.clone());
        }
        Value::Object(made)
    };
    Ok(match kind {
        "text" => {
            let content = text("content").ok_or_else(|| {
                ReadError::invalid("the `content` of a text part is not a string")
            })?;
            let mut made = medium(None);
            if let Some(made) = made.as_object_mut() {
                made.insert("text".to_owned(), content.into());
            }
            vec![made]
        }
        "audio" => vec![medium(text("audio"))],
        "image" => {
            let list = |key: &str| {
                part.get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
            };
            let pictures = list("images").chain(list("paths"));
            pictures.map(|picture| medium(picture.as_str())).collect()
        }
        _ => vec![medium(text("path"))],
    })
}

/// Returns the text of all text parts, joined by line breaks.
pub(super) fn joined_text(parts: &[Value]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    texts.join("\n")
}
