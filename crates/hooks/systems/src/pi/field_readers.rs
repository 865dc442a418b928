//! Reads fields of pi's events back into the payload. It is the inverse of
//! [`field_writers`](super::field_writers).

use serde::Serialize;
use serde_json::{Value, json};
use tenterhook_engine::ReadError;
use tenterhook_protocol::JsonObject;

use super::{message, tool};
use crate::form::reading::{object, set_in, text};
use crate::take_key::take_key;

/// Sets a field of the payload.
fn set(payload: &mut JsonObject, field: &str, value: impl Serialize) -> Result<(), ReadError> {
    let value =
        serde_json::to_value(value).map_err(|error| ReadError::invalid(error.to_string()))?;
    payload.insert(field.to_owned(), value);
    Ok(())
}

fn items<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], ReadError> {
    let items = value.as_array().map(Vec::as_slice);
    items.ok_or_else(|| ReadError::invalid(format!("`{key}` is {value}, expected a list")))
}

pub(super) fn images(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let images = items(value, "images")?.iter().map(message::read_image);
    set(payload, "images", images.collect::<Result<Vec<_>, _>>()?)
}

pub(super) fn messages(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "messages", message::read_all(value)?)
}

pub(super) fn message(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "message", message::read(value)?)
}

pub(super) fn delta(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let added = object(value, "assistantMessageEvent")?.get("delta");
    // Events for the start and the end of a part have no `delta`, because they add no text.
    set(payload, "delta", added.unwrap_or(&json!("")))?;
    let kind = object(value, "assistantMessageEvent")?.get("type");
    let part = match kind.and_then(Value::as_str).unwrap_or_default() {
        "end" => "end",
        kind if kind.starts_with("thinking") => "reasoning",
        kind if kind.starts_with("toolcall") => "tool_call",
        _ => return Ok(()),
    };
    set_in(payload, "extra", "part", part.into())
}

pub(super) fn args(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let mut input = object(value, "args")?.clone();
    if let Some(name) = payload.get("tool_name").and_then(Value::as_str) {
        input = tool::read(name, input).1;
    }
    set_in(payload, "extra", "tool_input", input.into())
}

pub(super) fn tool_results(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let read = |shown: &Value| {
        let mut result = tool_result(shown)?;
        let is_error = shown.get("isError").filter(|value| !value.is_null());
        result.extend(is_error.map(|is_error| ("is_error".to_owned(), is_error.clone())));
        Ok(result)
    };
    let results = items(value, "toolResults")?.iter().map(read);
    set(
        payload,
        "tool_results",
        results.collect::<Result<Vec<_>, ReadError>>()?,
    )
}

/// Reads the content and the details of a tool result.
fn tool_result(value: &Value) -> Result<JsonObject, ReadError> {
    let shown = object(value, "result")?;
    let mut result = JsonObject::new();
    if let Some(content) = shown.get("content").filter(|value| !value.is_null()) {
        set(&mut result, "content", message::read_blocks(content)?)?;
    }
    if let Some(details) = shown.get("details").filter(|value| !value.is_null()) {
        set(&mut result, "details", message::details(details))?;
    }
    Ok(result)
}

pub(super) fn result(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "result", tool_result(value)?)
}

pub(super) fn partial_result(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "partial_result", tool_result(value)?)
}

pub(super) fn result_content(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let content = json!(message::read_blocks(value)?);
    set_in(payload, "result", "content", content)
}

pub(super) fn result_details(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set_in(payload, "result", "details", message::details(value))
}

pub(super) fn is_error(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set_in(payload, "result", "is_error", value.clone())
}

/// Reads whether a call failed, and sets it on both the call and its result.
pub(super) fn call_is_error(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "is_error", value)?;
    is_error(value, payload)
}

/// Reads a model. Returns its name as `provider/model`.
fn read_model(value: &Value, key: &str) -> Result<String, ReadError> {
    let shown = object(value, key)?;
    let id = text(shown.get("id").unwrap_or(&Value::Null), "id")?;
    let provider = shown.get("provider").and_then(Value::as_str);
    Ok(match provider.filter(|provider| !provider.is_empty()) {
        Some(provider) => format!("{provider}/{id}"),
        None => id.to_owned(),
    })
}

pub(super) fn model(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "model", read_model(value, "model")?)
}

pub(super) fn previous_model(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(
        payload,
        "previous_model",
        read_model(value, "previousModel")?,
    )
}

