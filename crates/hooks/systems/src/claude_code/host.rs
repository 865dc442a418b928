//! Reads Claude Code's events and writes the answers to them.

use serde_json::{Value, json};
use tenterhook_engine::{ContentBlock, EventKind, JsonObject, ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, content_of, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostCall, HostEvent, HostInput, HostMode};

/// How the session was started: `cli` at a terminal, `sdk-cli`, `sdk-ts` and so on without one.
const ENTRY_POINT: &str = "CLAUDE_CODE_ENTRYPOINT";
/// `0` if no person attends the session.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

pub(super) const VARIABLES: &[&str] = &[ENTRY_POINT, ATTENDED];

static KEYS: Keys = Keys::SNAKE_CASE;

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    reader.call(mode(input), result)
}

fn mode(input: &HostInput<'_>) -> HostMode {
    let is_sdk = input
        .variable(ENTRY_POINT)
        .is_some_and(|entry| entry.starts_with("sdk-"));
    if is_sdk || input.variable(ATTENDED) == Some("0") {
        HostMode::Headless
    } else {
        HostMode::Interactive
    }
}

/// Reads the result of a tool, which is a failure (`error`) or an object whose form depends on the tool.
fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    if let Some(error) = reader.optional_text("error")? {
        return Ok(ToolResult::error(error));
    }
    let response = reader.required("tool_response")?;
    let Some(object) = response.as_object() else {
        return Ok(ToolResult::default().with_content(content_of(response)));
    };
    let text = shell_output(object)
        .or_else(|| {
            response
                .pointer(FILE)
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .unwrap_or_else(|| response.to_string());
    Ok(ToolResult::text(text).with_details(Some(object.clone())))
}

/// Returns the output of a shell tool.
fn shell_output(response: &JsonObject) -> Option<String> {
    let stdout = response.get("stdout")?.as_str()?;
    let stderr = response.get("stderr").and_then(Value::as_str);
    let parts = [Some(stdout), stderr];
    let parts = parts.into_iter().flatten().filter(|text| !text.is_empty());
    Some(parts.collect::<Vec<_>>().join("\n"))
}

/// Where the result of a tool has the content of a file.
const FILE: &str = "/file/content";
/// Where results of tools have the text for the model: files, pages, found lines and reports of agents, found files.
const TEXTS: [&str; 4] = [FILE, "/result", "/content", "/filenames"];

/// Returns the tool's result with another text. Claude Code ignores an object that does not have the form of the tool's
/// own results, so the result of a tool with an unknown form can only be replaced by one of the same form.
fn replaced(response: &Value, result: &ToolResult) -> Option<Value> {
    let text = result.joined_text();
    if let Some(object) = response.as_object() {
        if object.contains_key("stdout") {
            return Some(json!({
                "stdout": text,
                "stderr": "",
                "interrupted": false,
                "isImage": false,
            }));
        }
        // Hooks see the JSON of such a result, so a change of a part of it is still JSON.
        let changed = serde_json::from_str::<Value>(&text).ok();
        let changed = changed.filter(|changed| has_form_of(changed, response));
        return changed.or_else(|| with_text(response, &text));
    }
    with_form_of(response, &text)
}

/// Returns an object with a text in the first of [`TEXTS`] that it has. The others are emptied.
fn with_text(response: &Value, text: &str) -> Option<Value> {
    let mut replaced = response.clone();
    let mut rest = Some(text);
    for place in TEXTS {
        if let Some(value) = replaced.pointer_mut(place) {
            *value = with_form_of(value, rest.take().unwrap_or_default())?;
        }
    }
    rest.is_none().then_some(replaced)
}

/// Returns a text in the form of a value: a string, a list of strings, or a list of blocks.
fn with_form_of(value: &Value, text: &str) -> Option<Value> {
    match value {
        Value::String(_) => Some(text.into()),
        Value::Array(_) if text.is_empty() => Some(json!([])),
        Value::Array(items) if items.iter().any(Value::is_string) => Some(json!([text])),
        Value::Array(_) => serde_json::to_value(vec![ContentBlock::text(text)]).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns whether a value differs from another one in its texts only.
fn has_form_of(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Object(value), Value::Object(other)) => {
            let mut fields = value.iter();
            value.len() == other.len()
                && fields.all(|(key, value)| {
                    other
                        .get(key)
                        .is_some_and(|other| has_form_of(value, other))
                })
        }
        (Value::Array(value), Value::Array(other)) => {
            let mut items = value.iter().zip(other);
            value.len() == other.len() && items.all(|(value, other)| has_form_of(value, other))
        }
        (Value::String(_), Value::String(_)) => true,
        (value, other) => value == other,
    }
}

pub(super) fn write(
    event: &HostEvent,
    input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::of(event, verdict);
    if event.kind == EventKind::PermissionRequest {
        permission(verdict, &mut answer)?;
    } else if event.role == EventRole::ToolGate {
        // A changed input needs no permission: without one, Claude Code judges the changed call by its own
        // rules.
        answer.judge(verdict);
    } else if let Some(result) = &verdict.result {
        let own = input.object.get("tool_response");
        let replaced = own.and_then(|own| replaced(own, result));
        let replaced = replaced.ok_or(HostEffect::ReplaceResult)?;
        answer.set_specific("updatedToolOutput", replaced);
    }
    answer.end_run(verdict);
    answer.notify(verdict);
    Ok(answer.print(event))
}

/// Answers a question to the person. Without an answer, Claude Code asks.
fn permission(verdict: &HostVerdict, answer: &mut AnswerObject) -> Result<(), HostEffect> {
    if let Some(reason) = stop_reason(verdict) {
        let decision = json!({ "behavior": "deny", "message": reason });
        answer.set_specific("decision", decision);
    } else if verdict.is_allowed {
        let mut decision = json!({ "behavior": "allow" });
        if let (Some(input), Some(decision)) = (&verdict.input, decision.as_object_mut()) {
            decision.insert("updatedInput".to_owned(), input.clone().into());
        }
        answer.set_specific("decision", decision);
    } else if verdict.input.is_some() {
        return Err(HostEffect::Rewrite);
    }
    Ok(())
}
