//! Writing an event for a hook: one compact JSON object, what is zero left out. Native hooks get the catalogue's
//! payload and docker-agent's keys over it.

use serde_json::Value;
use tenterhook::{EventKind, EventRef, WriteError};
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
    let kind = event.info().kind;
    let (name, row) = match (speaker, row(kind)) {
        (Speaker::Native, row) => (event.event().name(), row),
        (Speaker::Preempt, _) => ("pre_tool_use", row(EventKind::PreToolUse)),
        (Speaker::AgentFile, Some(row)) => (row.name, Some(row)),
        (Speaker::AgentFile, None) => {
            return Err(WriteError::NoSuchEvent {
                dialect: "docker-agent",
                event: event.event().name().to_owned(),
            });
        }
    };
    let payload = event.payload()?;
    let mut object = match (speaker, row) {
        (Speaker::AgentFile | Speaker::Preempt, Some(_)) => JsonObject::new(),
        (_, _) => payload.clone(),
    };
    // What every event carries stands over a payload that brings keys of the same names.
    object.extend(base(event, name));
    if speaker == Speaker::Native {
        add_envelope(&mut object, event);
    }
    if let Some(row) = row {
        add_fields(&mut object, row, payload);
    }
    object.retain(|key, value| KEPT_WHEN_ZERO.contains(&key.as_str()) || !is_zero(value));
    let text = serde_json::to_string(&object).map_err(WriteError::Payload)?;
    Ok(escape(&text, speaker).into_bytes())
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

/// Writes escapes in the one form that survives every shell, and what docker-agent's encoder escapes too.
///
/// Many hooks hand the event on with `echo "$INPUT"`. The `echo` of some shells turns `\n` and its like into the
/// character itself, which breaks the JSON behind the pipe, and a guard that reads nothing denies nothing. It
/// leaves `\u000a` alone.
fn escape(json: &str, speaker: Speaker) -> String {
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next().map(|short| (short, long_escape(short))) {
                Some((_, Some(long))) => escaped.push_str(long),
                Some((short, None)) => escaped.extend(['\\', short]),
                None => escaped.push('\\'),
            },
            '<' if speaker != Speaker::Native => escaped.push_str("\\u003c"),
            '>' if speaker != Speaker::Native => escaped.push_str("\\u003e"),
            '&' if speaker != Speaker::Native => escaped.push_str("\\u0026"),
            '\u{2028}' if speaker != Speaker::Native => escaped.push_str("\\u2028"),
            '\u{2029}' if speaker != Speaker::Native => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the long form of a two-character escape, by its second character.
fn long_escape(short: char) -> Option<&'static str> {
    Some(match short {
        'n' => "\\u000a",
        't' => "\\u0009",
        'r' => "\\u000d",
        'b' => "\\u0008",
        'f' => "\\u000c",
        '"' => "\\u0022",
        '\\' => "\\u005c",
        _ => return None,
    })
}
