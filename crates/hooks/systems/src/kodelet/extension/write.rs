//! Writes an event for an extension.

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventRef, Origin, WriteError};
use tenterhook_protocol::JsonObject;

use super::event::row;
use crate::kodelet::output;
use crate::kodelet::write::{messages, turn_number};

pub(super) fn write(event: &EventRef) -> Result<Vec<u8>, WriteError> {
    let kind = event.info().kind;
    let Some(row) = row(kind) else {
        return Err(WriteError::NoSuchEvent {
            dialect: "kodelet-extension",
            event: event.event().name().to_owned(),
        });
    };
    let envelope = event.envelope();
    let params = json!({
        "id": format!("evt_{}", envelope.event_id()),
        "event": row.name,
        "context": context(&envelope.origin),
        "payload": own(kind, event)?,
    });
    serde_json::to_vec(&params).map_err(WriteError::Payload)
}

/// Returns kodelet's payload of an event.
fn own(kind: EventKind, event: &EventRef) -> Result<Value, WriteError> {
    let payload = event.payload()?;
    let of = |key: &str| payload.get(key).cloned().unwrap_or_default();
    let tool = |output: Option<Value>| {
        let mut tool = json!({
            "name": of("tool_name"), "callId": of("tool_use_id"), "input": of("tool_input"),
        });
        if let (Some(tool), Some(output)) = (tool.as_object_mut(), output) {
            tool.insert("output".to_owned(), output);
        }
        json!({ "tool": tool })
    };
    Ok(if kind == EventKind::UserInput {
        json!({ "message": of("text") })
    } else if kind == EventKind::BeforeAgentStart {
        json!({ "systemPrompt": of("system_prompt") })
    } else if kind == EventKind::TurnStart {
        json!({ "turnNumber": turn_number(payload) })
    } else if kind == EventKind::PreToolUse {
        tool(None)
    } else if kind == EventKind::ToolExecutionUpdate {
        tool(Some(output::partial(event)))
    } else if kind == EventKind::PostToolUse {
        tool(Some(output::written(event, payload)))
    } else if kind == EventKind::TurnEnd {
        json!({ "response": of("response"), "turnNumber": turn_number(payload) })
    } else if kind == EventKind::Stop {
        json!({ "messages": messages(payload) })
    } else {
        json!({})
    })
}

pub(super) fn context(origin: &Origin) -> JsonObject {
    let session = origin.session_id.as_str();
    let cwd = origin.cwd.to_string_lossy();
    let entries = [
        ("sessionId", session),
        ("conversationId", session),
        ("cwd", &*cwd),
        ("recipeName", origin.recipe.as_deref().unwrap_or_default()),
        ("invokedBy", origin.invoked_by.as_str()),
    ];
    entries
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| (key.to_owned(), text.into()))
        .collect()
}
