//! Reads Cline's events and writes the answers to them.

use serde_json::{Map, Value, json};
use tenterhook_engine::{JsonObject, ReadError, ToolResult};

use super::input::normalised;
use crate::command_hook::{AnswerObject, EventReader, Keys, joined, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostCall, HostEvent, HostInput, HostMode};

static KEYS: Keys = Keys {
    read: &[
        "cwd",
        "prompt",
        "source",
        "agent_id",
        "duration_ms",
        "last_assistant_message",
    ],
    ..Keys::SNAKE_CASE
};

/// Values that are deeper in Cline's object, with the key that other hosts use for them.
const FIELDS: &[(&str, &str)] = &[
    ("/taskId", "session_id"),
    ("/sessionContext/rootSessionId", "session_id"),
    ("/workspaceInfo/rootPath", "cwd"),
    ("/workspaceRoots/0", "cwd"),
    ("/userPromptSubmit/prompt", "prompt"),
    ("/turn/outputText", "last_assistant_message"),
    ("/tool_result/durationMs", "duration_ms"),
];

/// Other values, which hooks find in the event's origin.
const EXTRA: &[&str] = &["taskId", "timestamp", "clineVersion", "iteration"];

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let whole = Value::Object(input.object.clone());
    let object = flattened(event, &whole);
    let input = HostInput {
        object: &object,
        variables: input.variables,
    };
    let reader = EventReader::new(event, &input, &KEYS)?;
    reader.call(HostMode::Interactive, |_| result(&whole))
}

/// Returns the event in the form of hosts without nested objects.
fn flattened(event: &HostEvent, whole: &Value) -> JsonObject {
    let mut object = Map::new();
    for (pointer, key) in FIELDS {
        if let Some(value) = whole.pointer(pointer).filter(|value| !value.is_null()) {
            object.insert((*key).to_owned(), value.clone());
        }
    }
    for key in EXTRA {
        if let Some(value) = whole.get(key) {
            object.insert((*key).to_owned(), value.clone());
        }
    }
    // The main agent has an id too, but no parent.
    if whole.get("parent_agent_id").is_some_and(Value::is_string) {
        let id = whole.get("agent_id").cloned().unwrap_or_default();
        object.insert("agent_id".to_owned(), id);
    }
    if let Some(call) = whole.get("tool_call").or_else(|| whole.get("tool_result")) {
        let get = |key: &str| call.get(key).cloned().unwrap_or_default();
        let name = get("name");
        let input = normalised(name.as_str().unwrap_or_default(), get("input"));
        object.insert("tool_use_id".to_owned(), get("id"));
        object.insert("tool_name".to_owned(), name);
        object.insert("tool_input".to_owned(), input);
    }
    if event.name == "TaskResume" {
        object.insert("source".to_owned(), "resume".into());
    }
    object
}

/// Reads the result of a tool: an object or a list of objects, each with its own success, or any other value.
fn result(whole: &Value) -> Result<ToolResult, ReadError> {
    let result = whole.get("tool_result");
    let result = result.ok_or_else(|| ReadError::invalid("`tool_result` is missing"))?;
    let output = result.get("output").unwrap_or(&Value::Null);
    let parts = output.as_array().map(Vec::as_slice);
    let parts = parts.unwrap_or(std::slice::from_ref(output));
    let texts: Vec<String> = parts.iter().map(part_text).collect();
    let has_failed = |part: &Value| part.get("success") == Some(&Value::Bool(false));
    let is_error = result.get("error").is_some_and(|error| !error.is_null());
    let details = json!({ "output": output });
    Ok(ToolResult::text(texts.join("\n"))
        .with_details(details.as_object().cloned())
        .with_is_error(is_error || parts.iter().any(has_failed)))
}

fn part_text(part: &Value) -> String {
    let text = part.get("result").unwrap_or(part);
    text.as_str()
        .map_or_else(|| text.to_string(), str::to_owned)
}

/// Writes an answer. Cline ends the turn when a hook cancels.
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
    let cancelled = stop_reason(verdict).or(verdict.stop_run.as_deref());
    if let Some(reason) = cancelled {
        answer.set("cancel", true);
        answer.set("errorMessage", reason);
        return Ok(answer.print(event));
    }
    if let Some(input) = &verdict.input {
        answer.set("cancel", false);
        answer.set("overrideInput", input.clone());
    }
    if !verdict.context.is_empty() {
        answer.set("cancel", false);
        answer.set("contextModification", joined(&verdict.context));
    }
    Ok(answer.print(event))
}
