//! Reads Gemini CLI's events and writes the answers to them.

use serde_json::Value;
use tenterhook_engine::{ContentBlock, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, joined, renamed, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostCall, HostEvent, HostInput, HostMode};

/// Calls have no id.
static KEYS: Keys = Keys {
    tool_use_id: "",
    read: &[
        "cwd",
        "hook_event_name",
        "prompt",
        "last_assistant_message",
        "stop_hook_active",
        "tool_response",
        "source",
        "reason",
        "message",
        "notification_type",
    ],
    ..Keys::SNAKE_CASE
};

/// Reads an event. Gemini CLI does not say whether a person can be asked.
pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let object = renamed(
        input.object,
        &[("prompt_response", "last_assistant_message")],
    );
    let input = HostInput {
        object: &object,
        variables: input.variables,
    };
    let reader = EventReader::new(event, &input, &KEYS)?;
    reader.call(HostMode::Interactive, result)
}

/// Reads the result of a tool: what the model sees, what the person sees, and an error.
fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    let Some(Value::Object(response)) = reader.get("tool_response") else {
        return Err(ReadError::invalid(
            "`tool_response` is missing or not an object",
        ));
    };
    let get = |key: &str| response.get(key).filter(|value| !value.is_null());
    let content = get("llmContent").map(parts).unwrap_or_default();
    Ok(ToolResult::default()
        .with_content(content)
        .with_details(Some(response.clone()))
        .with_is_error(get("error").is_some()))
}

/// Reads content for the model: a text, a part, or a list of both.
fn parts(content: &Value) -> Vec<ContentBlock> {
    if let Some(parts_of_list) = content.as_array() {
        return parts_of_list.iter().flat_map(parts).collect();
    }
    let text = content.get("text").unwrap_or(content).as_str();
    let text = text.map_or_else(|| content.to_string(), str::to_owned);
    vec![ContentBlock::text(text)]
}

/// Writes an answer. Arguments are merged with the arguments of the call, so none can be removed.
pub(super) fn write(
    event: &HostEvent,
    input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::default();
    if let Some(reason) = stop_reason(verdict) {
        deny(&mut answer, reason);
    }
    if let Some(changed) = &verdict.input {
        let own = input.object.get("tool_input").and_then(Value::as_object);
        let mut keys = own.into_iter().flat_map(|own| own.keys());
        if keys.any(|key| !changed.contains_key(key)) {
            return Err(HostEffect::Rewrite);
        }
        answer.set_specific("tool_input", changed.clone());
    }
    if let Some(result) = &verdict.result {
        deny(&mut answer, &replacement(result, &verdict.context));
    } else if !verdict.context.is_empty() {
        answer.set_specific("additionalContext", joined(&verdict.context));
    }
    if !verdict.follow_up.is_empty() {
        deny(&mut answer, &joined(&verdict.follow_up));
    }
    answer.end_run(verdict);
    answer.notify(verdict);
    Ok(answer.print(event))
}

/// Returns the text that replaces a result. It also has the added texts, because Gemini CLI was not measured
/// with both.
fn replacement(result: &ToolResult, context: &[String]) -> String {
    let mut texts = vec![result.joined_text()];
    texts.extend_from_slice(context);
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() {
        // An empty reason would replace nothing.
        return "(empty)".to_owned();
    }
    joined(&texts)
}

fn deny(answer: &mut AnswerObject, reason: &str) {
    answer.set("decision", "deny");
    answer.set("reason", reason);
}
