//! Reads back the events that hooks of kodelet get on stdin. It is the inverse of [`write`](super::write).

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventName, ReadError};
use tenterhook_protocol::JsonObject;

use super::dialect::Kodelet;
use super::event::row;
use super::output;
use crate::form::definition::Form;
use crate::form::reading::Reading;

pub(crate) static FORM: Form = Form {
    name: "kodelet",
    marks: &["event", "conv_id"],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| row(event.kind()).into_iter().map(|row| row.name).collect(),
    dialect: |event| row(event.kind()).map(|_| Kodelet::new()),
    read,
    omits_zeros: false,
    not_carried: &[],
};

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    for (key, field) in [
        ("conv_id", "session_id"),
        ("cwd", "cwd"),
        ("invoked_by", "invoked_by"),
        ("recipe_name", "recipe"),
    ] {
        reading.copy_origin(key, field);
    }
    let kind = event.kind();
    if [EventKind::PreToolUse, EventKind::PostToolUse].contains(&kind) {
        for (key, field) in [
            ("tool_name", "tool_name"),
            ("tool_input", "tool_input"),
            ("tool_user_id", "tool_use_id"),
        ] {
            reading.copy(key, field);
        }
    }
    if kind == EventKind::PostToolUse {
        let shown = reading.get("tool_output").unwrap_or(&Value::Null);
        output::read_back(shown, &mut reading.payload)?;
    } else if kind == EventKind::UserPromptSubmit {
        reading.copy("message", "prompt");
    } else if kind == EventKind::Stop {
        reading.copy("messages", "messages");
    } else if kind == EventKind::TurnEnd {
        reading.copy("response", "response");
        turn_number(reading.get("turn_number"), &mut reading.payload)?;
    }
    Ok(())
}

/// Reads the turn number. kodelet counts turns from 1, the catalogue from 0.
pub(crate) fn turn_number(
    number: Option<&Value>,
    payload: &mut JsonObject,
) -> Result<(), ReadError> {
    let Some(number) = number else {
        return Ok(());
    };
    let number = number.as_u64().ok_or_else(|| {
        ReadError::invalid(format!(
            "the turn number is {number}, expected a whole number of at least 1"
        ))
    })?;
    payload.insert("turn_index".to_owned(), json!(number.saturating_sub(1)));
    Ok(())
}
