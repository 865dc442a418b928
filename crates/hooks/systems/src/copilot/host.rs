//! Reads Copilot CLI's events and writes the answers to them. All keys of an answer are at its top.

use serde_json::{Value, json};
use tenterhook_engine::event::SessionSource;
use tenterhook_engine::{Decision, JsonObject, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, TEXT, joined, stop_reason};
use crate::form::reading;
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode};

static KEYS: Keys = Keys {
    session_id: "sessionId",
    tool_name: "toolName",
    tool_input: "toolArgs",
    tool_use_id: "",
    agent_id: "agentId",
    agent_type: "agentType",
    read: &[
        "cwd",
        "prompt",
        "toolResult",
        "error",
        "source",
        "trigger",
        "stop_hook_active",
        "message",
    ],
    sources: &[("new", SessionSource::Startup)],
};

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    reader.call(HostMode::Interactive, result)
}

/// Reads the result of a tool: a failure (`error`), or an object with the text for the model.
fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    if let Some(error) = reader.optional_text("error")? {
        return Ok(ToolResult::error(error));
    }
    let result = reading::object(reader.required("toolResult")?, "toolResult")?;
    let text = result.get("textResultForLlm").and_then(Value::as_str);
    let kind = result.get("resultType").and_then(Value::as_str);
    let text = text.unwrap_or_default();
    Ok(match kind {
        Some("success") | None => ToolResult::text(text),
        Some(_) => ToolResult::error(text),
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other hosts cannot honour every effect for every input"
)]
pub(super) fn write(
    event: &HostEvent,
    input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::default();
    if event.role == EventRole::ToolGate {
        gate(verdict, input.object, &mut answer);
    } else if let Some(reason) = stop_reason(verdict) {
        answer.block(reason);
    } else if event.role == EventRole::Stop && !verdict.follow_up.is_empty() {
        answer.block(&joined(&verdict.follow_up));
    }
    if let Some(prompt) = &verdict.prompt {
        answer.set("modifiedPrompt", prompt.as_str());
    }
    if let Some(result) = &verdict.result {
        let kind = input
            .object
            .get("toolResult")
            .and_then(|own| own.get("resultType"));
        let kind = kind.and_then(Value::as_str).unwrap_or("success");
        let text = result.joined_text();
        let replaced = json!({ "resultType": kind, "textResultForLlm": text });
        answer.set("modifiedResult", replaced);
    }
    if !verdict.context.is_empty() {
        answer.set("additionalContext", joined(&verdict.context));
    }
    Ok(answer.print(event))
}

fn gate(verdict: &HostVerdict, given: &JsonObject, answer: &mut AnswerObject) {
    let decision = match &verdict.decision {
        Decision::Stop { reason, .. } => Some(("deny", Some(reason))),
        Decision::Ask { reason, .. } => Some(("ask", Some(reason))),
        Decision::Proceed if verdict.is_allowed => Some(("allow", None)),
        Decision::Proceed => None,
    };
    if let Some((word, reason)) = decision {
        answer.set("permissionDecision", word);
        if let Some(reason) = reason {
            answer.set("permissionDecisionReason", reason.as_str());
        }
    }
    if let Some(input) = &verdict.input {
        // A tool without named arguments takes a text.
        let text = given.get(KEYS.tool_input).filter(|given| given.is_string());
        let text = text.and_then(|_| input.get(TEXT));
        match text {
            Some(text) => answer.set("modifiedArgs", text.clone()),
            None => answer.set("modifiedArgs", input.clone()),
        }
    }
}
