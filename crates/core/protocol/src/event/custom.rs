//! Events that a host defines.

use std::any::Any;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::JsonObject;
use crate::capability::{Capabilities, Capability};
use crate::catalogue::{
    self, AnyEvent, Event, EventClass, EventInfo, GateEvent, RewriteError, RewriteInfo,
    RewriteMode, Run,
};
use crate::event_kind::EventKind;
use crate::event_macro;
use crate::honours;
use crate::id::CustomName;
use crate::rewritable::patch_payload;

/// The payload field that matchers of a user-defined event look at.
const SUBJECT: &str = "subject";

/// An event that a host defines. Its name has the form `x-<vendor>.<name>`.
///
/// The host declares whether it is a gate or an observer event. Matchers look at the payload field
/// `subject` if it is a string.
///
/// ```
/// use tenterhook_protocol::event::Custom;
///
/// let deploy = Custom::gate("x-acme.deploy".parse()?).subject("production");
/// # Ok::<(), tenterhook_protocol::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Custom {
    /// The event's name.
    pub name: CustomName,
    /// Whether hooks can stop what the event announces. The default in JSON is `gate`.
    #[serde(default = "gate")]
    pub class: EventClass,
    /// The payload. Hooks may change its top-level keys, except `extra`.
    #[serde(default)]
    pub payload: JsonObject,
}

fn gate() -> EventClass {
    EventClass::Gate
}

impl Custom {
    /// Creates an event that hooks can stop.
    pub fn gate(name: CustomName) -> Self {
        Self {
            name,
            class: EventClass::Gate,
            payload: JsonObject::new(),
        }
    }

    /// Creates an event that hooks can only watch.
    pub fn observer(name: CustomName) -> Self {
        Self {
            class: EventClass::Observer,
            ..Self::gate(name)
        }
    }

    /// Adds a field to the payload.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.payload.insert(field.into(), value.into());
        self
    }

    /// Adds a value to the payload's `extra`, which no hook can change. Replaces an earlier value
    /// with the same key.
    #[must_use]
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        catalogue::add_extra_to_open(&mut self.payload, key.into(), value.into());
        self
    }

    /// Sets the text that matchers look at: the field `subject` of the payload.
    #[must_use]
    pub fn subject(self, subject: impl Into<String>) -> Self {
        self.with(SUBJECT, subject.into())
    }
}

/// The catalogue row of user-defined gate events.
const GATE: EventInfo = EventInfo {
    kind: EventKind::Custom,
    name: "x-<vendor>.<name>",
    class: EventClass::Gate,
    fields: None,
    run: Run::Series,
    precedes_model: true,
    subject: Some(SUBJECT),
    capabilities: Capabilities::of(&[
        Capability::Permission,
        Capability::Block,
        Capability::Context,
        Capability::StopRun,
    ]),
    rewrites: &[RewriteInfo {
        field: patch_payload::FIELD,
        target: "payload",
        mode: RewriteMode::Merge,
        is_result: false,
    }],
    collects: &[],
    supplies: None,
};

/// The catalogue row of user-defined observer events.
static OBSERVER: EventInfo = EventInfo {
    class: EventClass::Observer,
    capabilities: Capabilities::of(&[Capability::Context, Capability::StopRun]),
    ..GATE
};

impl catalogue::private::Sealed for Custom {}

impl Event for Custom {
    const INFO: &'static EventInfo = &GATE;
}

impl GateEvent for Custom {}
impl honours::Permission for Custom {}
impl honours::Block for Custom {}
impl honours::Context for Custom {}
impl honours::StopRun for Custom {}
impl patch_payload::Rewritable for Custom {}

impl AnyEvent for Custom {
    fn info(&self) -> &'static EventInfo {
        match self.class {
            EventClass::Gate => Self::INFO,
            EventClass::Observer => &OBSERVER,
        }
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn subject(&self) -> Option<&str> {
        self.payload.get(SUBJECT)?.as_str()
    }

    fn extra(&self) -> Option<&JsonObject> {
        catalogue::extra_of_open(&self.payload)
    }

    fn payload(&self) -> Result<JsonObject, serde_json::Error> {
        Ok(self.payload.clone())
    }

    fn rewrite(&mut self, field: &str, value: Value) -> Result<(), RewriteError> {
        match field {
            patch_payload::FIELD if value.get(catalogue::EXTRA).is_some() => {
                Err(RewriteError::UnknownField {
                    event: self.name.to_string(),
                    field: format!("{field}.{}", catalogue::EXTRA),
                })
            }
            patch_payload::FIELD => event_macro::merge(&mut self.payload, field, value),
            _ => Err(RewriteError::UnknownField {
                event: self.name.to_string(),
                field: field.to_owned(),
            }),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn boxed_clone(&self) -> Box<dyn AnyEvent> {
        Box::new(self.clone())
    }
}
