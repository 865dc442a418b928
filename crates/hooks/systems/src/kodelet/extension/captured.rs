//! Reads back the events that extensions of kodelet get. It is the inverse of [`write`](super::write).

use serde_json::Value;
use tenterhook_engine::{EventKind, EventName, ReadError};
use tenterhook_protocol::JsonObject;

use super::dialect::KodeletExtension;
use super::event::row;
use crate::form::definition::{Form, Substitute};
use crate::form::reading::{Reading, object};
use crate::kodelet::captured::turn_number;
use crate::kodelet::output;

pub(crate) static FORM: Form = Form {
    name: "kodelet-extension",
    marks: &["event", "context", "payload"],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| row(event.kind()).into_iter().map(|row| row.name).collect(),
    dialect: |event| row(event.kind()).map(|_| KodeletExtension::new()),
    read,
    omits_zeros: false,
    not_carried: &[
        (
            EventKind::SessionStart,
            "source",
            Substitute::Text("startup"),
        ),
        (EventKind::SessionEnd, "reason", Substitute::Text("quit")),
        (
            EventKind::ResourcesDiscover,
            "reason",
            Substitute::Text("startup"),
        ),
        (EventKind::BeforeAgentStart, "prompt", Substitute::Text("")),
    ],
};

/// Fields that need only a new name: the event, kodelet's name and our name.
const FIELDS: &[(EventKind, &str, &str)] = &[
    (EventKind::UserInput, "message", "text"),
    (EventKind::BeforeAgentStart, "systemPrompt", "system_prompt"),
    (EventKind::TurnEnd, "response", "response"),
    (EventKind::Stop, "messages", "messages"),
];

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    let of = |key: &str| reading.get(key).unwrap_or(&Value::Null);
    let context = object(of("context"), "context")?;
    let payload = object(of("payload"), "payload")?;
    for (key, field) in [
        ("sessionId", "session_id"),
        ("cwd", "cwd"),
        ("recipeName", "recipe"),
        ("invokedBy", "invoked_by"),
    ] {
        let value = context.get(key).filter(|value| !value.is_null());
        let value = value.map(|value| (field.to_owned(), value.clone()));
        reading.origin.extend(value);
    }
    for (of, key, field) in FIELDS {
        if *of == kind {
            let value = payload.get(*key).cloned();
            let value = value.map(|value| ((*field).to_owned(), value));
            reading.payload.extend(value);
        }
    }
    if [EventKind::TurnStart, EventKind::TurnEnd].contains(&kind) {
        turn_number(payload.get("turnNumber"), &mut reading.payload)?;
    }
    if [
        EventKind::PreToolUse,
        EventKind::PostToolUse,
        EventKind::ToolExecutionUpdate,
    ]
    .contains(&kind)
    {
        let tool = object(payload.get("tool").unwrap_or(&Value::Null), "tool")?;
        read_tool(kind, tool, &mut reading.payload)?;
    }
    Ok(())
}

fn read_tool(
    kind: EventKind,
    tool: &JsonObject,
    payload: &mut JsonObject,
) -> Result<(), ReadError> {
    let output = tool.get("output").unwrap_or(&Value::Null);
    let input = (kind != EventKind::ToolExecutionUpdate).then_some(("input", "tool_input"));
    for (key, field) in [("name", "tool_name"), ("callId", "tool_use_id")]
        .into_iter()
        .chain(input)
    {
        let value = tool.get(key).filter(|value| !value.is_null());
        payload.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    if kind == EventKind::PostToolUse {
        output::read_back(output, payload)?;
    } else if kind == EventKind::ToolExecutionUpdate {
        output::read_back_partial(output, payload)?;
    }
    Ok(())
}
