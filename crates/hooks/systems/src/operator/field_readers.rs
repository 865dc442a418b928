//! Reads fields of Operator's events back into the payload. It is the inverse of
//! [`field_writers`](super::field_writers).

use serde_json::{Value, json};
use tenterhook_engine::ReadError;
use tenterhook_protocol::JsonObject;

use super::part;
use crate::form::reading::{object, set_in, text, text_content};

pub(super) fn started_at(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let seconds = value
        .as_f64()
        .ok_or_else(|| ReadError::invalid(format!("`timestamp` is {value}, expected seconds")))?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "every realistic time fits, and casting a larger number saturates"
    )]
    let milliseconds = (seconds * 1e3).round() as i64;
    payload.insert("started_at_ms".to_owned(), milliseconds.into());
    Ok(())
}

pub(super) fn call(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let call = object(value, "tool_call")?;
    let input = call.get("input").or_else(|| call.get("args"));
    let fields = [
        ("tool_use_id", call.get("id")),
        ("tool_name", call.get("name")),
        ("tool_input", input),
    ];
    for (field, value) in fields {
        payload.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    Ok(())
}

pub(super) fn result(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let is_error = named_result(value, "tool_result", "result", payload)?;
    payload.insert("is_error".to_owned(), is_error);
    Ok(())
}

pub(super) fn partial_result(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    named_result(value, "partial_tool_result", "partial_result", payload).map(drop)
}

/// Reads a result that contains the id and the name of its call. Returns its `is_error`.
fn named_result(
    value: &Value,
    key: &str,
    field: &str,
    payload: &mut JsonObject,
) -> Result<Value, ReadError> {
    let shown = object(value, key)?;
    for (field, key) in [("tool_use_id", "id"), ("tool_name", "name")] {
        let value = shown.get(key).cloned();
        payload.extend(value.map(|value| (field.to_owned(), value)));
    }
    let result = tool_result(value)?;
    let is_error = result
        .get("is_error")
        .cloned()
        .unwrap_or(Value::Bool(false));
    payload.insert(field.to_owned(), result);
    Ok(is_error)
}

pub(super) fn result_text(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let content = text_content(text(value, "content")?);
    set_in(payload, "result", "content", content)
}

pub(super) fn result_is_error(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set_in(payload, "result", "is_error", value.clone())
}

pub(super) fn tool_results(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let results = value
        .as_array()
        .ok_or_else(|| ReadError::invalid("`tool_results` is not a list"))?;
    let results: Vec<Value> = results.iter().map(tool_result).collect::<Result<_, _>>()?;
    payload.insert("tool_results".to_owned(), results.into());
    Ok(())
}

/// Reads a tool result, whose content is a single string in Operator.
fn tool_result(value: &Value) -> Result<Value, ReadError> {
    let shown = object(value, "a tool result")?;
    let content = shown.get("content").unwrap_or(&Value::Null);
    let mut result = json!({ "content": text_content(text(content, "content")?) });
    let is_error = shown.get("is_error").filter(|value| !value.is_null());
    if let (Some(result), Some(is_error)) = (result.as_object_mut(), is_error) {
        result.insert("is_error".to_owned(), is_error.clone());
    }
    Ok(result)
}

pub(super) fn parts(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    payload.insert("parts".to_owned(), part::read(value)?.into());
    Ok(())
}

/// Reads a streamed message, of which handlers see only the added text.
pub(super) fn delta(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let delta = object(value, "message")?.get("content").cloned();
    payload.insert("message".to_owned(), value.clone());
    payload.extend(delta.map(|delta| ("delta".to_owned(), delta)));
    Ok(())
}

pub(super) fn request_model(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set_in(payload, "payload", "model", value.clone())
}

pub(super) fn request_messages(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set_in(payload, "payload", "messages", value.clone())
}

pub(super) fn request_options(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    for (key, value) in object(value, "options")? {
        set_in(payload, "payload", key, value.clone())?;
    }
    Ok(())
}
