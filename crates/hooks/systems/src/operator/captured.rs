//! Reads back the events that handlers of Operator get.

use serde_json::Value;
use tenterhook_engine::{EventKind, EventName, ReadError};

use super::event::{EVENTS, OperatorEvent};
use crate::form::definition::{Form, Substitute};
use crate::form::reading::Reading;
use crate::object;

pub(crate) static FORM: Form = Form {
    name: "operator",
    marks: &["type"],
    lacks: &[],
    keys: |kind| {
        let rows = EVENTS.iter().filter(|row| row.kind == kind);
        rows.flat_map(|row| row.fields.iter().map(|field| field.key))
            .collect()
    },
    names: |event| {
        let kind = event.kind();
        let rows = EVENTS.iter().filter(|row| row.kind == kind);
        rows.map(|row| row.name).collect()
    },
    dialect: |event| {
        let row = EVENTS.iter().find(|row| row.kind == event.kind());
        row.map(OperatorEvent::dialect)
    },
    read,
    omits_zeros: false,
    not_carried: &[
        (
            EventKind::BeforeCompaction,
            "reason",
            Substitute::Text("threshold"),
        ),
        (
            EventKind::AfterCompaction,
            "reason",
            Substitute::Text("threshold"),
        ),
        (EventKind::AfterCompaction, "summary", Substitute::Text("")),
        (
            EventKind::SubagentStop,
            "child_session_id",
            Substitute::Text(""),
        ),
        (
            EventKind::SubagentStop,
            "parent_session_id",
            Substitute::Text(""),
        ),
    ],
};

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    // Two events of Operator can correspond to the same event of the catalogue. `type` says which one it is.
    let named = reading.get("type").and_then(Value::as_str);
    let mut rows = EVENTS.iter().filter(|row| row.kind == event.kind());
    let first = rows.clone().next();
    let row = rows.find(|row| Some(row.name) == named).or(first);
    object::read(row.map_or(&[], |row| row.fields), reading)
}
