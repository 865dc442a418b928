//! The dialect of Operator's hook files.

use std::sync::Arc;

use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventRef, OnError, Policy, ReadError, Reply, ToolNames,
    WriteError,
};
use tenterhook_protocol::AnyEffect;

use super::event::{EVENTS, OperatorEvent};
use super::read;
use super::tools::TOOLS;
use crate::object::{self, Shape};

/// The dialect of the handlers of one event. It depends on Operator's event, because two of Operator's
/// events can correspond to the same event of the catalogue.
#[derive(Debug)]
pub struct Operator {
    event: &'static OperatorEvent,
}

impl Operator {
    /// Returns the event with Operator's name `name`.
    pub fn event(name: &str) -> Option<&'static OperatorEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

impl OperatorEvent {
    /// Returns the dialect of the handlers of this event.
    pub fn dialect(&'static self) -> Arc<dyn Dialect> {
        Arc::new(Operator { event: self })
    }
}

impl Dialect for Operator {
    /// Two events of Operator that correspond to one event of the catalogue have different names, so that
    /// the engine writes each of them separately.
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
        Some(&TOOLS)
    }

    /// Operator awaits each handler before it calls the next one.
    fn sequence(&self) -> Option<&'static str> {
        Some("operator")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => Policy::new(
                OnError::Warn,
                "a failing Operator handler does not stop anything",
            ),
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}
