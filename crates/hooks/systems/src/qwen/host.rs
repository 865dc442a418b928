//! Reads Qwen Code's events and writes the answers to them.

use serde_json::Value;
use tenterhook_engine::{EventKind, JsonObject, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, content_of};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode, HostedEvent};

static KEYS: Keys = Keys::SNAKE_CASE;

/// The tool that calls another one, which the model has looked up.
const WRAPPER: &str = "tool_call";

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    let mut call = reader.call(HostMode::Interactive, result)?;
    if is_repeated(event, &reader) {
        call.event = HostedEvent::Repeated;
    }
    if let HostedEvent::ToolCall(call) | HostedEvent::ToolResult { call, .. } = &mut call.event
        && call.name == WRAPPER
    {
        let (name, arguments) = wrapped(&call.arguments).ok_or_else(|| {
            // A guard for the tool inside would not match the wrapper.
            let text = "`tool_call` does not have a `name` and an object `arguments`";
            ReadError::invalid(text)
        })?;
        call.name = name;
        call.arguments = arguments.into();
    }
    Ok(call)
}

/// Returns whether the event is a turn of the model after the first one for a prompt: Qwen Code announces
/// it with an empty prompt.
fn is_repeated(event: &HostEvent, reader: &EventReader<'_>) -> bool {
    event.kind == EventKind::UserPromptSubmit
        && reader.get("submitted_prompt").is_none()
        && reader.get("prompt").is_some_and(|prompt| prompt == "")
}

/// Returns the call inside a call of the wrapper.
fn wrapped(arguments: &Value) -> Option<(String, JsonObject)> {
    let name = arguments.get("name")?.as_str()?;
    let input = arguments.get("arguments")?.as_object()?;
    Some((name.to_owned(), input.clone()))
}

/// Reads the result of a tool: a failure (`error`), or an object with the content for the model.
fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    if let Some(error) = reader.optional_text("error")? {
        return Ok(ToolResult::error(error));
    }
    let response = reader.required("tool_response")?;
    let content = response.get("llmContent").unwrap_or(response);
    Ok(ToolResult::default()
        .with_content(content_of(content))
        .with_details(response.as_object().cloned()))
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
    // On gates, an answer without a decision could replace the decision of another hook.
    if !event.role.is_gate() {
        answer.notify(verdict);
    }
    Ok(answer.print(event))
}
