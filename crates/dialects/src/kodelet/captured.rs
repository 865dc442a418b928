//! Reading back what a hook of kodelet gets on its standard input: the inverse of [`write`](super::write).

use serde_json::{Value, json};
use tenterhook::{EventKind, EventName, ReadError};
use tenterhook_protocol::JsonObject;

use super::{Kodelet, output, row};
use crate::form::{Form, Reading};

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

/// Reads the number of a turn, which kodelet counts from 1.
pub(crate) fn turn_number(
    number: Option<&Value>,
    payload: &mut JsonObject,
) -> Result<(), ReadError> {
    let Some(number) = number else {
        return Ok(());
    };
    let number = number.as_u64().ok_or_else(|| {
        ReadError::invalid(format!(
            "the number of the turn is {number}, expected a whole number from 1"
        ))
    })?;
    payload.insert("turn_index".to_owned(), json!(number.saturating_sub(1)));
    Ok(())
}
