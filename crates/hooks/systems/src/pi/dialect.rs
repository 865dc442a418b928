//! The dialect of pi's extensions.

use std::sync::Arc;

use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::{AnyEffect, Run};

use super::event::{EVENTS, PiEvent};
use super::read;
use super::tools::TOOLS;
use crate::object::{self, Shape};

/// Events that exist only in versions of pi newer than the supported one, up to version 1.5.2. Tenterhook never fires
/// them.
const LATER_EVENTS: [&str; 9] = [
    "agent_before_settle",
    "before_provider_headers",
    "cache_warming_decision",
    "context_with_system",
    "mcp_servers_change",
    "project_trust",
    "provider_stream_event",
    "ui_prompt_end",
    "ui_prompt_start",
];

/// The dialect of the handlers of one of pi's events.
#[derive(Debug)]
pub struct Pi {
    event: &'static PiEvent,
}

impl Pi {
    /// Returns the event with pi's name `name`.
    pub fn event(name: &str) -> Option<&'static PiEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// Returns whether only a later version of pi has an event with this name.
    pub fn is_later_event(name: &str) -> bool {
        LATER_EVENTS.contains(&name)
    }
}

impl PiEvent {
    /// Returns the dialect of the handlers of this event.
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
            // pi runs handlers one after another. If the engine calls them in parallel, the worker uses
            // `turn` to keep the order.
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
        Some(&TOOLS)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) if info.kind == EventKind::PreToolUse => Policy::new(
                OnError::Block,
                "a handler of pi's `tool_call` that throws blocks the call",
            ),
            (None, EventClass::Gate) => Policy::new(
                OnError::Warn,
                "failing handlers of pi's other events do not stop anything",
            ),
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}
