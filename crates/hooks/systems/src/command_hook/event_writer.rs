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

/// Writes the keys of one kind of event, given its payload.
type WriteKeys = fn(&JsonObject) -> JsonObject;

/// The events whose keys differ from the fields of the catalogue, except results of tools.
const WRITERS: &[(EventKind, WriteKeys)] = &[
    (EventKind::PreToolUse, tool_call),
    (EventKind::PermissionRequest, |event| {
        let mut call = tool_call(event);
        call.insert("permission_suggestions".to_owned(), json!([]));
        call
    }),
    (EventKind::UserPromptSubmit, |event| {
        object([("prompt", get(event, "prompt"))])
    }),
    (EventKind::SessionStart, |event| {
        object([("source", word(&get(event, "source"), SOURCES, "startup"))])
    }),
    (EventKind::SessionEnd, |event| {
        object([("reason", word(&get(event, "reason"), REASONS, "other"))])
    }),
    (EventKind::Stop, |event| {
        object([
            ("stop_hook_active", get(event, "stop_hook_active")),
            ("last_assistant_message", get(event, "response")),
        ])
    }),
    (EventKind::SubagentStart, |event| {
        object([
            ("agent_id", get(event, "task_id")),
            ("agent_type", get(event, "label")),
        ])
    }),
    (EventKind::SubagentStop, |event| {
        object([
            ("stop_hook_active", false.into()),
            ("agent_id", get(event, "task_id")),
            ("agent_type", get(event, "label")),
            ("last_assistant_message", get(event, "result")),
        ])
    }),
    (EventKind::PreCompact, |event| {
        object([
            ("trigger", word(&get(event, "source"), TRIGGERS, "auto")),
            ("custom_instructions", get(event, "custom_instructions")),
        ])
    }),
    (EventKind::Notification, |event| {
        object([
            ("message", get(event, "message")),
            ("notification_type", get(event, "kind")),
        ])
    }),
];

/// Returns the keys that are specific to the event.
fn keys_of(
    own: &SettingsEvent,
    payload: &JsonObject,
    response: fn(&str, &JsonObject, String) -> Value,
) -> JsonObject {
    let mut writers = WRITERS.iter();
    let keys = match writers.find(|(kind, _)| *kind == own.kind) {
        Some((_, keys)) => keys(payload),
        None if own.kind == EventKind::PostToolUse => result(own, payload, response),
        // Other events are passed on as their host wrote them.
        None => payload.clone(),
    };
    keys.into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}

fn get(payload: &JsonObject, key: &str) -> Value {
    payload.get(key).cloned().unwrap_or_default()
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> JsonObject {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn tool_call(payload: &JsonObject) -> JsonObject {
    let keys = ["tool_name", "tool_input", "tool_use_id"];
    object(keys.map(|key| (key, get(payload, key))))
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
    keys.insert("duration_ms".to_owned(), get(payload, "duration_ms"));
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
