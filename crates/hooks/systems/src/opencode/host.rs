//! Reads the events that Tenterhook's plugin for opencode sends, and writes the answers for it.

use serde_json::{Value, json};
use tenterhook_engine::{ReadError, ToolResult};

use crate::command_hook::{EventReader, Keys, content_of};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostCall, HostEvent, HostInput, HostMode, in_process};

static KEYS: Keys = Keys {
    read: &[
        "cwd",
        "hook_event_name",
        "agent_id",
        "prompt",
        "source",
        "tool_response",
        "metadata",
    ],
    ..Keys::SNAKE_CASE
};

pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    reader.call(HostMode::Interactive, |reader| Ok(result(reader)))
}

/// Reads the result of a tool. opencode announces no results of failed tools.
fn result(reader: &EventReader<'_>) -> ToolResult {
    let content = reader.get("tool_response").map(content_of);
    let details = reader.get("metadata").and_then(Value::as_object);
    ToolResult::default()
        .with_content(content.unwrap_or_default())
        .with_details(details.cloned())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with hosts that cannot write every verdict"
)]
pub(super) fn write(
    event: &HostEvent,
    _input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    Ok(in_process::write(event, verdict, |block| json!(block)))
}
