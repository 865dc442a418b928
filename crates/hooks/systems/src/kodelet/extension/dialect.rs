//! The dialect of kodelet's extensions.

use std::sync::Arc;

use tenterhook_engine::event::TurnEnd;
use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventRef, OnError, Origin, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::event::{EVENTS, ExtensionEvent};
use super::{read, write};
use crate::kodelet::tools::TOOLS;

/// The dialect.
#[derive(Debug)]
pub struct KodeletExtension;

impl KodeletExtension {
    /// Creates the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "callers use a dialect only as a trait object"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns the event with kodelet's name `name`.
    pub fn event(name: &str) -> Option<&'static ExtensionEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// Returns the `context` that tells an extension where a call comes from. Unknown values are left out.
    pub fn context(origin: &Origin) -> JsonObject {
        write::context(origin)
    }
}

impl Dialect for KodeletExtension {
    fn name(&self) -> &'static str {
        "kodelet-extension"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(event)
    }

    /// kodelet does not fire `turn.end` for a turn whose response is empty or only white space.
    fn has_event(&self, event: &EventRef) -> bool {
        event
            .downcast::<TurnEnd>()
            .is_none_or(|turn| !turn.response.trim().is_empty())
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(info, None, reply, strict)
    }

    /// Adding text before or after the system prompt requires the current prompt, which is in the event.
    fn read_answer(
        &self,
        event: &EventRef,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(event.info(), Some(event), reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        Some(&TOOLS)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => Policy::new(
                OnError::Block,
                "a gate without an answer lets nothing through",
            ),
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}
