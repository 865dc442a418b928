//! Writes the fields of Operator's events that differ in form from the payload's fields.

use serde_json::{Value, json};

use super::part;
use crate::object::Source;

/// Returns the time at which a turn started, in seconds since 1970.
pub(super) fn started_at(source: Source<'_>) -> Option<Value> {
    Some((source.get("started_at_ms")?.as_f64()? / 1e3).into())
}

/// Returns the tool call of the event.
pub(super) fn call(source: Source<'_>) -> Option<Value> {
    let input = source.get("tool_input")?;
    Some(json!({
        "id": source.get("tool_use_id"), "name": source.get("tool_name"), "args": input, "input": input,
    }))
}

pub(super) fn result(source: Source<'_>) -> Option<Value> {
    named_result(source, "result")
}

pub(super) fn partial_result(source: Source<'_>) -> Option<Value> {
    named_result(source, "partial_result")
}

/// Returns a tool result with the id and the name of its call.
fn named_result(source: Source<'_>, key: &str) -> Option<Value> {
    let mut shown = tool_result(source.get(key)?);
    if let Some(shown) = shown.as_object_mut() {
        shown.insert("id".to_owned(), json!(source.get("tool_use_id")));
        shown.insert("name".to_owned(), json!(source.get("tool_name")));
        // A call can fail even if its result is not marked as an error.
        if source.get("is_error") == Some(&Value::Bool(true)) {
            shown.insert("is_error".to_owned(), true.into());
        }
    }
    Some(shown)
}

pub(super) fn result_text(source: Source<'_>) -> Option<Value> {
    Some(text(source.get("result")?).into())
}

pub(super) fn result_is_error(source: Source<'_>) -> Option<Value> {
    source.get("result")?.get("is_error").cloned()
}

pub(super) fn tool_results(source: Source<'_>) -> Option<Value> {
    let results = source.get("tool_results")?.as_array()?;
    Some(results.iter().map(tool_result).collect())
}

pub(super) fn parts(source: Source<'_>) -> Option<Value> {
    let parts = source.get("parts")?.as_array()?;
    Some(parts.iter().map(part::written).collect())
}

/// Returns a streamed message with only the added text as its content.
pub(super) fn delta(source: Source<'_>) -> Option<Value> {
    let mut message = source.get("message")?.clone();
    if let Some(message) = message.as_object_mut() {
        message.insert("content".to_owned(), source.get("delta")?.clone());
    }
    Some(message)
}

pub(super) fn request_model(source: Source<'_>) -> Option<Value> {
    source.get("payload")?.get("model").cloned()
}

pub(super) fn request_messages(source: Source<'_>) -> Option<Value> {
    source.get("payload")?.get("messages").cloned()
}

/// Returns all fields of a request except the model and the messages.
pub(super) fn request_options(source: Source<'_>) -> Option<Value> {
    let mut options = source.get("payload")?.as_object()?.clone();
    options.retain(|key, _| !["model", "messages"].contains(&key.as_str()));
    Some(Value::Object(options))
}

fn tool_result(result: &Value) -> Value {
    json!({ "content": text(result), "is_error": result.get("is_error") })
}

/// Returns the text blocks of a tool result, joined by line breaks.
fn text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}
