//! The contract of morphix's hooks: functions of Python that get a context object and return nothing that counts.
//!
//! A worker makes the object. What it is sent is the object's fields; what it answers is `null`, or
//! `{"parameters": {...}}` where a handler of `on_before_tool` has changed the arguments in place: the tool runs with
//! them then.
//!
//! | morphix | event |
//! |---|---|
//! | `on_before_tool` | `pre_tool_use` |
//! | `on_after_tool` | `post_tool_use` of a call that succeeded |
//! | `on_tool_error` | `tool_error` |
//! | `on_permission_denied` | `permission_denied` |
//! | `on_token_budget_exceeded` | `token_budget_exceeded` |
//! | `on_tools_disabled` | `tools_disabled` |

mod captured;
mod tools;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook::event::PostToolUse;
use tenterhook::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use crate::returned;

pub(crate) use captured::FORM;
pub(crate) use tools::TOOLS;

/// An interception point of morphix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MorphixEvent {
    /// What morphix calls it.
    pub name: &'static str,
    /// What it is called here.
    pub kind: EventKind,
}

const fn point(name: &'static str, kind: EventKind) -> MorphixEvent {
    MorphixEvent { name, kind }
}

/// The interception points of morphix.
pub const EVENTS: &[MorphixEvent] = &[
    point("on_before_tool", EventKind::PreToolUse),
    point("on_after_tool", EventKind::PostToolUse),
    point("on_tool_error", EventKind::ToolError),
    point("on_permission_denied", EventKind::PermissionDenied),
    point("on_token_budget_exceeded", EventKind::TokenBudgetExceeded),
    point("on_tools_disabled", EventKind::ToolsDisabled),
];

/// The dialect.
#[derive(Debug)]
pub struct Morphix;

impl Morphix {
    /// Makes the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a dialect is of use only as one among others"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns the interception point that morphix knows by this name.
    pub fn event(name: &str) -> Option<&'static MorphixEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

/// What the worker says of a context that a handler has changed.
#[derive(Deserialize)]
struct Changed {
    parameters: JsonObject,
}

impl Dialect for Morphix {
    fn name(&self) -> &'static str {
        "morphix"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        let kind = event.info().kind;
        let row = EVENTS.iter().find(|row| row.kind == kind);
        let row = row.ok_or_else(|| WriteError::NoSuchEvent {
            dialect: "morphix",
            event: event.event().name().to_owned(),
        })?;
        let payload = event.payload()?;
        let origin = &event.envelope().origin;
        let get = |key: &str| payload.get(key);
        let context = json!({
            "hook_point": row.name,
            "tool_name": get("tool_name"),
            "parameters": get("tool_input"),
            "role": get("role").and_then(Value::as_str).unwrap_or("agent"),
            "result": result(event),
            "error": get("error"),
            "duration": seconds(payload),
            "attempt": get("attempt").and_then(Value::as_u64).unwrap_or(1).max(1),
            "workspace": origin.workspace.as_deref().unwrap_or("main"),
            "session_id": origin.session_id,
        });
        serde_json::to_vec(&context).map_err(WriteError::Payload)
    }

    /// morphix tells nobody of a result that is no success.
    fn has_event(&self, event: &EventRef) -> bool {
        event
            .downcast::<PostToolUse>()
            .is_none_or(|event| !event.blocked && !event.result.is_error)
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        _strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        let changed: Option<Changed> = returned::parse(reply)?;
        let mut effect = AnyEffect::default();
        if let Some(Changed { parameters }) = changed.filter(|_| info.kind == EventKind::PreToolUse)
        {
            effect
                .rewrite
                .insert("whole_input".to_owned(), parameters.into());
        }
        Ok(effect)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        crate::tools::of_dialect("morphix")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => {
                Policy::new(OnError::Warn, "morphix's hooks never break a call")
            }
            (None, EventClass::Observer) => Policy::new(OnError::Warn, "the event stops nothing"),
        }
    }
}

/// Returns what a tool gave back, as text.
fn result(event: &EventRef) -> Option<String> {
    let event = event.downcast::<PostToolUse>()?;
    Some(event.result.joined_text())
}

/// Returns how long the call took with all its attempts, in seconds.
fn seconds(payload: &JsonObject) -> f64 {
    let of = |key: &str| payload.get(key).and_then(Value::as_f64).unwrap_or_default();
    of("total_duration_ms").max(of("duration_ms")) / 1e3
}
