//! Reads Kimi Code's events and writes the answers to them.

use serde_json::Value;
use tenterhook_engine::event::UserPromptSubmit;
use tenterhook_engine::{EventKind, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, content_of, joined, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode, HostedEvent};

static KEYS: Keys = Keys {
    tool_use_id: "tool_call_id",
    // Subagents have no ids.
    agent_id: "agent_name",
    agent_type: "agent_name",
    read: &[
        "cwd",
        "hook_event_name",
        "prompt",
        "tool_output",
        "error",
        "source",
        "trigger",
        "stop_hook_active",
        "message",
    ],
    ..Keys::SNAKE_CASE
};

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    if event.kind == EventKind::UserPromptSubmit {
        let prompt = UserPromptSubmit::new(prompt(reader.required("prompt")?));
        return reader.completed(HostMode::Interactive, HostedEvent::Other(Box::new(prompt)));
    }
    reader.call(HostMode::Interactive, result)
}

/// Returns the text of a prompt, which is a list of parts.
fn prompt(parts: &Value) -> String {
    let content = ToolResult::default().with_content(content_of(parts));
    content.joined_text()
}

/// Reads the result of a tool: a failure (`error`), or the output as a text.
fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    if let Some(error) = reader.get("error") {
        let content = content_of(error);
        return Ok(ToolResult::default()
            .with_content(content)
            .with_is_error(true));
    }
    let output = reader.required("tool_output")?;
    Ok(ToolResult::default().with_content(content_of(output)))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "other hosts cannot honour every effect for every input"
)]
pub(super) fn write(
    event: &HostEvent,
    _input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    if event.role == EventRole::ToolGate {
        let mut answer = AnswerObject::default();
        answer.judge(verdict);
        return Ok(answer.print(event));
    }
    if let Some(reason) = stop_reason(verdict) {
        return Ok(blocked(reason.to_owned()));
    }
    if event.role == EventRole::Stop && !verdict.follow_up.is_empty() {
        return Ok(blocked(joined(&verdict.follow_up)));
    }
    let mut answer = HostAnswer::default();
    if !verdict.context.is_empty() {
        answer.stdout = format!("{}\n", joined(&verdict.context));
    }
    Ok(answer)
}

/// Blocks by exit status, because Kimi Code ignores JSON on events other than tool calls.
fn blocked(reason: String) -> HostAnswer {
    HostAnswer {
        stdout: String::new(),
        stderr: reason + "\n",
        status: 2,
    }
}
