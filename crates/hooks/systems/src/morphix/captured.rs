//! Reads back the context object that hooks of morphix get.

use serde_json::Value;
use tenterhook_engine::{EventKind, EventName, ReadError};

use super::dialect::Morphix;
use super::event::EVENTS;
use crate::form::definition::{Form, Substitute};
use crate::form::reading::{Reading, text, text_content};

pub(crate) static FORM: Form = Form {
    name: "morphix",
    marks: &["hook_point"],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| {
        let kind = event.kind();
        let rows = EVENTS.iter().filter(|row| row.kind == kind);
        rows.map(|row| row.name).collect()
    },
    dialect: |event| {
        let is_known = EVENTS.iter().any(|row| row.kind == event.kind());
        is_known.then(Morphix::new)
    },
    read,
    omits_zeros: false,
    not_carried: &[
        (EventKind::TokenBudgetExceeded, "budget", Substitute::Zero),
        (EventKind::TokenBudgetExceeded, "used", Substitute::Zero),
    ],
};

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    reading.copy_origin("session_id", "session_id");
    // For a host without workspaces, the dialect writes `main`.
    if reading.get("workspace").is_some_and(|name| name != "main") {
        reading.copy_origin("workspace", "workspace");
    }
    reading.copy("tool_name", "tool_name");
    reading.copy("parameters", "tool_input");
    // The object has the same keys at every interception point. Skip keys that the event does not have.
    for field in ["attempt", "error"] {
        if kind.info().has_field(field) {
            reading.copy(field, field);
        }
    }
    // morphix writes `agent` for an agent without a role.
    let role = reading.get("role").filter(|role| *role != "agent");
    if role.is_some() && kind.info().has_field("role") {
        reading.copy("role", "role");
    }
    if kind == EventKind::PostToolUse {
        if let Some(result) = reading.get("result") {
            let content = text_content(text(result, "result")?);
            reading.set_in("result", "content", content)?;
        }
        if let Some(duration) = reading.get("duration") {
            let duration = milliseconds(duration)?;
            for field in ["duration_ms", "total_duration_ms"] {
                reading.payload.insert(field.to_owned(), duration.into());
            }
        }
    }
    Ok(())
}

fn milliseconds(seconds: &Value) -> Result<u64, ReadError> {
    let number = seconds.as_f64().filter(|number| *number >= 0.0);
    let number = number
        .ok_or_else(|| ReadError::invalid(format!("`duration` is {seconds}, expected seconds")))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is not negative, and casting a number that is too large saturates"
    )]
    let milliseconds = (number * 1e3).round() as u64;
    Ok(milliseconds)
}
