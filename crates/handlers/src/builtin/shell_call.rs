//! The command line of a tool call, for built-ins that judge it.

use serde_json::Value;
use tenterhook::{EventRef, HandlerError};
use tenterhook_protocol::event::{PreToolUse, ToolGuard};

/// Returns the command line of a call of the shell tool; `None` for a call of another tool.
///
/// # Errors
/// When a call of the shell tool has no command line as text: no one can know what it would do.
pub(super) fn command_line(event: &EventRef) -> Result<Option<&str>, HandlerError> {
    let (category, name, input) = match (
        event.downcast::<PreToolUse>(),
        event.downcast::<ToolGuard>(),
    ) {
        (Some(event), _) => (&event.tool_category, &event.tool_name, &event.tool_input),
        (None, Some(event)) => (&event.tool_category, &event.tool_name, &event.tool_input),
        (None, None) => return Ok(None),
    };
    if category.as_deref() != Some("shell") && name != "shell" {
        return Ok(None);
    }
    let line = ["cmd", "command"].iter().find_map(|key| input.get(*key));
    match line {
        Some(Value::String(line)) => Ok(Some(line)),
        found => Err(HandlerError::Other {
            problem: format!(
                "the call of `{name}` has no command line: expected a text in `cmd`, found {}",
                found.map_or_else(|| "nothing".to_owned(), Value::to_string)
            ),
        }),
    }
}
