//! The dialect of Claude Code's hooks.

use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::{Dialect, EventInfo, EventKind, EventRef, ReadError, WriteError};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::tools::TOOLS;
use crate::command_hook::{
    Answer, BlockedResult, CommandHook, HookContract, Printed, add_context, blocked_by_status,
    documented, read_shared, replace_result, write,
};
use crate::settings_file::{Condition, SettingsEvent};

/// The variables in which hooks find the folder of the project.
pub(super) const DIRECTORY_VARIABLES: &[&str] = &["CLAUDE_PROJECT_DIR"];

static CONTRACT: HookContract = HookContract {
    name: "claude-code",
    name_of_failures: "claude-code failure",
    tools: &TOOLS,
    write: write_event,
    read,
    directory_variables: DIRECTORY_VARIABLES,
    session_variables: &["CLAUDE_CODE_SESSION_ID"],
    marks: &[("CLAUDECODE", "1")],
    because: "a gate that fails denies; exit statuses other than 2 warn, as Claude Code documents",
};

/// Returns the dialect of a hook on an event, with the condition in its key `if`.
pub(super) fn dialect(
    event: &'static SettingsEvent,
    condition: Option<Condition>,
) -> Arc<dyn Dialect> {
    Arc::new(CommandHook::new(&CONTRACT, event, condition))
}

fn write_event(own: &SettingsEvent, event: &EventRef) -> Result<JsonObject, WriteError> {
    write(own, event, response)
}

/// Returns the result of a tool in the form of the tool.
fn response(tool: &str, input: &JsonObject, text: String) -> Value {
    match tool {
        "Bash" | "PowerShell" => json!({
            "stdout": text,
            "stderr": "",
            "interrupted": false,
            "isImage": false,
        }),
        "Read" => json!({
            "type": "text",
            "file": { "filePath": input.get("file_path"), "content": text },
        }),
        _ => text.into(),
    }
}

/// Events whose hooks may print text for the model instead of JSON.
const TEXT_IS_CONTEXT: &[EventKind] = &[
    EventKind::SessionStart,
    EventKind::UserPromptSubmit,
    EventKind::PromptExpansion,
    EventKind::PostModelSwitch,
];

/// The keys of events, which a hook may print unchanged. A decision has none of these names.
const EVENT_KEYS: &[&str] = &[
    "session_id",
    "prompt_id",
    "transcript_path",
    "scratchpad_dir",
    "cwd",
    "permission_mode",
    "effort",
    "agent_id",
    "agent_type",
    "tool_name",
    "tool_input",
    "tool_use_id",
    "tool_response",
    "duration_ms",
    "prompt",
    "stop_hook_active",
    "last_assistant_message",
];

fn read(
    event: &SettingsEvent,
    info: &EventInfo,
    printed: &Printed<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    // JSON counts with every exit status, and status 2 blocks even if the JSON allows.
    let mut effect = AnyEffect::default();
    if printed.stdout.starts_with('{') {
        let mut answer = Answer::parse(event, printed.stdout)?;
        answer.drop_event(event, EVENT_KEYS);
        effect = read_shared(info, &mut answer, BlockedResult::AddsReason)?;
        read_own(&mut answer, &mut effect)?;
        answer.check_rest(info, &effect, strict)?;
    } else if printed.status == 0 && TEXT_IS_CONTEXT.contains(&info.kind) {
        add_context(info, printed.stdout.to_owned(), &mut effect);
    }
    let is_stopped = effect.is_stop() || !effect.follow_up.is_empty();
    match printed.status {
        2 if !is_stopped => Ok(blocked_by_status(info, printed, BlockedResult::AddsReason)),
        0 | 2 => Ok(effect),
        _ if !effect.is_empty() => Ok(effect),
        _ => Err(documented(printed)),
    }
}

/// Reads the keys that only Claude Code has.
fn read_own(answer: &mut Answer, effect: &mut AnyEffect) -> Result<(), ReadError> {
    for key in ["updatedToolOutput", "updatedMCPToolOutput"] {
        if let Some(output) = answer.take(key) {
            replace_result(&text_of(&output), effect);
        }
    }
    if let Some(message) = answer.take_text("initialUserMessage")? {
        effect.context.push(message);
    }
    for ignored in [
        "classifierContext",
        "displayContent",
        "reloadSkills",
        "retry",
        "sessionTitle",
        "suppressOriginalPrompt",
        "watchPaths",
    ] {
        let _of_the_screen = answer.take(ignored);
    }
    Ok(())
}

/// Returns the text of a tool's new result, in any of the forms of tools.
fn text_of(output: &Value) -> String {
    if let Some(text) = output.as_str() {
        return text.to_owned();
    }
    if let Some(blocks) = output.as_array() {
        let texts = blocks
            .iter()
            .filter_map(|block| block.get("text")?.as_str());
        return texts.collect::<Vec<_>>().join("\n");
    }
    let texts = ["/stdout", "/stderr", "/file/content"];
    let texts = texts.iter().filter_map(|at| output.pointer(at)?.as_str());
    let texts: Vec<_> = texts.collect();
    if texts.is_empty() {
        return output.to_string();
    }
    let given = texts.into_iter().filter(|text| !text.is_empty());
    given.collect::<Vec<_>>().join("\n")
}
