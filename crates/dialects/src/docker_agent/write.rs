//! Writing an event for a hook: one compact JSON object, what is zero left out.

use serde_json::Value;
use tenterhook::{EventRef, WriteError};
use tenterhook_protocol::JsonObject;

use super::Speaker;
use super::event::{DockerEvent, Field, From, row};
use super::message::to_docker;

/// Keys that are written even where their value is zero, if there is one at all.
const KEPT_WHEN_ZERO: &[&str] = &[
    "session_id",
    "cwd",
    "hook_event_name",
    "tool_response",
    "usage",
    "cost",
];

pub(super) fn write(speaker: Speaker, event: &EventRef) -> Result<Vec<u8>, WriteError> {
    let row = row(event.info().kind);
    let name = match (speaker, row) {
        (Speaker::Native, _) => event.event().name(),
        (Speaker::AgentFile, Some(row)) => row.name,
        (Speaker::AgentFile, None) => {
            return Err(WriteError::NoSuchEvent {
                dialect: "docker-agent",
                event: event.event().name().to_owned(),
            });
        }
    };
    let mut object = base(event, name);
    match row {
        Some(row) => add_fields(&mut object, row, event.payload()?),
        None => object.extend(event.payload()?.clone()),
    }
    if speaker == Speaker::Native {
        add_envelope(&mut object, event);
    }
    object.retain(|key, value| KEPT_WHEN_ZERO.contains(&key.as_str()) || !is_zero(value));
    let text = serde_json::to_string(&object).map_err(WriteError::Payload)?;
    Ok(match speaker {
        Speaker::Native => text.into_bytes(),
        Speaker::AgentFile => escape(&text).into_bytes(),
    })
}

fn base(event: &EventRef, name: &str) -> JsonObject {
    let origin = &event.envelope().origin;
    [
        ("session_id", origin.session_id.as_str().into()),
        ("cwd", origin.cwd.to_string_lossy().into()),
        ("hook_event_name", name.into()),
        ("agent_name", origin.agent.name.as_str().into()),
    ]
    .map(|(key, value): (&str, Value)| (key.to_owned(), value))
    .into_iter()
    .collect()
}

/// Adds what native hooks are told beside docker-agent's keys.
fn add_envelope(object: &mut JsonObject, event: &EventRef) {
    let envelope = event.envelope();
    let origin = &envelope.origin;
    let parent = origin.agent.parent_id.as_ref().map(|id| id.as_str().into());
    let keys: [(&str, Value); 7] = [
        ("event_id", envelope.event_id().to_string().into()),
        ("sequence", envelope.sequence.into()),
        ("timestamp", envelope.timestamp().to_string().into()),
        ("invoked_by", origin.invoked_by.as_str().into()),
        ("parent_agent_id", parent.unwrap_or_default()),
        ("workspace", origin.workspace.clone().into()),
        ("recipe", origin.recipe.clone().into()),
    ];
    object.extend(keys.map(|(key, value)| (key.to_owned(), value)));
}

fn add_fields(object: &mut JsonObject, row: &DockerEvent, payload: &JsonObject) {
    for Field { key, from } in row.fields {
        let value = match from {
            From::Payload(name) => payload.get(*name).cloned(),
            From::Messages(name) => payload
                .get(*name)
                .and_then(Value::as_array)
                .map(|messages| to_docker(messages)),
            From::ResultText => payload.get("result").map(result_text),
            From::ResultIsError => payload
                .get("result")
                .and_then(|result| result.get("is_error"))
                .cloned(),
            From::Text(text) => Some((*text).into()),
            From::IterationCap => payload
                .get("limit")
                .map(|limit| format!("Maximum iterations reached ({limit})").into()),
        };
        if let Some(value) = value {
            object.insert((*key).to_owned(), value);
        }
    }
}

fn result_text(result: &Value) -> Value {
    let blocks = result
        .get("content")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n").into()
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(keys) => keys.is_empty(),
    }
}

/// Escapes what docker-agent's encoder escapes. Outside of strings these characters do not stand in JSON.
fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}
