//! The contract of pi's extensions: functions of JavaScript or TypeScript that get an event object and may return a result object.
//!
//! A worker makes the objects. What it is sent is the event's `type` and fields; what it answers is `null`, or `{"result": …, "changed": {…}}`: what the
//! handler returned, and the fields of the event that it changed in place.
//!
//! | result of | field | effect |
//! |---|---|---|
//! | `tool_call` | `block`, `reason` | stops the call |
//! | `tool_call` | `event.input`, changed in place | the tool runs with these arguments; they are judged again |
//! | `tool_result` | `content`, `details`, `isError` | patch the result; later handlers see the patched one |
//! | `input` | `action` `transform` with `text`, `images`, or `handled` | changes the input; ends it there |
//! | `before_agent_start` | `systemPrompt`, `message` | takes the place of the prompt; adds a message |
//! | `context` | `messages`, returned or changed in place | take the place of the messages for this call of the model |
//! | `before_provider_request` | anything but nothing | takes the place of the request |
//! | `message_end` | `message` | takes the place of the message |
//! | `session_before_switch`, `session_before_fork`, `session_before_compact`, `session_before_tree` | `cancel` | stops it |
//! | `session_before_fork` | `skipConversationRestore` | patches it |
//! | `session_before_compact` | `compaction.summary` | supplies the summary |
//! | `session_before_tree` | `summary.summary`, `customInstructions`, `replaceInstructions`, `label` | supply and patch |
//! | `user_bash` | `result` | stands for the command's |
//! | `resources_discover` | `skillPaths`, `promptPaths`, `themePaths` | are looked at as well |
//! | `session_directory` | `sessionDir` | takes the place of the directory |
//! | any of these | what is no object | failure |
//! | any other event | anything | none |

mod captured;
mod event;
mod message;
mod read;
mod tool;
mod tools;
mod write;

use std::sync::Arc;

use tenterhook::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::{AnyEffect, Run};

pub(crate) use captured::FORM;
pub use event::{EVENTS, PiEvent};
pub use tool::{name as tool_name, own_name as own_tool_name};
pub(crate) use tools::TOOLS;
pub use write::entry;

use crate::object::{self, Shape};

/// Events of versions of pi after the one whose documents are followed. They never happen here.
const LATER_EVENTS: [&str; 2] = ["before_provider_headers", "project_trust"];

/// The dialect, as handlers of one of pi's events speak it.
#[derive(Debug)]
pub struct Pi {
    event: &'static PiEvent,
}

impl Pi {
    /// Returns the event that pi knows by this name.
    pub fn event(name: &str) -> Option<&'static PiEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// Says whether a later version of pi has an event of this name.
    pub fn is_later_event(name: &str) -> bool {
        LATER_EVENTS.contains(&name)
    }
}

impl PiEvent {
    /// Returns the dialect as handlers of this event speak it.
    pub fn dialect(&'static self) -> Arc<dyn Dialect> {
        Arc::new(Pi { event: self })
    }
}

impl Dialect for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        let shape = Shape {
            dialect: "pi",
            name: self.event.name,
            kind: self.event.kind,
            fields: self.event.fields,
            // In pi handlers run one after another; the worker sees to it where the engine calls them at once.
            turn: (event.info().run == Run::Parallel)
                .then(|| event.envelope().event_id().to_string()),
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
        crate::tools::of_dialect("pi")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) if info.kind == EventKind::PreToolUse => Policy::new(
                OnError::Block,
                "a handler of pi's `tool_call` that throws blocks",
            ),
            (None, EventClass::Gate) => Policy::new(
                OnError::Warn,
                "pi's handlers of other events never stop it by failing",
            ),
            (None, EventClass::Observer) => Policy::new(OnError::Warn, "the event stops nothing"),
        }
    }
}
