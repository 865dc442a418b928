//! Writes an event for a hook, with kodelet's keys in the order of its document.

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventRef, WriteError};
use tenterhook_protocol::JsonObject;

use super::event::row;
use super::output;
use crate::escape::{EscapeStyle, escape};

pub(super) fn write(event: &EventRef) -> Result<Vec<u8>, WriteError> {
    let kind = event.info().kind;
    let Some(row) = row(kind) else {
        return Err(WriteError::NoSuchEvent {
            dialect: "kodelet",
            event: event.event().name().to_owned(),
        });
    };
    let origin = &event.envelope().origin;
    let mut object = JsonObject::new();
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    add("event", row.name.into());
    add("conv_id", origin.session_id.as_str().into());
    add("cwd", origin.cwd.to_string_lossy().into());
    add("invoked_by", origin.invoked_by.as_str().into());
    if let Some(recipe) = origin.recipe.as_deref().filter(|name| !name.is_empty()) {
        add("recipe_name", recipe.into());
    }
    object.extend(own(kind, event)?);
    let text = serde_json::to_string(&object).map_err(WriteError::Payload)?;
    Ok(escape(text, EscapeStyle::Go))
}

/// Returns the keys that are specific to the event.
fn own(kind: EventKind, event: &EventRef) -> Result<JsonObject, WriteError> {
    let payload = event.payload()?;
    let of = |key: &str| payload.get(key).cloned().unwrap_or_default();
    let own = if kind == EventKind::PreToolUse {
        json!({
            "tool_name": of("tool_name"),
            "tool_input": of("tool_input"),
            "tool_user_id": of("tool_use_id"),
        })
    } else if kind == EventKind::PostToolUse {
        json!({
            "tool_name": of("tool_name"),
            "tool_input": of("tool_input"),
            "tool_output": output::written(event, payload),
            "tool_user_id": of("tool_use_id"),
        })
    } else if kind == EventKind::UserPromptSubmit {
        json!({ "message": of("prompt") })
    } else if kind == EventKind::Stop {
        json!({ "messages": messages(payload) })
    } else {
        json!({ "response": of("response"), "turn_number": turn_number(payload) })
    };
    Ok(own.as_object().cloned().unwrap_or_default())
}

/// Returns the turn number, which starts at 1 for each message of the user.
pub(crate) fn turn_number(payload: &JsonObject) -> u64 {
    let index = payload.get("turn_index").and_then(Value::as_u64);
    index.unwrap_or_default().saturating_add(1)
}

/// Returns the messages of a conversation in kodelet's form.
pub(crate) fn messages(payload: &JsonObject) -> Value {
    let messages = payload.get("messages").and_then(Value::as_array);
    let message =
        |message: &Value| json!({ "role": message.get("role"), "content": message.get("content") });
    messages.into_iter().flatten().map(message).collect()
}
