//! Reads Factory droid's events and writes the answers to them.

use tenterhook_engine::{AgentRef, InvokedBy, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, content_of};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode};

static KEYS: Keys = Keys {
    tool_use_id: "",
    ..Keys::SNAKE_CASE
};

/// The key with the session that called a subagent.
const CALLER: &str = "calling_session_id";

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    let mut call = reader.call(HostMode::Interactive, result)?;
    // A subagent has a session of its own, and only the start of the session names the caller.
    if reader.optional_text(CALLER)?.is_some() {
        call.origin.agent = AgentRef::default().with_id(call.origin.session_id.as_str());
        call.origin.invoked_by = InvokedBy::Subagent;
    }
    Ok(call)
}

fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    let response = reader.required("tool_response")?;
    Ok(ToolResult::default().with_content(content_of(response)))
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
    let mut answer = AnswerObject::of(event, verdict);
    if event.role == EventRole::ToolGate {
        answer.judge(verdict);
    }
    answer.end_run(verdict);
    // On gates, an answer without a decision could replace the decision of another hook.
    if !event.role.is_gate() {
        answer.notify(verdict);
    }
    Ok(answer.print(event))
}
