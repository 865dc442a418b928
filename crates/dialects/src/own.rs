//! Our own payload: the fields of the event, side by side with those of its origin. It is what `tenterhook fire --json`
//! and `tenterhook run --output-format jsonl` print of an event.

use serde_json::{Value, json};
use tenterhook::{EventKind, EventName, ReadError};
use tenterhook_protocol::JsonObject;

use crate::form::{Form, Reading, has_field, is_open};

/// The key that names a recorded event.
pub(crate) const NAME_KEY: &str = "event";

/// Keys that say where an event comes from.
const ORIGIN_KEYS: &[&str] = &[
    "session_id",
    "cwd",
    "agent",
    "invoked_by",
    "workspace",
    "recipe",
];
/// Keys that a recorded event has and a new one gets afresh.
const STAMP_KEYS: &[&str] = &[NAME_KEY, "event_id", "sequence", "timestamp"];

pub(crate) static FORM: Form = Form {
    name: "tenterhook",
    marks: &[],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| vec![event.as_str()],
    dialect: |_| None,
    read,
    omits_zeros: false,
    not_carried: &[],
};

/// Says whether the keys of a recorded event stand beside those of the payload. An open payload may have keys of these
/// names for itself, but hardly the id of an event.
pub(crate) fn is_stamped(kind: EventKind, object: &JsonObject) -> bool {
    !is_open(kind) || object.contains_key("event_id")
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the readers of other forms can fail"
)]
fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    let mut payload = reading.object.clone();
    let mut origin = JsonObject::new();
    for key in ORIGIN_KEYS {
        // A field of the payload may have the name of one of these, and then is both.
        let value = if has_field(kind, key) {
            payload.get(*key).cloned()
        } else {
            payload.shift_remove(*key)
        };
        origin.extend(value.map(|value| ((*key).to_owned(), value)));
    }
    if let Some(agent @ Value::String(_)) = origin.get_mut("agent") {
        let name = agent.take();
        *agent = json!({ "name": name });
    }
    if is_stamped(kind, reading.object) {
        for key in STAMP_KEYS {
            payload.shift_remove(*key);
        }
    }
    reading.payload = payload;
    reading.origin = origin;
    Ok(())
}
