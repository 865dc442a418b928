//! Finds the command line of a tool call, for built-ins that judge it.

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value;
use tenterhook_engine::{EventRef, HandlerError};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::{PreToolUse, ToolGuard};
use tenterhook_systems::tool_names::FoundCommand;

/// Returns the command line of a call; `None` if the tool has none.
///
/// A host may give its shell tool any name. So the arguments of a tool with another name are searched for a command
/// line, by the rule for tools that no table has. If `cmd` and `command` are present, both are judged.
///
/// # Errors
/// Fails if a call to the shell tool has no command line as text, because no one can tell what it would do.
pub(super) fn command_line(event: &EventRef) -> Result<Option<Cow<'_, str>>, HandlerError> {
    let Some((category, name, input)) = tool_call(event) else {
        return Ok(None);
    };
    let is_shell = category == Some("shell") || name.eq_ignore_ascii_case("shell");
    if !is_shell {
        return Ok(FoundCommand::find(name, input).map(|found| Cow::Owned(found.line)));
    }
    match (input.get("cmd"), input.get("command")) {
        (Some(Value::String(one)), Some(Value::String(other))) => {
            Ok(Some(Cow::Owned(format!("{one}\n{other}"))))
        }
        (Some(Value::String(line)), None) | (None, Some(Value::String(line))) => {
            Ok(Some(Cow::Borrowed(line)))
        }
        (one, other) => {
            let found = one.or(other);
            Err(HandlerError::Other {
                problem: format!(
                    "the call to `{name}` has no command line: expected a string in `cmd`, found {}",
                    found.map_or_else(|| "nothing".to_owned(), Value::to_string)
                ),
            })
        }
    }
}

/// Returns the directory in which a call runs its command; `None` if the host set none.
pub(super) fn directory(event: &EventRef) -> Option<PathBuf> {
    let dir = super::row::directory(event)?;
    let (_, _, input) = tool_call(event)?;
    let own = input.get("cwd").and_then(Value::as_str);
    Some(dir.join(own.unwrap_or_default()))
}

/// Returns the category, the name and the arguments of the tool.
fn tool_call(event: &EventRef) -> Option<(Option<&str>, &str, &JsonObject)> {
    match (
        event.downcast::<PreToolUse>(),
        event.downcast::<ToolGuard>(),
    ) {
        (Some(event), _) => Some((
            event.tool_category.as_deref(),
            &event.tool_name,
            &event.tool_input,
        )),
        (None, Some(event)) => Some((
            event.tool_category.as_deref(),
            &event.tool_name,
            &event.tool_input,
        )),
        (None, None) => None,
    }
}
