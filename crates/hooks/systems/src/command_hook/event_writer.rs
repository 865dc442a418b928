//! Writes events with the keys in snake case that most systems have.

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventRef, InvokedBy, WriteError};
use tenterhook_protocol::JsonObject;

use crate::settings_file::{Occurrences, SettingsEvent};

/// Writes an event. `response` turns the text of a tool's result into the system's form; its first
/// argument is the system's name of the tool.
pub(crate) fn write(
    own: &SettingsEvent,
    event: &EventRef,
    response: fn(&str, &JsonObject, String) -> Value,
) -> Result<JsonObject, WriteError> {
    let origin = &event.envelope().origin;
    let mut object = JsonObject::new();
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    add("session_id", origin.session_id.as_str().into());
    let transcript = origin.extra.get("transcript_path").cloned();
    add("transcript_path", transcript.unwrap_or_default());
    add("cwd", origin.cwd.to_string_lossy().into());
    let mode = origin.extra.get("permission_mode").cloned();
    add("permission_mode", mode.unwrap_or_else(|| "default".into()));
    add("hook_event_name", own.name.into());
    if origin.invoked_by == InvokedBy::Subagent {
        add("agent_id", origin.agent.id.as_str().into());
        add("agent_type", origin.agent.name.as_str().into());
    }
    object.extend(keys_of(own, event.payload()?, response));
    Ok(object)
}

/// Returns the keys that are specific to the event.
fn keys_of(
    own: &SettingsEvent,
    payload: &JsonObject,
    response: fn(&str, &JsonObject, String) -> Value,
) -> JsonObject {
    let get = |key: &str| payload.get(key).cloned().unwrap_or_default();
    let keys = if own.kind == EventKind::PreToolUse {
        tool_call(payload)
    } else if own.kind == EventKind::PermissionRequest {
        let mut call = tool_call(payload);
        call.insert("permission_suggestions".to_owned(), json!([]));
        call
    } else if own.kind == EventKind::PostToolUse {
        result(own, payload, response)
    } else if own.kind == EventKind::UserPromptSubmit {
        object([("prompt", get("prompt"))])
    } else if own.kind == EventKind::SessionStart {
        object([("source", word(&get("source"), SOURCES, "startup"))])
    } else if own.kind == EventKind::SessionEnd {
        object([("reason", word(&get("reason"), REASONS, "other"))])
    } else if own.kind == EventKind::Stop {
        object([
            ("stop_hook_active", get("stop_hook_active")),
            ("last_assistant_message", get("response")),
        ])
    } else if own.kind == EventKind::SubagentStart {
        object([("agent_id", get("task_id")), ("agent_type", get("label"))])
    } else if own.kind == EventKind::SubagentStop {
        object([
            ("stop_hook_active", false.into()),
            ("agent_id", get("task_id")),
            ("agent_type", get("label")),
            ("last_assistant_message", get("result")),
        ])
    } else if own.kind == EventKind::PreCompact {
        object([
            ("trigger", word(&get("source"), TRIGGERS, "auto")),
            ("custom_instructions", get("custom_instructions")),
        ])
    } else if own.kind == EventKind::Notification {
        object([
            ("message", get("message")),
            ("notification_type", get("kind")),
        ])
    } else {
        // Other events are passed on as their host wrote them.
        payload.clone()
    };
    keys.into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> JsonObject {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn tool_call(payload: &JsonObject) -> JsonObject {
    let keys = ["tool_name", "tool_input", "tool_use_id"];
    let values = keys.map(|key| (key, payload.get(key).cloned().unwrap_or_default()));
    object(values)
}

fn result(
    own: &SettingsEvent,
    payload: &JsonObject,
    response: fn(&str, &JsonObject, String) -> Value,
) -> JsonObject {
    let mut keys = tool_call(payload);
    let text = result_text(payload);
    if own.occurrences == Occurrences::Failed {
        keys.insert("error".to_owned(), text.into());
        keys.insert("is_interrupt".to_owned(), false.into());
    } else {
        let tool = payload.get("tool_name").and_then(Value::as_str);
        let input = payload.get("tool_input").and_then(Value::as_object);
        let none = JsonObject::new();
        let value = response(tool.unwrap_or_default(), input.unwrap_or(&none), text);
        keys.insert("tool_response".to_owned(), value);
    }
    let duration = payload.get("duration_ms").cloned().unwrap_or_default();
    keys.insert("duration_ms".to_owned(), duration);
    keys
}

/// Returns the text of the result in a payload.
pub(crate) fn result_text(payload: &JsonObject) -> String {
    let blocks = payload
        .get("result")
        .and_then(|result| result.get("content"));
    let blocks = blocks.and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The reasons why a session starts that the systems know.
pub(crate) const SOURCES: &[&str] = &["startup", "resume", "clear", "compact", "fork"];
/// The reasons why a session ends that the systems know.
const REASONS: &[&str] = &["clear", "resume"];
/// What starts a compaction.
pub(crate) const TRIGGERS: &[&str] = &["manual"];

/// Returns a word if the systems know it, or else another one.
pub(crate) fn word(value: &Value, known: &[&str], other: &str) -> Value {
    let found = value.as_str().filter(|word| known.contains(word));
    found.unwrap_or(other).into()
}
