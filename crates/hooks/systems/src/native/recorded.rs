//! Our own payload: the fields of the event and the fields of its origin in one object.
//! `tenterhook fire --json` and `tenterhook run --output-format jsonl` print events in this form.

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventName, ReadError};
use tenterhook_protocol::JsonObject;

use crate::form::definition::Form;
use crate::form::reading::Reading;
use crate::take_key::take_key;

/// The key that names a recorded event.
pub(crate) const NAME_KEY: &str = "event";

/// The keys of the origin, which say where an event comes from.
const ORIGIN_KEYS: &[&str] = &[
    "session_id",
    "cwd",
    "agent",
    "invoked_by",
    "workspace",
    "recipe",
    "origin_extra",
];
/// Keys of a recorded event that are dropped, because a new event gets new values for them.
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

/// Returns whether the object has the keys of a recorded event in addition to the payload. An open
/// payload may have keys with these names, but is unlikely to have `event_id`.
pub(crate) fn is_stamped(kind: EventKind, object: &JsonObject) -> bool {
    !kind.info().has_open_payload() || object.contains_key("event_id")
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with the readers of other forms, which can fail"
)]
fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    let mut payload = reading.object.clone();
    let mut origin = JsonObject::new();
    for key in ORIGIN_KEYS {
        // If the payload has a field with the same name, the value is used for both.
        let value = if kind.info().has_field(key) {
            payload.get(*key).cloned()
        } else {
            take_key(&mut payload, key)
        };
        origin.extend(value.map(|value| ((*key).to_owned(), value)));
    }
    if let Some(agent @ Value::String(_)) = origin.get_mut("agent") {
        let name = agent.take();
        *agent = json!({ "name": name });
    }
    if is_stamped(kind, reading.object) {
        for key in STAMP_KEYS {
            take_key(&mut payload, key);
        }
    }
    reading.payload = payload;
    reading.origin = origin;
    Ok(())
}
