//! Writes an event for a hook as one compact JSON object. Zero values are left out.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tenterhook_engine::{EventRef, WriteError};
use tenterhook_protocol::JsonObject;

use super::contract::Contract;
use super::event::{DockerEvent, Field, From, row};
use super::message::to_docker;
use crate::escape::{EscapeStyle, escape};

/// Keys that are written even if their value is zero. They are still left out if they have no value.
const KEPT_WHEN_ZERO: &[&str] = &[
    "session_id",
    "cwd",
    "hook_event_name",
    "tool_response",
    "usage",
    "cost",
];

pub(crate) fn write(contract: &Contract, event: &EventRef) -> Result<Vec<u8>, WriteError> {
    let row = row(contract.shown_as.unwrap_or(event.info().kind));
    let name = match row {
        _ if contract.is_extended() => event.event().name(),
        Some(row) => row.name,
        None => {
            return Err(WriteError::NoSuchEvent {
                dialect: contract.name,
                event: event.event().name().to_owned(),
            });
        }
    };
    let payload = event.payload()?;
    let mut entries = Entries::default();
    add_base(&mut entries, event, name);
    if let Some(extension) = &contract.extension {
        let keys = (extension.keys)(event).into_iter();
        let keys = keys.map(|(key, value)| (key, Cow::Owned(value)));
        entries.list.extend(keys);
        // The keys of every event take precedence over payload fields with the same names.
        for (key, value) in payload {
            entries.add(key, Cow::Borrowed(value));
        }
    }
    if let Some(row) = row {
        add_fields(&mut entries, contract, row, payload);
    }
    let text = serde_json::to_string(&entries).map_err(WriteError::Payload)?;
    let style = if contract.is_extended() {
        EscapeStyle::Plain
    } else {
        EscapeStyle::Go
    };
    Ok(escape(text, style))
}

/// The keys of an event in the order in which they are written. Values are borrowed where possible.
#[derive(Default)]
struct Entries<'a> {
    list: Vec<(&'a str, Cow<'a, Value>)>,
}

impl<'a> Entries<'a> {
    /// Adds a key, unless it already exists.
    fn add(&mut self, key: &'a str, value: Cow<'a, Value>) {
        if !self.list.iter().any(|(known, _)| *known == key) {
            self.list.push((key, value));
        }
    }

    /// Adds a key, or replaces its value if it already exists.
    fn set(&mut self, key: &'a str, value: Cow<'a, Value>) {
        match self.list.iter_mut().find(|(known, _)| *known == key) {
            Some((_, slot)) => *slot = value,
            None => self.list.push((key, value)),
        }
    }
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_written =
            |key: &str, value: &Value| KEPT_WHEN_ZERO.contains(&key) || !is_zero(value);
        serializer.collect_map(
            self.list
                .iter()
                .filter(|(key, value)| is_written(key, value))
                .map(|(key, value)| (key, value)),
        )
    }
}

fn add_base<'a>(entries: &mut Entries<'a>, event: &'a EventRef, name: &str) {
    let origin = &event.envelope().origin;
    let base: [(&str, Value); 4] = [
        ("session_id", origin.session_id.as_str().into()),
        ("cwd", origin.cwd.to_string_lossy().into()),
        ("hook_event_name", name.into()),
        ("agent_name", origin.agent.name.as_str().into()),
    ];
    entries
        .list
        .extend(base.map(|(key, value)| (key, Cow::Owned(value))));
}

fn add_fields<'a>(
    entries: &mut Entries<'a>,
    contract: &Contract,
    row: &'a DockerEvent,
    payload: &'a JsonObject,
) {
    for Field { key, from } in row.fields {
        let value = match from {
            From::Payload(name) => payload.get(*name).map(Cow::Borrowed),
            From::Messages(name) => payload
                .get(*name)
                .and_then(Value::as_array)
                .map(|messages| Cow::Owned(to_docker(messages))),
            From::ResultText => payload
                .get("result")
                .map(|result| Cow::Owned(result_text(result))),
            From::ResultIsError => payload
                .get("result")
                .and_then(|result| result.get("is_error"))
                .map(Cow::Borrowed),
            From::Text(text) => Some(Cow::Owned((*text).into())),
            From::IterationCap => payload
                .get("limit")
                .map(|limit| Cow::Owned(format!("Maximum iterations reached ({limit})").into())),
            // Our payload has a field with the same name, so keep our word instead of docker-agent's.
            From::Worded(name, _) if contract.is_extended() && key == name => None,
            From::Worded(name, words) => payload.get(*name).map(|value| {
                let word = words.iter().find(|(own, _)| value == own);
                word.map_or(Cow::Borrowed(value), |(_, there)| {
                    Cow::Owned((*there).into())
                })
            }),
        };
        if let Some(value) = value {
            entries.set(key, value);
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
