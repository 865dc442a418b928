//! Reads back events that a coding agent sent to its hooks.
//!
//! The forms of agents resemble one another, so none is recognised by its keys. The caller names the agent.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{EventKind, EventName, JsonObject, ToolCall, parse_event};

use super::definition::Form;
use super::recognition::{FormError, ReadBack, forms};
use crate::HOSTS;
use crate::host::{EventRole, HostAgent, HostEvent, HostInput, HostedEvent};

/// The key by which most agents name their events.
const NAME_KEY: &str = "hook_event_name";

/// Returns the names of all forms in which an event can be read, also of those that are never recognised.
pub fn readable_forms() -> impl Iterator<Item = &'static str> {
    let hosts = HOSTS.iter().map(|host| host.name);
    let hosts = hosts.filter(|name| host_of_form(name).is_some());
    forms().map(|form| form.name).chain(hosts)
}

/// Returns the agent whose events have the form with this name. `None` if a hook system has a form of that name.
pub fn host_of_form(name: &str) -> Option<&'static HostAgent> {
    let host = HostAgent::by_name(name)?;
    Form::by_name(name).is_none().then_some(host)
}

impl HostAgent {
    /// Reads an event that the agent sent to a hook.
    ///
    /// # Errors
    /// Fails if the agent has no such event, the object names a different event, or a value is invalid.
    pub fn read_back(&self, event: &EventName, object: &JsonObject) -> Result<ReadBack, FormError> {
        let invalid = |problem: String| FormError::Invalid {
            form: self.name,
            event: event.to_string(),
            problem,
            fields: Vec::new(),
        };
        let own = self.own_events(event, object)?;
        let input = HostInput {
            object,
            variables: &[],
        };
        // Several events of an agent may be one event of the catalogue.
        let mut calls = own.into_iter().map(|own| (self.read)(own, &input));
        let first = calls
            .next()
            .ok_or_else(|| invalid("no such event".to_owned()))?;
        let call = first.or_else(|error| calls.find_map(Result::ok).ok_or(error));
        let call = call.map_err(|error| invalid(error.to_string()))?;
        let payload = payload(event.kind(), call.event).map_err(invalid)?;
        let read = parse_event(event, Value::Object(payload));
        Ok(ReadBack {
            event: read.map_err(|error| invalid(error.to_string()))?,
            origin: call.origin,
            tools: Some(Arc::new(self.tools.clone())),
        })
    }

    /// Returns the agent's events that the object may be and that correspond to `event`: at least one.
    fn own_events(
        &self,
        event: &EventName,
        object: &JsonObject,
    ) -> Result<Vec<&'static HostEvent>, FormError> {
        let kind = event.kind();
        let own: Vec<_> = self.events.iter().filter(|own| is_for(own, kind)).collect();
        if own.is_empty() {
            let kinds = EventKind::ALL.iter().copied();
            let has = |kind: &EventKind| self.events.iter().any(|own| is_for(own, *kind));
            return Err(FormError::NoSuchEvent {
                form: self.name,
                event: event.to_string(),
                available: kinds.filter(has).map(|kind| kind.info().name).collect(),
            });
        }
        let Some(found) = object.get(NAME_KEY) else {
            return Ok(own);
        };
        let named = own.iter().find(|own| found == own.name);
        named
            .map(|own| vec![*own])
            .ok_or_else(|| FormError::OtherEvent {
                form: self.name,
                key: NAME_KEY,
                found: found
                    .as_str()
                    .map_or_else(|| found.to_string(), str::to_owned),
                event: event.to_string(),
                expected: own.iter().map(|own| own.name.to_owned()).collect(),
            })
    }
}

/// Returns whether an event of an agent is an event of the catalogue. A call that hooks may stop also passes the
/// guards of tools.
fn is_for(own: &HostEvent, kind: EventKind) -> bool {
    own.kind == kind || own.role == EventRole::ToolGate && kind == EventKind::ToolGuard
}

/// Returns the payload of an event of the catalogue.
fn payload(kind: EventKind, event: HostedEvent) -> Result<JsonObject, String> {
    match event {
        HostedEvent::ToolCall(call) => of_call(kind, call),
        HostedEvent::ToolResult {
            call,
            result,
            duration_ms,
        } => {
            let mut payload = of_call(kind, call)?;
            let result = serde_json::to_value(result).map_err(|error| error.to_string())?;
            payload.insert("result".to_owned(), result);
            for field in ["duration_ms", "total_duration_ms"] {
                payload.insert(field.to_owned(), duration_ms.unwrap_or(0).into());
            }
            Ok(payload)
        }
        HostedEvent::Other(event) => event.payload().map_err(|error| error.to_string()),
        HostedEvent::Repeated => Err("the agent only repeats an earlier event".to_owned()),
    }
}

fn of_call(kind: EventKind, call: ToolCall) -> Result<JsonObject, String> {
    if !call.arguments.is_object() {
        return Err("the arguments of the tool are missing or not an object".to_owned());
    }
    let fields = [
        ("tool_name", json!(call.name)),
        ("tool_input", call.arguments),
        ("tool_use_id", json!(call.id)),
    ];
    let fields = fields.into_iter();
    let fields = fields.filter(|(name, _)| kind.info().has_field(name));
    Ok(fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect())
}
