//! The contract of Operator's hook files: functions of Python that get an event object and may return a result object.
//!
//! A worker makes the objects. What it is sent is the event's `type` and fields; what it answers is `null`, or
//! `{"class": "ToolCallEventResult", "fields": {...}}`.
//!
//! | result of | field | effect |
//! |---|---|---|
//! | `tool_call` | `block`, `reason` | stops the call |
//! | `tool_call` | `params` | the tool runs with these arguments and no others |
//! | `tool_result` | `content`, `is_error`, `terminate` | patch the result; later handlers see the patched one |
//! | `context` | `messages` | take the place of the messages; later handlers see them |
//! | `before_agent_start` | `system_prompt` | takes the place of the prompt, also when it is empty |
//! | `session_before_switch`, `session_before_fork`, `session_before_compact`, `session_before_tree` | `cancel` | stops it |
//! | `session_before_compact` | `compaction` | supplies the summary |
//! | `session_before_tree` | `summary`, `custom_instructions`, `replace_instructions`, `label` | supply and patch |
//! | `input` | `action` `transform` with `text`, or `handled` | changes the text; ends the input there |
//! | `message:receive` | `action` `transform` with `parts` or `text`, or `reject` with `reason` | changes the message; drops it |
//! | `message:send` | `parts` | are sent as well |
//! | `message_end` | `message` | takes the place of the message |
//! | `channel:connect` | `allow: false`, `reason` | keeps the channel out |
//! | `resources_discover` | `skill_paths`, `prompt_paths`, `theme_paths` | are looked at as well |
//! | any of these | an object of another class | failure |
//! | any other event | anything | none |

mod captured;
mod event;
mod part;
mod read;
mod tools;
mod write;

use std::sync::Arc;

use tenterhook::{
    Dialect, EventClass, EventInfo, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::AnyEffect;

pub(crate) use captured::FORM;
pub use event::{EVENTS, OperatorEvent};
pub(crate) use tools::TOOLS;

use crate::object::{self, Shape};

/// The dialect, as handlers of one of Operator's events speak it: some of them are the same event here.
#[derive(Debug)]
pub struct Operator {
    event: &'static OperatorEvent,
}

impl Operator {
    /// Returns the event that Operator knows by this name.
    pub fn event(name: &str) -> Option<&'static OperatorEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

impl OperatorEvent {
    /// Returns the dialect as handlers of this event speak it.
    pub fn dialect(&'static self) -> Arc<dyn Dialect> {
        Arc::new(Operator { event: self })
    }
}

impl Dialect for Operator {
    /// Two events that are one here have two names, so that each is written for itself.
    fn name(&self) -> &'static str {
        let OperatorEvent { written_as, .. } = self.event;
        written_as
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        let shape = Shape {
            dialect: "operator",
            name: self.event.name,
            kind: self.event.kind,
            fields: self.event.fields,
            turn: None,
        };
        object::write(&shape, event)
    }

    fn has_event(&self, event: &EventRef) -> bool {
        object::has(event)
    }

    fn read(
        &self,
        _info: &EventInfo,
        reply: &Reply<'_>,
        _strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(self.event, reply)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        crate::tools::of_dialect("operator")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => Policy::new(
                OnError::Warn,
                "Operator's handlers never stop it by failing",
            ),
            (None, EventClass::Observer) => Policy::new(OnError::Warn, "the event stops nothing"),
        }
    }
}
