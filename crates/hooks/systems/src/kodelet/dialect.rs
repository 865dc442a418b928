//! The dialect of kodelet's hooks.

use std::sync::Arc;

use tenterhook_engine::event::TurnEnd;
use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::AnyEffect;

use super::event::{EVENTS, KodeletEvent};
use super::tools::TOOLS;
use super::{read, write};

/// The dialect.
#[derive(Debug)]
pub struct Kodelet;

impl Kodelet {
    /// Creates the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "callers use a dialect only as a trait object"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns the event with kodelet's name `name`.
    pub fn event(name: &str) -> Option<&'static KodeletEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

impl Dialect for Kodelet {
    fn name(&self) -> &'static str {
        "kodelet"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(event)
    }

    /// kodelet does not fire `turn_end` for a turn whose response has no text.
    fn has_event(&self, event: &EventRef) -> bool {
        event
            .downcast::<TurnEnd>()
            .is_none_or(|turn| !turn.response.is_empty())
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(info, reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        Some(&TOOLS)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => {
                Policy::new(OnError::Block, "kodelet's gates are security controls")
            }
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}
