//! The dialect of Gemini CLI's hooks.
//!
//! | printed text | exit status | effect |
//! |---|---|---|
//! | a JSON object | any | its decision and effects |
//! | a text | 0 | a notice |
//! | a text | 1 | a warning: the failure is counted, and nothing is stopped |
//! | a text | 2 or higher | the event is blocked, with the text as the reason |
//! | nothing | 0 | none |
//! | nothing | 1 | a warning |
//! | nothing | 2 | the event is blocked |
//! | nothing | 3 or higher | failure |
//!
//! The printed text is standard output, or standard error if there is no standard output.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{
    Dialect, EventInfo, EventKind, EventRef, Permission, ReadError, ToolNames as _, WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::tools::TOOLS;
use crate::command_hook::{
    Answer, BlockedResult, CommandHook, HookContract, Printed, blocked_by_status, documented,
    read_shared, result_text, word,
};
use crate::settings_file::{Condition, SettingsEvent};

/// The variables in which hooks find the folder of the project.
pub(super) const DIRECTORY_VARIABLES: &[&str] =
    &["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"];

static CONTRACT: HookContract = HookContract {
    name: "gemini",
    name_of_failures: "gemini",
    tools: &TOOLS,
    write,
    read,
    directory_variables: DIRECTORY_VARIABLES,
    session_variables: &["GEMINI_SESSION_ID"],
    marks: &[],
    because: "a gate that fails denies; exit status 1 warns, as Gemini CLI documents",
};

/// Returns the dialect of a hook on an event. Gemini CLI's hooks have no key `if`.
pub(super) fn dialect(
    event: &'static SettingsEvent,
    condition: Option<Condition>,
) -> Arc<dyn Dialect> {
    Arc::new(CommandHook::new(&CONTRACT, event, condition))
}

fn write(own: &SettingsEvent, event: &EventRef) -> Result<JsonObject, WriteError> {
    let envelope = event.envelope();
    let origin = &envelope.origin;
    let transcript = origin.extra.get("transcript_path").cloned();
    let mut object = object(&json!({
        "session_id": origin.session_id.as_str(),
        "transcript_path": transcript.unwrap_or_else(|| "".into()),
        "cwd": origin.cwd.to_string_lossy(),
        "hook_event_name": own.name,
        "timestamp": envelope.timestamp().to_string(),
    }));
    let payload = event.payload()?;
    let mut writers = WRITERS.iter();
    if let Some((_, keys)) = writers.find(|(kind, _)| *kind == own.kind) {
        object.extend(keys(payload));
    }
    Ok(object)
}

/// Returns the keys that are specific to an event, given its payload.
type WriteKeys = fn(&JsonObject) -> JsonObject;

const WRITERS: &[(EventKind, WriteKeys)] = &[
    (EventKind::SessionStart, |event| {
        object(&json!({ "source": word(&get(event, "source"), SOURCES, "startup") }))
    }),
    (EventKind::SessionEnd, |event| {
        object(&json!({ "reason": word(&get(event, "reason"), &["clear"], "exit") }))
    }),
    (EventKind::UserPromptSubmit, |event| {
        object(&json!({ "prompt": get(event, "prompt") }))
    }),
    (EventKind::PreToolUse, tool_call),
    (EventKind::PostToolUse, |event| {
        let mut keys = tool_call(event);
        keys.insert("tool_response".to_owned(), tool_response(event));
        keys
    }),
    (EventKind::Stop, |event| {
        object(&json!({
            "prompt": get(event, "last_user_message").as_str().unwrap_or_default(),
            "prompt_response": get(event, "response"),
            "stop_hook_active": get(event, "stop_hook_active"),
        }))
    }),
    (EventKind::BeforeLlmCall, |event| {
        object(&json!({ "llm_request": request(event) }))
    }),
    (EventKind::ToolSelection, |event| {
        object(&json!({ "llm_request": request(event) }))
    }),
    (EventKind::AfterLlmCall, |event| {
        let parts = json!([get(event, "response")]);
        let content = json!({ "role": "model", "parts": parts });
        let response = json!({ "candidates": [{ "content": content }] });
        object(&json!({ "llm_request": request(event), "llm_response": response }))
    }),
    (EventKind::Notification, |event| {
        object(&json!({
            "notification_type": get(event, "kind"),
            "message": get(event, "message"),
            "details": {},
        }))
    }),
    (EventKind::PreCompact, |event| {
        object(&json!({ "trigger": word(&get(event, "source"), &["manual"], "auto") }))
    }),
];

