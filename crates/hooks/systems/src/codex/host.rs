//! Reads Codex's events and writes the answers to them.

use serde_json::json;
use tenterhook_engine::{EventKind, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, content_of, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode};

static KEYS: Keys = Keys::SNAKE_CASE;

/// The permission mode in which Codex never asks.
const NEVER_ASKS: &str = "bypassPermissions";

/// The reason if the new result is empty: Codex ignores a block without one.
const REMOVED: &str = "(a hook removed the result)";

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    reader.call(HostMode::Interactive, result)
}

fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    let response = reader.required("tool_response")?;
    Ok(ToolResult::default().with_content(content_of(response)))
}

pub(super) fn write(
    event: &HostEvent,
    input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::default();
    if event.kind == EventKind::PreCompact {
        // This event knows no block.
        if let Some(reason) = stop_reason(verdict) {
            answer.set("continue", false);
            answer.set("stopReason", reason);
        }
        return Ok(answer.print(event));
    }
    if event.kind == EventKind::PermissionRequest {
        permission(verdict, &mut answer)?;
        return Ok(answer.print(event));
    }
    let mut answer = AnswerObject::of(event, verdict);
    if event.role == EventRole::ToolGate {
        gate(input, verdict, &mut answer)?;
    } else if let Some(result) = &verdict.result {
        // In a script of the model (code mode), the block throws with the changed result as its text. Codex has no answer
        // that returns it, and the tool's own result may have a secret.
        let text = result.joined_text();
        let is_blank = text.trim().is_empty();
        answer.block(if is_blank { REMOVED } else { &text });
    }
    answer.end_run(verdict);
    // A message is written only alone, because Codex drops an answer with a field that is not expected.
    if answer.is_empty() && event.role != EventRole::ToolGate {
        answer.notify(verdict);
    }
    Ok(answer.print(event))
}

/// Answers before a tool call. Codex accepts changed arguments only together with an approval, and an
/// approval only together with changed arguments.
fn gate(
    input: &HostInput<'_>,
    verdict: &HostVerdict,
    answer: &mut AnswerObject,
) -> Result<(), HostEffect> {
    let never_asks = input
        .object
        .get("permission_mode")
        .is_some_and(|mode| mode == NEVER_ASKS);
    match (&verdict.input, verdict.is_allowed) {
        (Some(_), false) if !never_asks => return Err(HostEffect::Rewrite),
        (None, true) => return Err(HostEffect::Allow),
        _ => {}
    }
    answer.judge(verdict);
    if verdict.input.is_some() {
        answer.set_specific("permissionDecision", "allow");
    }
    Ok(())
}

/// Answers a question to the person. Without an answer, Codex asks.
fn permission(verdict: &HostVerdict, answer: &mut AnswerObject) -> Result<(), HostEffect> {
    if let Some(reason) = stop_reason(verdict) {
        answer.set_specific("decision", json!({ "behavior": "deny", "message": reason }));
    } else if verdict.input.is_some() {
        return Err(HostEffect::Rewrite);
    } else if verdict.is_allowed {
        answer.set_specific("decision", json!({ "behavior": "allow" }));
    }
    Ok(())
}