/// Reads an entry of a session.
fn read_entry(value: &Value) -> Result<JsonObject, ReadError> {
    let mut shown = object(value, "an entry")?.clone();
    let mut entry = JsonObject::new();
    for (key, field) in [
        ("id", "id"),
        ("parentId", "parent_id"),
        ("timestamp", "time"),
        ("type", "kind"),
    ] {
        let value = take_key(&mut shown, key).filter(|value| !value.is_null());
        entry.extend(value.map(|value| (field.to_owned(), value)));
    }
    if let Some(shown) = take_key(&mut shown, "message") {
        set(&mut entry, "message", message::read(&shown)?)?;
    }
    if entry.get("kind") == Some(&json!("custom_message")) {
        let message = message::read_custom(&Value::Object(std::mem::take(&mut shown)))?;
        set(&mut entry, "message", message)?;
        set(&mut entry, "kind", "message")?;
    }
    let kind = entry
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let of = |key: &str| shown.get(key).and_then(Value::as_str);
    let data = match (kind, of("modelId"), of("thinkingLevel")) {
        ("model_change", Some(id), _) => {
            let provider = of("provider").unwrap_or_default();
            Some(json!({ "model": format!("{provider}/{id}") }))
        }
        ("thinking_level_change", _, Some(level)) => Some(json!({ "level": level })),
        _ if shown.is_empty() => None,
        _ => Some(
            match shown
                .get("data")
                .filter(|data| shown.len() == 1 && !data.is_object())
            {
                Some(data) => data.clone(),
                None => Value::Object(shown),
            },
        ),
    };
    entry.extend(data.map(|data| ("data".to_owned(), data)));
    Ok(entry)
}

fn read_entries(value: &Value, key: &str) -> Result<Vec<JsonObject>, ReadError> {
    items(value, key)?.iter().map(read_entry).collect()
}

pub(super) fn branch_entries(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(
        payload,
        "branch_entries",
        read_entries(value, "branchEntries")?,
    )
}

pub(super) fn summary_entry(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    set(payload, "summary_entry", read_entry(value)?)
}

/// Reads the entry of a compaction, which also contains the summary and the number of tokens.
pub(super) fn compaction_entry(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let shown = object(value, "compactionEntry")?;
    let of = |key: &str| shown.get(key).filter(|value| !value.is_null());
    set(payload, "summary", of("summary").unwrap_or(&json!("")))?;
    if let Some(tokens) = of("tokensBefore") {
        set(payload, "input_tokens", tokens)?;
    }
    // An entry that no session stores has no id.
    if of("id").is_some_and(|id| id != "") {
        let mut entry = json!({ "id": of("id"), "kind": "compaction" });
        if let (Some(entry), Some(parent)) = (entry.as_object_mut(), of("parentId")) {
            entry.insert("parent_id".to_owned(), parent.clone());
        }
        set(payload, "compaction_entry", entry)?;
    }
    Ok(())
}

/// Copies keys of an object under our names. Null values are left out.
fn renamed(shown: &JsonObject, names: &[(&str, &str)]) -> JsonObject {
    let copy = |(key, field): &(&str, &str)| {
        let value = shown.get(*key).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), value.clone()))
    };
    names.iter().filter_map(copy).collect()
}

pub(super) fn compaction(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let shown = object(value, "preparation")?;
    let mut preparation = renamed(
        shown,
        &[
            ("firstKeptEntryId", "first_kept_entry_id"),
            ("tokensBefore", "tokens_before"),
            ("previousSummary", "previous_summary"),
        ],
    );
    if let Some(messages) = shown.get("messagesToSummarize") {
        let mut messages = message::read_all(messages)?;
        if let Some(prefix) = shown.get("turnPrefixMessages") {
            messages.extend(message::read_all(prefix)?);
        }
        set(&mut preparation, "messages_to_summarize", messages)?;
    }
    set(payload, "preparation", preparation)
}

pub(super) fn tree(value: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let shown = object(value, "preparation")?;
    let mut preparation = renamed(
        shown,
        &[
            ("targetId", "target_id"),
            ("oldLeafId", "old_leaf_id"),
            ("commonAncestorId", "common_ancestor_id"),
            ("userWantsSummary", "user_wants_summary"),
            ("customInstructions", "custom_instructions"),
            ("replaceInstructions", "replace_instructions"),
            ("label", "label"),
        ],
    );
    if let Some(entries) = shown.get("entriesToSummarize") {
        let entries = read_entries(entries, "entriesToSummarize")?;
        set(&mut preparation, "entries_to_summarize", entries)?;
    }
    set(payload, "preparation", preparation)
}