/// The reasons why a session starts that Gemini CLI knows.
const SOURCES: &[&str] = &["startup", "resume", "clear"];

fn get(payload: &JsonObject, key: &str) -> Value {
    payload.get(key).cloned().unwrap_or_default()
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn tool_call(event: &JsonObject) -> JsonObject {
    object(&json!({
        "tool_name": get(event, "tool_name"),
        "tool_input": get(event, "tool_input"),
    }))
}

fn tool_response(event: &JsonObject) -> Value {
    let text = result_text(event);
    let result = event.get("result");
    let is_error = result.and_then(|result| result.get("is_error")) == Some(&Value::Bool(true));
    if is_error {
        return json!({ "llmContent": text, "returnDisplay": text, "error": { "message": text } });
    }
    json!({ "llmContent": text, "returnDisplay": text })
}

/// Returns the request to a model: its name, and the texts of the conversation.
fn request(event: &JsonObject) -> Value {
    let messages = event.get("messages").and_then(Value::as_array);
    let messages = messages.into_iter().flatten();
    let written = messages.map(|message| {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("assistant") => "model",
            Some("system") => "system",
            _ => "user",
        };
        json!({ "role": role, "content": message.get("content") })
    });
    json!({
        "model": get(event, "model_id").as_str().unwrap_or_default(),
        "messages": written.collect::<Vec<_>>(),
        "config": {},
    })
}

fn read(
    event: &SettingsEvent,
    info: &EventInfo,
    printed: &Printed<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let stderr = printed.stderr.trim();
    let text = if printed.stdout.is_empty() {
        stderr
    } else {
        printed.stdout
    };
    if text.starts_with('{') {
        return read_object(event, info, text, strict);
    }
    match printed.status {
        0 => {
            let mut effect = AnyEffect::default();
            if !printed.stdout.is_empty() {
                effect.notices.push(printed.stdout.to_owned());
            }
            Ok(effect)
        }
        1 => Err(documented(printed)),
        status if text.is_empty() && status != 2 => Err(ReadError::Status {
            status,
            stderr: None,
        }),
        status => {
            let reason = Printed {
                status,
                stderr: text,
                ..*printed
            };
            Ok(blocked_by_status(info, &reason, BlockedResult::IsReplaced))
        }
    }
}

fn read_object(
    event: &SettingsEvent,
    info: &EventInfo,
    text: &str,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let mut answer = Answer::parse_unnamed(event, text)?;
    let question = answer.take_question()?;
    let mut effect = read_shared(info, &mut answer, BlockedResult::IsReplaced)?;
    if let Some(reason) = question {
        effect.set_permission(Permission::Ask, Some(reason));
    }
    if info.kind == EventKind::PreToolUse
        && let Some(input) = answer.take_object("tool_input")?
    {
        effect.rewrite.insert("tool_input".to_owned(), input.into());
    }
    if info.kind == EventKind::ToolSelection
        && let Some(config) = answer.take_object("toolConfig")?
    {
        select_tools(&config, &mut effect)?;
    }
    for unavailable in ["llm_request", "llm_response"] {
        if answer.take(unavailable).is_some() && !effect.is_stop() {
            return Err(ReadError::invalid(format!(
                "`{unavailable}` is not supported here: a hook can stop a request to the model, but not change it"
            )));
        }
    }
    for unavailable in ["tailToolCallRequest", "clearContext"] {
        if answer.take(unavailable).is_some() {
            let notice = format!("`{unavailable}` of a hook has no effect here");
            effect.notices.push(notice);
        }
    }
    answer.check_rest(info, &effect, strict)?;
    Ok(effect)
}

/// Reads which tools the model may use. They get their canonical names.
fn select_tools(config: &JsonObject, effect: &mut AnyEffect) -> Result<(), ReadError> {
    let allowed = config.get("allowedFunctionNames").and_then(Value::as_array);
    let is_none = config.get("mode").and_then(Value::as_str) == Some("NONE");
    let names = match allowed {
        _ if is_none => Vec::new(),
        None => return Ok(()),
        Some(names) => {
            let name = |name: &Value| {
                name.as_str()
                    .map(|name| TOOLS.canonical_name(name).to_owned())
            };
            let names: Option<Vec<String>> = names.iter().map(name).collect();
            names.ok_or_else(|| {
                ReadError::invalid("`allowedFunctionNames` has an item that is not a string")
            })?
        }
    };
    effect.rewrite.insert("tools".to_owned(), json!(names));
    Ok(())
}
