//! The event of a case: one tool call, or any event with its payload.

use serde::{Deserialize, Serialize};
use tenterhook_engine::{EventName, JsonObject};
use tenterhook_systems::form::{Form, FormError, ReadBack};

/// The event that a case sends to the hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseEvent {
    /// A tool call. It goes through all gates of a tool call, in their order.
    ToolCall {
        /// The tool's name.
        tool: String,
        /// Its arguments.
        input: JsonObject,
        /// The hook system whose names the call has. `None` if they are ours.
        system: Option<String>,
    },
    /// One event.
    Event {
        /// The name in the catalogue.
        event: EventName,
        /// The hook system in whose form the payload is. Without it, the keys of the payload decide.
        from: Option<String>,
        /// The hook system whose names the tool call in the payload has. `None` if the form decides.
        system: Option<String>,
        /// The payload that hooks receive.
        payload: JsonObject,
    },
}

/// Reads the event of a payload.
///
/// # Errors
/// Fails if the payload is not an event of this name in this form.
pub(crate) fn read_event(
    event: &EventName,
    from: Option<&str>,
    payload: &JsonObject,
) -> Result<ReadBack, FormError> {
    let form = match from.and_then(Form::by_name) {
        Some(form) => form,
        None => Form::recognise(event, payload)?,
    };
    form.read(event, payload)
}
