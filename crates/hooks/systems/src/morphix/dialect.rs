//! The dialect of morphix's hooks.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::event::PostToolUse;
use tenterhook_engine::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::event::{EVENTS, MorphixEvent};
use super::tools::TOOLS;
use crate::returned;

/// The dialect.
#[derive(Debug)]
pub struct Morphix;

impl Morphix {
    /// Creates the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "callers use a dialect only as a trait object"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns morphix's interception point with this name.
    pub fn event(name: &str) -> Option<&'static MorphixEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

/// The worker's report about a context that a handler changed.
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

    /// morphix calls its hooks only for successful results.
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
        Some(&TOOLS)
    }

    /// morphix awaits each handler before it calls the next one.
    fn sequence(&self) -> Option<&'static str> {
        Some("morphix")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => {
                Policy::new(OnError::Warn, "morphix's hooks never break a call")
            }
            (None, EventClass::Observer) => {
                Policy::new(OnError::Warn, "hooks cannot stop this event")
            }
        }
    }
}

/// Returns the result of a tool as text.
fn result(event: &EventRef) -> Option<String> {
    let event = event.downcast::<PostToolUse>()?;
    Some(event.result.joined_text())
}

/// Returns how long the call took including all attempts, in seconds.
fn seconds(payload: &JsonObject) -> f64 {
    let of = |key: &str| payload.get(key).and_then(Value::as_f64).unwrap_or_default();
    of("total_duration_ms").max(of("duration_ms")) / 1e3
}
