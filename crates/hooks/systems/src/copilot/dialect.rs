//! The dialect of Copilot CLI's hooks, which have keys in camel case.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{Dialect, EventInfo, EventKind, EventRef, ReadError, WriteError};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::tools::TOOLS;
use crate::command_hook::{
    Answer, BlockedResult, CommandHook, HookContract, Printed, SOURCES, TRIGGERS, block,
    documented, read_shared, replace_result, result_text, word,
};
use crate::settings_file::{Condition, Occurrences, SettingsEvent};

/// The variables in which hooks find the folder of the project.
pub(super) const DIRECTORY_VARIABLES: &[&str] = &["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

static CONTRACT: HookContract = HookContract {
    name: "copilot",
    name_of_failures: "copilot failure",
    tools: &TOOLS,
    write,
    read,
    directory_variables: DIRECTORY_VARIABLES,
    session_variables: &[],
    marks: &[("COPILOT_CLI", "1")],
    because: "a gate that fails denies",
};

/// Returns the dialect of a hook on an event. Copilot CLI's hooks have no key `if`.
pub(super) fn dialect(
    event: &'static SettingsEvent,
    condition: Option<Condition>,
) -> Arc<dyn Dialect> {
    Arc::new(CommandHook::new(&CONTRACT, event, condition))
}

fn write(own: &SettingsEvent, event: &EventRef) -> Result<JsonObject, WriteError> {
    let payload = event.payload()?;
    let envelope = event.envelope();
    let mut object = JsonObject::new();
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    let get = |key: &str| payload.get(key).cloned().unwrap_or_default();
    add("sessionId", envelope.origin.session_id.as_str().into());
    add("timestamp", envelope.timestamp().as_millisecond().into());
    add("cwd", envelope.origin.cwd.to_string_lossy().into());
    if own.kind == EventKind::PreToolUse || own.kind == EventKind::PostToolUse {
        add("toolName", get("tool_name"));
        add("toolArgs", get("tool_input"));
    }
    if own.occurrences == Occurrences::Failed {
        add("error", result_text(payload).into());
    } else if own.kind == EventKind::PostToolUse {
        let text = result_text(payload);
        add(
            "toolResult",
            json!({ "resultType": "success", "textResultForLlm": text }),
        );
    } else if own.kind == EventKind::UserPromptSubmit {
        add("prompt", get("prompt"));
    } else if own.kind == EventKind::SessionStart {
        add("source", word(&get("source"), SOURCES, "new"));
    } else if own.kind == EventKind::SessionEnd {
        add("reason", word(&get("reason"), &["error"], "complete"));
    } else if own.kind == EventKind::Stop {
        add("stopReason", "end_turn".into());
        add("stop_hook_active", get("stop_hook_active"));
    } else if own.kind == EventKind::SubagentStart || own.kind == EventKind::SubagentStop {
        add("agentId", get("task_id"));
        add("agentName", get("label"));
        add("response", get("result"));
    } else if own.kind == EventKind::PreCompact {
        add("trigger", word(&get("source"), TRIGGERS, "auto"));
        add("customInstructions", get("custom_instructions"));
    } else if own.kind == EventKind::Notification {
        add("message", get("message"));
        add("notification_type", get("kind"));
    } else if own.kind == EventKind::AgentError {
        add("error", json!({ "message": get("error") }));
    }
    object.retain(|_, value| !value.is_null());
    Ok(object)
}

fn read(
    event: &SettingsEvent,
    info: &EventInfo,
    printed: &Printed<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    if printed.status != 0 {
        return denied_by_status(info, printed);
    }
    let mut effect = AnyEffect::default();
    if printed.stdout.starts_with('{') {
        let mut answer = Answer::parse(event, printed.stdout)?;
        effect = read_shared(info, &mut answer, BlockedResult::IsReplaced)?;
        if info.kind == EventKind::PreToolUse
            && let Some(input) = answer.take_object("modifiedArgs")?
        {
            effect
                .rewrite
                .insert("whole_input".to_owned(), input.into());
        }
        if let Some(result) = answer.take_object("modifiedResult")? {
            let text = result.get("textResultForLlm").and_then(Value::as_str);
            replace_result(text.unwrap_or_default(), &mut effect);
        }
        if answer.take("modifiedPrompt").is_some() {
            let problem = "`modifiedPrompt` is not supported here: a prompt cannot be changed";
            return Err(ReadError::invalid(problem));
        }
        answer.check_rest(info, &effect, strict)?;
    }
    Ok(effect)
}

/// Reads an exit status other than 0, which denies a tool call. On all other events it is a warning.
fn denied_by_status(info: &EventInfo, printed: &Printed<'_>) -> Result<AnyEffect, ReadError> {
    if info.kind != EventKind::PreToolUse {
        return Err(documented(printed));
    }
    let mut effect = AnyEffect::default();
    let reason = match printed.stderr.trim() {
        "" => format!("a hook exited with status {}", printed.status),
        stderr => stderr.to_owned(),
    };
    block(info, reason, BlockedResult::IsReplaced, &mut effect);
    Ok(effect)
}
