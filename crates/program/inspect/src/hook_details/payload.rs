//! Payloads and outputs without their secrets.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tenterhook_engine::EventRef;
use tenterhook_journal::Redactor;

/// The maximum size of a payload, in bytes. Of a larger one, only a note is kept.
const MAX_PAYLOAD: usize = 4 << 20;

/// Stands for a payload that is larger.
const TOO_LARGE: &str = r#"{"note":"a payload of more than 4 MiB is not kept"}"#;

/// Stands for the payload of a dispatch whose first steps were dropped.
const DROPPED: &str = r#"{"note":"the payload before the first hooks is no longer kept"}"#;

/// The maximum size of an output, in bytes. The rest is left out.
const MAX_OUTPUT: usize = 64 << 10;

/// Returns the payload of an event as JSON. The size is checked before the payload is copied.
pub(super) fn of_event(event: &EventRef) -> Option<Box<RawValue>> {
    let payload = event.payload().ok()?;
    let mut room = MAX_PAYLOAD;
    let fits = payload
        .iter()
        .all(|(name, value)| takes(&mut room, name.len()) && takes_value(&mut room, value));
    if fits {
        let mut payload = Value::Object(payload.clone());
        Redactor::shared().redact_value(&mut payload);
        let written = to_raw_value(&payload).ok()?;
        if written.get().len() <= MAX_PAYLOAD {
            return Some(written);
        }
    }
    note(TOO_LARGE)
}

/// Stands for a payload that was dropped to make room.
pub(super) fn dropped() -> Option<Box<RawValue>> {
    note(DROPPED)
}

/// Returns whether this is a note instead of a payload.
pub(super) fn is_note(payload: &RawValue) -> bool {
    [TOO_LARGE, DROPPED].contains(&payload.get())
}

fn note(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok()
}

/// Takes the least size of a value as JSON from `room`. Returns `false` if there is no room.
fn takes_value(room: &mut usize, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => takes(room, 1),
        Value::String(text) => takes(room, text.len()),
        Value::Array(items) => takes(room, 1) && items.iter().all(|item| takes_value(room, item)),
        Value::Object(fields) => {
            takes(room, 1)
                && fields
                    .iter()
                    .all(|(name, value)| takes(room, name.len()) && takes_value(room, value))
        }
    }
}

/// Takes a number of bytes from `room`. Returns `false` if there is no room.
fn takes(room: &mut usize, bytes: usize) -> bool {
    match room.checked_sub(bytes) {
        Some(rest) => {
            *room = rest;
            true
        }
        None => false,
    }
}

/// Returns the text of an output, and whether it was cut. Secrets are removed before it is cut, so no part of one is
/// left.
pub(super) fn of_output(bytes: &[u8]) -> (String, bool) {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    Redactor::shared().redact_text(&mut text);
    if text.len() <= MAX_OUTPUT {
        return (text, false);
    }
    text.truncate(text.floor_char_boundary(MAX_OUTPUT));
    (text, true)
}

/// Returns a text without its secrets.
pub(super) fn of_text(text: &str) -> String {
    Redactor::shared().redact(text).into_owned()
}
