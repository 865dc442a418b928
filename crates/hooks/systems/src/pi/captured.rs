//! Reads back the events that handlers of pi get.

use tenterhook_engine::{EventKind, EventName, ReadError};

use super::event::{EVENTS, PiEvent};
use crate::form::definition::{Form, Substitute};
use crate::form::reading::Reading;
use crate::object;

pub(crate) static FORM: Form = Form {
    name: "pi",
    marks: &["type"],
    lacks: &[],
    keys: |kind| {
        let rows = EVENTS.iter().filter(|row| row.kind == kind);
        let keys = rows.flat_map(|row| row.fields.iter().map(|field| field.key));
        keys.chain(["turn"]).collect()
    },
    names: |event| {
        let kind = event.kind();
        let rows = EVENTS.iter().filter(|row| row.kind == kind);
        rows.map(|row| row.name).collect()
    },
    dialect: |event| {
        let row = EVENTS.iter().find(|row| row.kind == event.kind());
        row.map(PiEvent::dialect)
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
        (EventKind::SessionFork, "entry_id", Substitute::Text("")),
        (
            EventKind::SessionDirectoryResolve,
            "default_directory",
            Substitute::Text(""),
        ),
    ],
};

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let row = EVENTS.iter().find(|row| row.kind == event.kind());
    object::read(row.map_or(&[], |row| row.fields), reading)
}
