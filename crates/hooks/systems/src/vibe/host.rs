//! Reads Mistral Vibe's events and writes the answers to them.

use serde_json::Value;
use tenterhook_engine::{InvokedBy, JsonObject, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, joined, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostCall, HostEvent, HostInput, HostMode};

static KEYS: Keys = Keys {
    tool_use_id: "tool_call_id",
    read: &[
        "cwd",
        "hook_event_name",
        "tool_status",
        "tool_output",
        "tool_output_text",
        "tool_error",
        "duration_ms",
        "parent_session_id",
    ],
    ..Keys::SNAKE_CASE
};

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    let mut call = reader.call(HostMode::Interactive, result)?;
    if reader.get("parent_session_id").is_some() {
        call.origin.invoked_by = InvokedBy::Subagent;
    }
    Ok(call)
}

fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    let text = reader
        .optional_text("tool_output_text")?
        .unwrap_or_default();
    let details = reader.get("tool_output").and_then(Value::as_object);
    Ok(ToolResult::text(text)
        .with_details(details.cloned())
        .with_is_error(reader.optional_text("tool_status")? != Some("success")))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with hosts that cannot write every verdict"
)]
pub(super) fn write(
    event: &HostEvent,
    _input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::default();
    let denied = if verdict.follow_up.is_empty() {
        let replaced = verdict.result.as_ref().map(ToolResult::joined_text);
        stop_reason(verdict).map(str::to_owned).or(replaced)
    } else {
        Some(joined(&verdict.follow_up))
    };
    if let Some(reason) = denied {
        answer.set("decision", "deny");
        // Mistral Vibe replaces an empty reason by a text of its own.
        answer.set(
            "reason",
            if reason.is_empty() {
                "(empty)"
            } else {
                &reason
            },
        );
    }
    let mut specific = JsonObject::new();
    if let Some(input) = &verdict.input {
        specific.insert("tool_input".to_owned(), input.clone().into());
    }
    if !verdict.context.is_empty() {
        let context = joined(&verdict.context);
        specific.insert("additional_context".to_owned(), context.into());
    }
    if !specific.is_empty() {
        answer.set("hook_specific_output", specific);
    }
    if !verdict.notices.is_empty() {
        answer.set("system_message", verdict.notices.join("\n"));
    }
    Ok(answer.print(event))
}
